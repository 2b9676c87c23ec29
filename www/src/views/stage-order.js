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
 * What happens while a stage is dragged over another.
 * @param {LogitScope} host
 * @param {number} index
 */
export function dragging(host, index) {
  const last = host.play.stages.length - 1;
  return {
    /** @param {DragEvent} event */
    start(event) {
      host.dragging = index;
      event.dataTransfer?.setData("text/plain", String(index));
    },
    /** @param {DragEvent} event */
    over(event) {
      // Nothing can be dropped behind the sampler.
      if (host.dragging !== null && index < last) event.preventDefault();
    },
    /** @param {DragEvent} event */
    drop(event) {
      event.preventDefault();
      if (host.dragging !== null) void host.play.moveStage(host.dragging, index);
      host.dragging = null;
    },
    end() {
      host.dragging = null;
    },
  };
}
