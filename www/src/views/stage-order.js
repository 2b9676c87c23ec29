// The order of the stages: dragging by mouse, and buttons that keep their focus.

/** @import { LogitScope } from "../logit-scope.js" */

/**
 * Moves a stage, and the focus with its button.
 * @param {LogitScope} host
 * @param {number} from
 * @param {number} to
 */
export async function moveStage(host, from, to) {
  const toolsOf = (/** @type {number} */ index) => [
    ...(host.renderRoot.querySelectorAll(".tools")[index]?.querySelectorAll("button") ?? []),
  ];
  const focused = /** @type {ShadowRoot} */ (host.renderRoot).activeElement;
  const pressed = toolsOf(from).indexOf(/** @type {HTMLButtonElement} */ (focused));
  await host.play.moveStage(from, to);
  await host.updateComplete;
  const buttons = toolsOf(to);
  const again = buttons[pressed];
  const next = again && !again.disabled ? again : buttons.find((button) => !button.disabled);
  next?.focus();
}

/**
 * What happens while a stage is dragged over another: it moves there at once, so that the kept
 * tokens change under the reader's hand; let go outside the table, it returns.
 * @param {LogitScope} host
 * @param {number} index
 */
export function dragging(host, index) {
  const last = host.play.stages.length - 1;
  return {
    /** @param {DragEvent} event */
    start(event) {
      host.dragging = index;
      host.draggedFrom = index;
      event.dataTransfer?.setData("text/plain", String(index));
    },
    /** @param {DragEvent} event */
    over(event) {
      const { dragging: at } = host;
      // Nothing moves behind the sampler.
      if (at === null || index >= last) return;
      const { left, width } = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
      // Past the middle, or columns of different widths would change places to and fro.
      const passed = (event.clientX - left - width / 2) * (index - at) > 0;
      if (!passed) return;
      host.dragging = index;
      void host.play.moveStage(at, index);
    },
    end() {
      // Null after a drop.
      if (host.dragging !== null) void host.play.moveStage(host.dragging, host.draggedFrom);
      host.dragging = null;
    },
  };
}

/**
 * Where a stage may be let go: anywhere in the table, which shows it where it will be.
 * @param {LogitScope} host
 */
export function dropping(host) {
  return {
    /** @param {DragEvent} event */
    over(event) {
      if (host.dragging !== null) event.preventDefault();
    },
    /** @param {DragEvent} event */
    drop(event) {
      if (host.dragging !== null) event.preventDefault();
      host.dragging = null;
    },
  };
}
