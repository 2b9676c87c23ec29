// How the element looks. Colours are few: ink, paper, one accent for what lives, one for
// what is removed, one for what is drawn.

import { css } from "lit";

export const styles = css`
  :host {
    --paper: #fcfbf8;
    --sheet: #ffffff;
    --ink: #23262b;
    --soft: #5d636b;
    --line: #dedbd2;
    --accent: #1b6f6a;
    --accent-tint: #cfe6e2;
    --lost: #a23b2a;
    --draw: #8a5a00;
    --draw-tint: #fbe7bd;
    --focus: #2457c5;
    display: block;
    color: var(--ink);
    font: 1rem/1.5 system-ui, sans-serif;
    font-variant-numeric: tabular-nums;
    color-scheme: light dark;
  }
  /* Inside another page the element stands on a sheet of its own. */
  :host(:not([linked])) {
    background: var(--paper);
    border: 1px solid var(--line);
    border-radius: 8px;
    padding: 0.8rem 1rem 1rem;
  }
  @media (prefers-color-scheme: dark) {
    :host {
      --paper: #17191c;
      --sheet: #1e2125;
      --ink: #e6e3dc;
      --soft: #a3a7ab;
      --line: #383c42;
      --accent: #6fc5bc;
      --accent-tint: #24504d;
      --lost: #f0947f;
      --draw: #f0c469;
      --draw-tint: #57441a;
      --focus: #8fb4ff;
    }
  }
  * {
    box-sizing: border-box;
  }
  :focus-visible {
    outline: 2px solid var(--focus);
    outline-offset: 2px;
    border-radius: 3px;
  }
  p,
  figure {
    margin: 0;
  }
  .hidden {
    position: absolute;
    width: 1px;
    height: 1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
  .body {
    display: grid;
    gap: 1rem;
    grid-template-columns: minmax(0, 1fr);
  }

  /* Controls */
  button,
  input,
  select,
  textarea {
    font: inherit;
    color: inherit;
  }
  button,
  select,
  input:not([type="range"]),
  textarea {
    background: var(--sheet);
    border: 1px solid var(--line);
    border-radius: 6px;
    padding: 0.3rem 0.7rem;
    min-width: 0;
  }
  button {
    cursor: pointer;
  }
  button:hover:not(:disabled) {
    border-color: var(--accent);
  }
  :disabled {
    opacity: 0.55;
    cursor: default;
  }
  .primary {
    background: var(--accent);
    border-color: var(--accent);
    color: var(--paper);
    font-weight: 600;
  }
  .stop:enabled {
    border-color: var(--lost);
    color: var(--lost);
  }
  textarea {
    display: block;
    width: 100%;
    resize: vertical;
    field-sizing: content;
    min-height: 2.3em;
  }
  input[type="range"] {
    width: 100%;
    margin: 0.25rem 0 0;
    accent-color: var(--accent);
  }
  label > span,
  .seed label {
    font-size: 0.85rem;
    color: var(--soft);
  }
  label small {
    font-size: inherit;
    margin-left: 0.5em;
  }
  .run,
  .seed,
  .out {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
    align-items: center;
  }
  .run {
    position: sticky;
    top: 0;
    z-index: 4;
    background: var(--paper);
    padding: 0.5rem 0;
  }
  .run > button {
    min-width: 4.2rem;
  }
  .seed {
    margin-left: auto;
  }
  .seed input {
    width: 14em;
    max-width: 52vw;
  }
  .pipeline textarea {
    font: 0.85rem/1.5 ui-monospace, monospace;
  }
  .pipeline-row {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
    align-items: end;
  }
  .pipeline {
    flex: 1 1 24rem;
    min-width: 0;
  }
  .add {
    display: flex;
    gap: 0.5rem;
    max-width: 100%;
  }
  .add label {
    min-width: 0;
  }
  .add select {
    width: 100%;
  }
  .add button,
  .seed button {
    flex: none;
    white-space: nowrap;
  }

  /* Messages */
  .fault {
    margin-top: 0.25rem;
    color: var(--lost);
    font-size: 0.85rem;
  }
  /* What readers write may have no place to break at. */
  :is(.fault, .warning, .notice, code, pre, caption, figcaption, textarea) {
    overflow-wrap: anywhere;
  }
  .fault mark {
    background: var(--lost);
    color: var(--paper);
  }
  [aria-invalid="true"] {
    border-color: var(--lost) !important;
    box-shadow: 0 0 0 1px var(--lost);
  }
  .banner,
  .hint {
    border-left: 3px solid var(--lost);
    background: var(--sheet);
    padding: 0.7rem 1rem;
    display: grid;
    gap: 0.5rem;
    justify-items: start;
  }
  .hint {
    border-color: var(--accent);
    max-width: 46rem;
  }
  .notice,
  .finish,
  .legend {
    color: var(--soft);
    font-size: 0.85rem;
  }
  .notice {
    position: sticky;
    bottom: 0.6rem;
    justify-self: start;
    z-index: 5;
    background: var(--ink);
    color: var(--paper);
    border-radius: 6px;
    padding: 0.35rem 0.8rem;
  }
  .loading progress {
    width: 100%;
    max-width: 30rem;
    accent-color: var(--accent);
  }

  /* The text */
  .text {
    font: 1.15rem/2 ui-serif, Georgia, "Times New Roman", serif;
    overflow-wrap: anywhere;
    min-height: 3.4rem;
  }
  .prompt-token {
    color: var(--soft);
    white-space: pre-wrap;
  }
  .prompt-token:nth-child(even) {
    background: color-mix(in srgb, var(--line) 35%, transparent);
  }
  .chip {
    font: inherit;
    line-height: 1.35;
    white-space: pre;
    padding: 0;
    border: 0;
    border-radius: 2px;
    background: none;
    border-bottom: 1px solid transparent;
    max-width: 100%;
    overflow: hidden;
    vertical-align: baseline;
  }
  .level-0 {
    border-bottom-color: color-mix(in srgb, var(--draw) 25%, transparent);
  }
  .level-1 {
    border-bottom: 2px dotted color-mix(in srgb, var(--draw) 50%, transparent);
  }
  .level-2 {
    border-bottom: 2px dashed color-mix(in srgb, var(--draw) 75%, transparent);
    background: color-mix(in srgb, var(--draw-tint) 35%, transparent);
  }
  .level-3 {
    border-bottom: 2px solid var(--draw);
    background: color-mix(in srgb, var(--draw-tint) 75%, transparent);
  }
  .level-4 {
    border-bottom: 4px double var(--draw);
    background: var(--draw-tint);
  }
  .chip.forced {
    font-style: italic;
    text-decoration: overline 1px;
  }
  .chip.stale {
    opacity: 0.4;
  }
  .chip[aria-current="step"] {
    outline: 2px solid var(--accent);
    outline-offset: 1px;
  }
  .chip.next {
    font: 0.8rem/1.4 system-ui, sans-serif;
    color: var(--soft);
    border: 1px dashed var(--soft);
    border-radius: 4px;
    padding: 0 0.4em;
    margin-left: 0.3em;
    vertical-align: 0.1em;
  }
  .levels .chip {
    color: var(--ink);
    margin-right: 0.8em;
    font: inherit;
    display: inline-block;
  }

  /* The stages */
  .scroller {
    overflow-x: auto;
    border-block: 1px solid var(--line);
    overscroll-behavior-x: contain;
  }
  .stages {
    border-collapse: separate;
    border-spacing: 0;
    width: 100%;
    font-size: 0.85rem;
  }
  .stages :is(td, th) {
    padding: 0.15rem 0.5rem;
    text-align: left;
    vertical-align: top;
    font-weight: normal;
    min-width: 9.5rem;
    border-left: 1px solid var(--line);
  }
  .stages :is(td, th):first-child {
    position: sticky;
    left: 0;
    z-index: 2;
    min-width: 6.2rem;
    max-width: 9rem;
    background: var(--paper);
    border-left: 0;
    border-right: 1px solid var(--line);
  }
  .stages :is(td, th):nth-child(2) {
    border-left: 0;
  }
  .names th {
    padding-top: 0.5rem;
    white-space: nowrap;
  }
  .names th[draggable="true"] {
    cursor: grab;
  }
  .names .dragging {
    opacity: 0.4;
  }
  .stage-name {
    font-weight: 600;
    font-size: 0.95rem;
    padding: 0;
    border: 0;
    background: none;
    border-bottom: 2px solid transparent;
    border-radius: 0;
  }
  .stage-name[aria-pressed="true"] {
    border-color: var(--accent);
    color: var(--accent);
  }
  .foot {
    position: relative;
    margin-top: 0.25rem;
  }
  .tools {
    position: absolute;
    right: 0;
    top: -0.1rem;
  }
  .foot:has(.tools) > .more > summary {
    margin-right: 4.8rem;
  }
  .tool {
    border: 0;
    background: none;
    padding: 0 0.25rem;
    color: var(--soft);
    min-width: 1.5rem;
    min-height: 1.5rem;
  }
  .summary,
  .help,
  .source,
  .formula {
    color: var(--soft);
    font-size: 0.8rem;
    line-height: 1.4;
  }
  .controls td {
    padding-bottom: 0.4rem;
  }
  .param {
    margin-top: 0.35rem;
    display: grid;
    grid-template-columns: auto minmax(0, 1fr);
    column-gap: 0.5rem;
    align-items: center;
  }
  .param > :is(.slider, .fault) {
    grid-column: 1 / -1;
  }
  .param > :is(.number, .json, select) {
    padding: 0.1rem 0.4rem;
    width: 100%;
  }
  .more > summary {
    color: var(--soft);
    font-size: 0.8rem;
    cursor: pointer;
    overflow-wrap: anywhere;
  }
  .more > * + * {
    margin-top: 0.3rem;
  }
  .source a {
    overflow-wrap: anywhere;
    color: inherit;
  }
  .stats :is(td, th) {
    border-block: 1px solid var(--line);
    padding-block: 0.35rem;
    line-height: 1.45;
    color: var(--soft);
  }
  .stat b {
    color: var(--ink);
  }
  .stat.lost {
    color: var(--lost);
  }
  tbody tr:first-child > * {
    padding-top: 0.4rem;
  }
  .stages .cell {
    position: relative;
    isolation: isolate;
    line-height: 1.5;
  }
  .bar {
    position: absolute;
    inset: 1px auto auto 0;
    height: 1.45rem;
    background: var(--accent-tint);
    z-index: -1;
  }
  .cell .score {
    float: right;
    color: var(--soft);
    font-size: 0.75rem;
    line-height: 1.7;
  }
  .cell .reason {
    display: block;
    font-size: 0.75rem;
    line-height: 1.3;
    color: var(--soft);
  }
  .cell.dead {
    line-height: 1.35;
    color: var(--lost);
  }
  .cell.dead .reason {
    display: inline;
    margin-left: 0.3rem;
  }
  .cell.unseen {
    color: var(--soft);
  }
  .cell.cut {
    box-shadow: inset 0 -2px 0 var(--lost);
  }
  .cell.drawn .bar {
    background: var(--draw-tint);
    box-shadow: inset 0 0 0 1px var(--draw);
  }
  .cell.drawn .value {
    font-weight: 700;
  }
  button.token {
    font: 0.95rem/1.4 ui-serif, Georgia, serif;
    max-width: 100%;
    overflow: hidden;
    text-overflow: ellipsis;
    white-space: pre;
    padding: 0 0.4rem;
    border-color: transparent;
    background: none;
  }
  button.token:disabled {
    opacity: 1;
  }
  tr.drawn button.token {
    background: var(--draw-tint);
    border-color: var(--draw);
    font-weight: 600;
  }
  .prompt-token.special {
    font: 0.75rem system-ui, sans-serif;
    margin-right: 0.4em;
  }
  .unfold button {
    border: 0;
    background: none;
    color: var(--soft);
    padding: 0.2rem 0;
    font-size: 0.8rem;
    text-decoration: underline dotted;
  }
  .rest > * {
    color: var(--soft);
    border-top: 1px solid var(--line);
  }

  /* Charts */
  h2 {
    font: 600 1rem/1.3 ui-serif, Georgia, serif;
    margin: 0 0 0.4rem;
  }
  figcaption {
    color: var(--soft);
    font-size: 0.85rem;
    margin-top: 0.3rem;
    max-width: 46rem;
  }
  figcaption b,
  figcaption q {
    color: var(--ink);
  }
  .die-bar {
    position: relative;
    height: 2.6rem;
    margin-top: 0.8rem;
    border: 1px solid var(--line);
  }
  .slice {
    position: absolute;
    inset-block: 0;
    padding: 0;
    border: 0;
    border-right: 1px solid var(--paper);
    border-radius: 0;
    background: var(--accent-tint);
    overflow: hidden;
    white-space: nowrap;
    font: 0.85rem/2.6rem ui-serif, Georgia, serif;
    text-align: center;
  }
  /* A slice too narrow for its token says nothing; its title and the table do. */
  .slice {
    container-type: inline-size;
  }
  @container (max-width: 3rem) {
    .slice > span {
      display: none;
    }
  }
  .slice.odd {
    background: color-mix(in srgb, var(--accent-tint) 60%, var(--sheet));
  }
  .slice.drawn {
    background: var(--draw-tint);
    box-shadow: inset 0 0 0 1px var(--draw);
    font-weight: 600;
  }
  .slice:disabled {
    opacity: 1;
  }
  .slice.others {
    background: repeating-linear-gradient(-45deg, transparent 0 4px, var(--line) 4px 5px);
    color: var(--soft);
    border: 0;
  }
  .u {
    position: absolute;
    top: -0.5rem;
    bottom: -0.3rem;
    width: 0;
    border-left: 2px solid var(--ink);
    pointer-events: none;
  }
  .u::before {
    content: "";
    position: absolute;
    left: -6px;
    top: -1px;
    border: 5px solid transparent;
    border-top: 7px solid var(--ink);
    border-bottom: 0;
  }
  .die-scale {
    position: relative;
    display: flex;
    justify-content: space-between;
    font-size: 0.8rem;
    color: var(--soft);
    margin-top: 0.25rem;
    min-height: 1.2rem;
  }
  .u-label {
    position: absolute;
    transform: translateX(-50%);
    background: var(--paper);
    color: var(--ink);
    padding-inline: 0.3rem;
    white-space: nowrap;
  }
  svg {
    display: block;
    width: 100%;
    height: auto;
  }
  .grid {
    stroke: var(--line);
  }
  .tick,
  .cut-label {
    fill: var(--soft);
    font: 11px system-ui, sans-serif;
  }
  .cut-label {
    fill: var(--lost);
    paint-order: stroke;
    stroke: var(--paper);
    stroke-width: 3px;
  }
  .ranks .alive {
    fill: color-mix(in srgb, var(--accent) 65%, var(--paper));
  }
  .ranks .dead {
    fill: color-mix(in srgb, var(--soft) 35%, transparent);
  }
  .ranks .cut {
    stroke: var(--lost);
    stroke-dasharray: 4 3;
  }
  :is(.compare, .sequences, .by-hand, .frameworks, .models) > summary {
    cursor: pointer;
  }
  :is(.compare, .sequences, .by-hand, .frameworks, .models) > summary h2 {
    display: inline;
  }
  .rivals {
    display: grid;
    margin-top: 0.6rem;
    gap: 1.1rem;
    grid-template-columns: minmax(0, 1fr);
    justify-items: start;
  }
  .rivals > :is(section, .scroller, details) {
    width: 100%;
  }
  .rival-head {
    display: grid;
    grid-template-columns: auto minmax(0, 1fr) auto;
    gap: 0.6rem;
    align-items: baseline;
  }
  .rival-head :is(code, textarea) {
    font: 0.85rem/1.5 ui-monospace, monospace;
    overflow-wrap: anywhere;
  }
  .rival .die-bar {
    height: 1.8rem;
  }
  .rival .slice {
    line-height: 1.8rem;
  }
  h3 {
    font: 600 0.95rem/1.3 system-ui, sans-serif;
    margin: 0 0 0.3rem;
  }
  h3 code {
    font-weight: normal;
    font-size: 0.8rem;
    color: var(--soft);
  }
  .bench {
    display: grid;
    grid-template-columns: minmax(8rem, 1fr) minmax(0, 2.5fr);
    gap: 0.8rem;
    width: 100%;
  }
  .bench-fields {
    display: flex;
    flex-wrap: wrap;
    gap: 0.6rem 0.8rem;
    align-items: end;
  }
  .bench-fields label > span {
    display: block;
  }
  .bench-pipeline {
    flex: 1 1 100%;
  }
  .bench-pipeline input,
  .row-text textarea {
    width: 100%;
    font: 0.85rem/1.5 ui-monospace, monospace;
  }
  input.short {
    width: 6rem;
  }
  .check {
    display: inline-flex;
    gap: 0.35rem;
    align-items: center;
    margin-right: 0.8rem;
  }
  .sheet table {
    border-collapse: collapse;
    font-size: 0.85rem;
  }
  .sheet :is(td, th) {
    text-align: right;
    font-weight: normal;
    padding: 0.15rem 0.9rem 0.15rem 0;
    white-space: nowrap;
  }
  .sheet thead th {
    color: var(--soft);
    border-bottom: 1px solid var(--line);
  }
  .sheet :is(th:first-child, .why) {
    text-align: left;
  }
  .sheet .why {
    color: var(--soft);
    font-size: 0.8rem;
  }
  .sheet .removed,
  .sheet .removed .why {
    color: var(--lost);
  }
  .sheet .sum > * {
    border-top: 1px solid var(--ink);
  }
  .questions {
    display: grid;
    gap: 0.6rem;
    justify-items: start;
  }
  fieldset {
    border: 1px solid var(--line);
    border-radius: 6px;
    margin: 0;
    padding: 0.5rem 0.8rem;
  }
  .mark.right {
    color: var(--accent);
  }
  .mark.wrong {
    color: var(--lost);
  }
  .file {
    display: block;
    margin-top: 0.3rem;
  }
  .file input {
    max-width: 100%;
    font-size: 0.85rem;
  }
  .models .actions {
    align-items: end;
    margin: 0.5rem 0;
  }
  .address {
    flex: 1 1 16rem;
  }
  .address :is(span, input) {
    display: block;
    width: 100%;
  }
  .legend.model {
    overflow-wrap: anywhere;
  }
  .models .twin table :is(th, td) {
    text-align: left;
    vertical-align: top;
    padding-block: 0.3rem;
    overflow-wrap: anywhere;
  }
  .models .twin table td {
    white-space: nowrap;
  }
  .models small {
    display: block;
    color: var(--soft);
  }
  .hash {
    display: block;
  }
  .finder {
    margin-top: 0.8rem;
  }
  .finder input {
    display: block;
    width: 18rem;
    max-width: 100%;
  }
  .found {
    display: flex;
    flex-wrap: wrap;
    gap: 0.3rem;
    margin-top: 0.4rem;
  }
  .found button {
    border-color: var(--line);
  }
  .found [aria-pressed="true"] {
    border-color: var(--accent);
    background: var(--accent-tint);
  }
  .pinned > * {
    background: color-mix(in srgb, var(--accent-tint) 22%, var(--paper));
  }
  .pinned th {
    white-space: nowrap;
  }
  .rival-head.framework {
    grid-template-columns: auto minmax(0, 1fr);
  }
  code.own,
  pre {
    font: 0.85rem/1.5 ui-monospace, monospace;
    overflow-wrap: anywhere;
  }
  pre {
    background: var(--sheet);
    border: 1px solid var(--line);
    border-radius: 6px;
    padding: 0.6rem 0.8rem;
    overflow-x: auto;
    margin: 0.5rem 0;
  }
  .notes {
    color: var(--soft);
    font-size: 0.85rem;
    margin: 0.3rem 0 0.5rem;
    padding-left: 1.2rem;
  }
  .actions {
    display: flex;
    flex-wrap: wrap;
    gap: 0.5rem;
  }
  .parting {
    font-size: 0.9rem;
    max-width: 60rem;
    overflow-wrap: anywhere;
  }
  .parting code {
    font-size: 0.85em;
    color: var(--soft);
  }
  .warning {
    font-size: 0.85rem;
    border-left: 3px solid var(--draw);
    padding-left: 0.6rem;
    max-width: 60rem;
    overflow-wrap: anywhere;
  }
  .hold {
    font-size: 0.85rem;
    margin-bottom: 0.4rem;
  }
  .changed {
    max-width: 46rem;
  }
  .compare > summary h3 {
    display: inline;
  }
  :is(.family, .penalised) .scroller {
    border: 0;
  }
  .plain .words {
    min-width: 9rem;
  }
  .family {
    margin-top: 0.8rem;
  }
  .penalties > section + section {
    margin-top: 0.8rem;
  }
  .fate {
    max-width: 46rem;
    font-size: 0.9rem;
    margin-bottom: 0.3rem;
  }
  .plain {
    border-collapse: collapse;
    font-size: 0.85rem;
  }
  .plain caption {
    text-align: left;
    color: var(--soft);
  }
  .plain :is(td, th) {
    text-align: right;
    font-weight: normal;
    padding: 0.1rem 0.8rem 0.1rem 0;
    border-bottom: 1px solid var(--line);
  }
  .plain :is(th:first-child, .words) {
    text-align: left;
  }
  .plain thead th {
    color: var(--soft);
  }
  .plain [aria-pressed="true"] {
    border-color: var(--accent);
    background: var(--accent-tint);
  }
  .history {
    font: 1rem/1.9 ui-serif, Georgia, serif;
    color: var(--soft);
    white-space: pre-wrap;
    overflow-wrap: anywhere;
  }
  .history .special {
    font: 0.75rem system-ui, sans-serif;
    margin-right: 0.4em;
  }
  .history .in-view {
    color: var(--ink);
    border-bottom: 2px solid var(--accent-tint);
  }
  .history .earlier {
    background: var(--accent-tint);
  }
  .history .now {
    background: var(--draw-tint);
  }
  .history .breaker {
    box-shadow: inset 2px 0 0 var(--lost);
    padding-left: 3px;
  }
  th .token {
    font-family: ui-serif, Georgia, serif;
    font-size: 0.95rem;
  }
  .places > summary {
    cursor: pointer;
    color: var(--soft);
  }
  .places p {
    max-width: 60ch;
    margin-block: 0.4rem;
  }
  .places table {
    border-collapse: collapse;
    margin-block: 0.6rem;
  }
  .places :is(td, th) {
    text-align: left;
    font-weight: normal;
    padding: 0.1rem 0.9rem 0.1rem 0;
    border-bottom: 1px solid var(--line);
    vertical-align: top;
    /* A stage's long name must not push the reasons out of a narrow page. */
    overflow-wrap: anywhere;
    min-width: 4.5rem;
  }
  .twin {
    font-size: 0.85rem;
    margin-top: 0.3rem;
  }
  .twin summary {
    color: var(--soft);
    cursor: pointer;
  }
  .twin table {
    border-collapse: collapse;
    margin-top: 0.4rem;
  }
  .twin caption {
    text-align: left;
    color: var(--soft);
  }
  .twin :is(td, th):not(.plain *) {
    text-align: right;
    font-weight: normal;
    padding: 0.1rem 0.8rem 0.1rem 0;
    border-bottom: 1px solid var(--line);
  }
  .edits :is(td, th):last-child {
    text-align: left;
  }
  q.token {
    font-family: ui-serif, Georgia, serif;
    quotes: "“" "”";
    white-space: pre;
  }

  @media (prefers-reduced-motion: no-preference) {
    .bar {
      transition: width 120ms ease-out;
    }
  }
  @media (max-width: 30rem) {
    .run {
      gap: 0.3rem;
    }
    .run > button {
      flex: 1 1 auto;
      min-width: 0;
      padding-inline: 0.35rem;
      font-size: 0.95rem;
    }
    .bench {
      grid-template-columns: minmax(0, 1fr);
    }
    .seed {
      width: 100%;
      flex-wrap: nowrap;
    }
    .models :is(table, caption, tbody, tr, tr > th) {
      display: block;
    }
    .models thead {
      display: none;
    }
    .models .twin :is(tr > th, td) {
      border: none;
      padding-block: 0.1rem;
    }
    .models tr {
      padding-block: 0.4rem;
      border-bottom: 1px solid var(--line);
    }
    .seed input {
      flex: 1 1 0;
    }
    .stages :is(td, th):first-child {
      min-width: 4.6rem;
      max-width: 5.6rem;
      padding-inline: 0.2rem;
    }
  }
  @media (forced-colors: active) {
    .bar,
    .slice {
      forced-color-adjust: none;
    }
  }
`;
