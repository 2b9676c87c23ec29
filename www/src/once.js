// Work that is done when it is first wanted.

/**
 * Does something once; a failure may be tried again.
 * @template T
 * @param {() => Promise<T>} make
 * @returns {() => Promise<T>}
 */
export function once(make) {
  /** @type {Promise<T> | undefined} */
  let made;
  return () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
