// The page for a reader's own GPU: buttons, a report, a table, and a file to keep.

/** @import { Adapter, Asked, Line, Report, Told } from "./protocol.js" */

/** What the reader can save. @type {{version?: string, adapter?: Adapter, full?: boolean,
 *   report?: Report, lines: Line[], agent: string}} */
const result = { lines: [], agent: navigator.userAgent };

/** @type {(id: string) => HTMLElement} */
const element = (id) => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
};
const buttons = ["quick", "full", "bench"].map(
  (id) => /** @type {HTMLButtonElement} */ (element(id)),
);
const save = /** @type {HTMLButtonElement} */ (element("save"));

// A table that is wider than the page is scrolled by keyboard, too.
for (const wide of document.querySelectorAll(".scroll")) {
  /** @type {HTMLElement} */ (wide).tabIndex = 0;
}

const worker = new Worker(new URL("./gpu-worker.js", import.meta.url), { type: "module" });

/** What runs now. @type {Asked["ask"]} */
let asked = "adapter";

/** @param {Asked} work */
function ask(work) {
  asked = work.ask;
  element("broken").textContent = "";
  for (const button of buttons) button.disabled = true;
  worker.postMessage(work);
}

/** @param {boolean} full */
function check(full) {
  // What is kept is always of one check, and only of a whole one.
  delete result.full;
  delete result.report;
  element("check").hidden = false;
  element("report").replaceChildren();
  element("faults").replaceChildren();
  element("costs").replaceChildren();
  ask({ ask: "check", full });
}

function bench() {
  result.lines = [];
  element("times").hidden = false;
  element("lines").replaceChildren();
  // A link may ask for the smallest size alone, as tests do.
  const brief = location.hash === "#brief";
  const sizes = brief ? [32_768] : [32_768, 50_257, 128_256, 151_936, 262_144];
  const batches = brief ? [1] : [1, 8, 32];
  ask({
    ask: "bench",
    vocabularies: Uint32Array.from(sizes),
    batches: Uint32Array.from(batches),
  });
}

/** @param {string} term @param {string} value */
function entry(term, value) {
  const dt = document.createElement("dt");
  dt.textContent = term;
  const dd = document.createElement("dd");
  dd.textContent = value;
  return [dt, dd];
}

/** @param {Report} report */
function verdict({ passed, different, survived }) {
  if (passed) return "every integer equal";
  if (different > 0) return "NOT EQUAL";
  return survived.length > 0 ? "FAULTS WENT UNNOTICED" : "NOT THE PUBLISHED HASH";
}

/** @param {Report} report */
function showReport(report) {
  const same =
    report.hash === report.published
      ? "the published one"
      : report.published
        ? `the published one is ${report.published}`
        : "of this part; a full check has a published one";
  element("report").replaceChildren(
    ...entry("Result", verdict(report)),
    ...entry("Comparisons", report.comparisons.toLocaleString("en")),
    ...entry("Launches", String(report.launches)),
    ...entry("Rows resolved", `${report.sorted} by sorting, ${report.by_radix} by radix`),
    ...entry(
      "Faults noticed",
      `${report.rejected.length} of ${report.rejected.length + report.survived.length}`,
    ),
    ...entry("Hash", `${report.hash} (${same})`),
  );
  const faults = [...report.differences, ...report.survived.map((name) => `survived: ${name}`)];
  element("faults").replaceChildren(
    ...faults.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }),
  );
  element("costs").replaceChildren(
    ...report.costs.map(({ pipeline, cost, bytes_a_token }) =>
      tableRow([String(cost.dispatches), `${cost.read_back} B`, `${bytes_a_token} B`, pipeline]),
    ),
  );
  const { name, backend } = result.adapter ?? { name: "", backend: "" };
  element("progress").textContent =
    `${report.comparisons} comparisons on ${name} (${backend}), ${report.rejected.length} mutants rejected`;
}

/** @param {string[]} cells */
function tableRow(cells) {
  const row = document.createElement("tr");
  for (const text of cells) {
    row.append(Object.assign(document.createElement("td"), { textContent: text }));
  }
  return row;
}

/** @param {Line} line */
function showLine(line) {
  const cells = [
    line.vocabulary.toLocaleString("en"),
    String(line.rows),
    `${line.ours_ms.toFixed(2)} ms`,
    String(line.cost.dispatches),
    `${line.cost.read_back} B`,
    `${line.bandwidth.toFixed(2)} GB/s`,
    line.sort_ms === null ? "left out" : `${line.sort_ms.toFixed(2)} ms`,
    String(line.sort_dispatches),
    `${line.cpu_ms.toFixed(2)} ms`,
  ];
  element("lines").append(tableRow(cells));
}

/** @param {MessageEvent<Told>} event */
function hear({ data }) {
  if (data.tell === "progress") {
    element("progress").textContent = data.line;
    return;
  }
  if (data.tell === "line") {
    result.lines.push(data.line);
    showLine(data.line);
    return;
  }
  if (data.tell === "failed") {
    if (!result.adapter) {
      element("adapter").textContent = `No check is possible here, because ${data.message}`;
      return;
    }
    const what = asked === "bench" ? "The benchmark" : "The check";
    element("broken").textContent = `${what} stopped before its end, because ${data.message}`;
    if (asked === "check") element("progress").textContent = "";
  }
  if (data.tell === "adapter") {
    const { name, backend, software } = data.adapter;
    result.adapter = data.adapter;
    result.version = data.version;
    element("adapter").textContent =
      `Your GPU: ${name}, through ${backend}${software ? "; it is software that runs on the CPU" : ""}`;
    return;
  }
  if (data.tell === "report") {
    result.full = data.full;
    result.report = data.report;
    showReport(data.report);
  }
  for (const button of buttons) button.disabled = false;
  save.disabled = result.report === undefined && result.lines.length === 0;
}

function download() {
  const file = new Blob([`${JSON.stringify(result, null, 2)}\n`], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = "logitscope-gpu.json";
  link.click();
  URL.revokeObjectURL(link.href);
}

worker.addEventListener("message", hear);
worker.addEventListener("error", () => {
  const message = "its script did not load or does not run in this browser.";
  hear(new MessageEvent("message", { data: { tell: "failed", message } }));
});
element("quick").addEventListener("click", () => check(false));
element("full").addEventListener("click", () => check(true));
element("bench").addEventListener("click", bench);
save.addEventListener("click", download);
ask({ ask: "adapter" });
