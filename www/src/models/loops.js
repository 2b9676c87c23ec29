// Loops of templates that end early. The engine forgets what a turn of a loop wrote before its
// `break` or `continue`, so parsed templates are rewritten to do without: what follows a
// `continue` stands in the other branch, and a `break` waits for the beginning of the next turn.

/**
 * @typedef {{ type: string, body?: Statement[], alternate?: Statement[] } & Record<string, unknown>} Statement
 */

/** The name of a variable that no template has. */
const OVER = { type: "Identifier", value: " over" };

/** @type {Statement} */
const SET_OVER = {
  type: "Set",
  assignee: OVER,
  value: { type: "IntegerLiteral", value: 1 },
  body: [],
};

/** @type {Statement} */
const END_IF_OVER = { type: "If", test: OVER, body: [{ type: "Break" }], alternate: [] };

/**
 * Statements without a `break` or `continue` that comes after text.
 * @param {Statement[]} statements
 * @returns {Statement[]}
 */
export function withoutJumps(statements) {
  return statements.map((statement) => {
    const { type, body, alternate } = statement;
    const inside = body && withoutJumps(body);
    if (type === "For" && inside?.some(jumps)) {
      return { ...statement, body: [END_IF_OVER, ...turn(inside)] };
    }
    const other = alternate && withoutJumps(alternate);
    return { ...statement, ...(inside && { body: inside }), ...(other && { alternate: other }) };
  });
}

/**
 * One turn of a loop, whose text is kept however it ends.
 * @param {Statement[]} statements
 * @returns {Statement[]}
 */
function turn(statements) {
  const at = statements.findIndex(jumps);
  const statement = statements[at];
  if (!statement) return statements;
  const before = statements.slice(0, at);
  if (statement.type === "Continue") return before;
  if (statement.type === "Break") return [...before, SET_OVER];
  const rest = statements.slice(at + 1);
  const { body = [], alternate = [] } = statement;
  const whole = { body: turn([...body, ...rest]), alternate: turn([...alternate, ...rest]) };
  return [...before, { ...statement, ...whole }];
}

/** Whether a statement may end a turn of the loop that it stands in. @param {Statement} statement @returns {boolean} */
function jumps({ type, body = [], alternate = [] }) {
  if (type === "If") return body.some(jumps) || alternate.some(jumps);
  return type === "Break" || type === "Continue";
}
