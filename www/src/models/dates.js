// The date of the day, for the templates that ask for it: in English everywhere, as in Python.

import { refusal } from "./fit.js";

const MONTHS =
  "January February March April May June July August September October November December".split(
    " ",
  );
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/**
 * A date as `strftime` writes it.
 * @param {Date} date
 * @param {string} format
 */
export function formatDate(date, format) {
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const month = String(MONTHS[date.getMonth()]);
  const day = String(DAYS[date.getDay()]);
  /** @type {Record<string, string>} */
  const codes = {
    Y: String(date.getFullYear()),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    B: month,
    b: month.slice(0, 3),
    A: day,
    a: day.slice(0, 3),
    H: two(date.getHours()),
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    "%": "%",
  };
  return format.replace(/%(.?)/gsu, (_, code) => {
    const text = codes[code];
    if (text === undefined)
      throw refusal("bad_input", `%${code} in a format of dates is not supported.`);
    return text;
  });
}
