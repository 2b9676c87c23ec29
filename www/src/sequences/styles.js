// How the Sequences area looks, on top of the element's own styles.

import { css } from "lit";

export const sequenceStyles = css`
  h3,
  h4 {
    margin: 1rem 0 0.25rem;
    font-size: 1rem;
  }
  .tabs {
    display: flex;
    flex-wrap: wrap;
    gap: 0.25rem;
    border-bottom: 1px solid var(--line);
  }
  .tabs [role="tab"] {
    border-radius: 6px 6px 0 0;
    border-bottom: none;
    background: none;
  }
  .tabs [aria-selected="true"] {
    background: var(--accent-tint);
    font-weight: 600;
  }
  .panel {
    display: grid;
    grid-template-columns: minmax(0, 1fr);
    gap: 0.75rem;
    padding: 0.75rem 0;
  }
  .panel > button {
    justify-self: start;
  }
  .form {
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(min(11rem, 100%), 1fr));
    gap: 0.5rem 0.75rem;
    align-items: end;
  }
  .form .wide {
    grid-column: 1 / -1;
  }
  .form :is(input, select) {
    display: block;
    width: 100%;
  }
  .form :is(textarea, input[type="text"]),
  .as-text code {
    font: 0.85rem/1.5 ui-monospace, monospace;
    overflow-wrap: anywhere;
  }
  .form .fault {
    display: block;
  }
  /* What cannot be pressed for now keeps the focus. */
  [aria-disabled="true"] {
    opacity: 0.55;
    cursor: default;
  }
  .as-text {
    font-size: 0.85rem;
    color: var(--soft);
  }
  .fault code {
    white-space: pre-wrap;
  }
  .written,
  .stream {
    background: var(--sheet);
    border: 1px solid var(--line);
    border-radius: 6px;
    padding: 0.5rem 0.75rem;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
  }
  .outcome {
    margin: 0;
    display: grid;
    gap: 0.15rem;
  }
  .outcome > div {
    display: grid;
    grid-template-columns: min(14rem, 40%) minmax(0, 1fr);
    gap: 0.75rem;
  }
  .outcome dt {
    color: var(--soft);
    font-size: 0.85rem;
  }
  .outcome dd {
    margin: 0;
    overflow-wrap: anywhere;
  }
  .warning {
    border-left: 3px solid var(--draw);
    padding-left: 0.75rem;
  }
  .notes {
    margin: 0;
    padding-left: 1.2rem;
    font-size: 0.9rem;
  }
  table.plain {
    border-collapse: collapse;
    font-size: 0.85rem;
  }
  table.plain :is(th, td) {
    text-align: left;
    vertical-align: top;
    padding: 0.15rem 0.9rem 0.15rem 0;
    border-bottom: 1px solid var(--line);
    font-weight: inherit;
    max-width: 32rem;
  }
  table.plain thead th {
    color: var(--soft);
    white-space: nowrap;
  }
  table.plain tr.marked > * {
    background: var(--draw-tint);
  }
  .share {
    display: inline-block;
    width: 5rem;
    height: 0.6rem;
    background: var(--sheet);
    border: 1px solid var(--line);
    vertical-align: baseline;
  }
  .share-bar {
    display: block;
    height: 100%;
    background: var(--accent);
  }
  .scrub {
    display: block;
    max-width: 32rem;
  }
  .working {
    min-height: 2.4rem;
  }
  /* What comes while it works is long; Stop stays in reach. */
  .working.busy {
    position: sticky;
    bottom: 0;
    z-index: 1;
    padding: 0.3rem 0;
    background: var(--paper);
  }

  /* Constraint */
  .columns {
    display: flex;
    flex-wrap: wrap;
    gap: 2px;
  }
  .column {
    display: grid;
    justify-items: center;
    padding: 2px 3px;
    border-radius: 3px;
    font-size: 0.75rem;
    min-width: 1.75rem;
  }
  .column .stick {
    position: relative;
    width: 0.8rem;
    height: 3.5rem;
    background: var(--paper);
    border: 1px solid var(--line);
  }
  .column .stick span {
    position: absolute;
    bottom: 0;
    left: 0;
    right: 0;
    background: var(--accent);
  }
  .column.off .stick {
    border: 1px dashed var(--lost);
  }
  .column[aria-pressed="true"],
  .block[aria-pressed="true"],
  .branch-token[aria-pressed="true"] {
    background: var(--draw-tint);
    border-color: var(--draw);
  }

  /* Beams */
  .fate {
    display: inline-block;
    margin-right: 1em;
  }
  .tree svg {
    width: auto;
    font-size: 12px;
  }
  .tree text {
    fill: var(--ink);
  }
  .tree .sum,
  .branches .sum {
    fill: var(--soft);
    color: var(--soft);
    font-size: 0.8em;
  }
  .tree .root {
    fill: var(--ink);
  }
  .edge {
    fill: none;
    stroke: var(--line);
  }
  .edge.runs {
    stroke: var(--accent);
    stroke-width: 2;
  }
  .edge:is(.hypothesis, .displaced) {
    stroke: var(--draw);
    stroke-width: 2;
  }
  .node:is(.pruned, .ended_too_low) text {
    fill: var(--soft);
  }

  /* Speculation */
  .blocks {
    display: flex;
    flex-wrap: wrap;
    gap: 4px;
  }
  .block {
    padding: 0.15rem 0.4rem;
    display: flex;
    /* Many long tokens must not widen a narrow page. */
    flex-wrap: wrap;
    gap: 0.35em;
    font-size: 0.9rem;
    text-align: left;
    overflow-wrap: anywhere;
  }
  .accepted {
    color: var(--accent);
  }
  .rejected {
    color: var(--lost);
  }
  .unjudged {
    color: var(--soft);
  }
  .drawn {
    color: var(--draw);
    font-weight: 600;
  }

  /* Stops */
  .held {
    background: var(--draw-tint);
    border-bottom: 2px dotted var(--draw);
  }
  .partial {
    color: var(--lost);
    font-family: ui-monospace, monospace;
    font-size: 0.85em;
  }
  .matched {
    color: var(--accent);
    font-weight: 600;
    margin-left: 0.5em;
  }

  /* Branches */
  .side-by-side {
    display: grid;
    grid-template-columns: repeat(auto-fill, minmax(min(14rem, 100%), 1fr));
    gap: 0.75rem;
  }
  .side-by-side section {
    border: 1px solid var(--line);
    border-radius: 6px;
    padding: 0.5rem 0.75rem;
    overflow-wrap: anywhere;
  }
  .side-by-side h3 {
    margin: 0;
  }
  .branches,
  .branches ul {
    list-style: none;
    margin: 0;
    padding: 0;
  }
  .branches ul {
    margin-left: 0.6rem;
    padding-left: 0.8rem;
    border-left: 2px solid var(--line);
  }
  .branches li {
    margin: 2px 0;
  }
  .branch-token {
    padding: 0 2px;
    border-color: transparent;
    border-radius: 3px;
    background: none;
    min-height: 1.5rem;
  }
`;
