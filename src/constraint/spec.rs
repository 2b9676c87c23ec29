//! The text form of constraints, such as `regex("[0-9]+")`, and what each stands for.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    call::Arguments,
    constraint::{Loader, gbnf},
    error::{Error, ErrorCode, Result},
};

/// What a constraint is made of, once files are read and dialects translated.
#[derive(Debug, Clone, PartialEq)]
pub enum Grammar {
    /// A grammar in the Lark dialect.
    Lark(String),
    /// A regular expression.
    Regex(String),
    /// A JSON schema.
    Schema(Value),
}

/// A constraint, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The text it was read from.
    pub text: String,
    /// What it is made of.
    pub grammar: Grammar,
    /// Whether the text is JSON, in which white space may not go on for ever.
    pub json: bool,
}

/// The names of the constraints there are.
pub const NAMES: &[&str] = &["regex", "json_schema", "json", "lark", "gbnf", "choice", "tool", "sql_select"];

/// A `SELECT` statement of SQL: columns and functions, joins, conditions, groups, order, limit.
pub const SQL_SELECT: &str = r#"
start: query ";"?
query: SELECT " " (DISTINCT " ")? columns " " FROM " " table (" " join)* (" " WHERE " " condition)? (" " GROUP " " names (" " HAVING " " condition)?)? (" " ORDER " " orders)? (" " LIMIT " " INTEGER)?
columns: "*" | column ("," " "? column)*
column: value (" " AS " " NAME)?
table: NAME (" " AS " " NAME)? | "(" query ")" " " AS " " NAME
join: ((INNER | LEFT | RIGHT) " ")? JOIN " " table " " ON " " condition
names: name ("," " "? name)*
orders: order ("," " "? order)*
order: name (" " (ASC | DESC))?
condition: test (" " (AND | OR) " " test)*
test: (NOT " ")? (comparison | "(" condition ")")
comparison: value " "? COMPARATOR " "? value | value " " (NOT " ")? LIKE " " STRING | value " " IS " " (NOT " ")? NULL | value " " (NOT " ")? IN " " "(" (query | literals) ")" | value " " BETWEEN " " value " " AND " " value
literals: literal ("," " "? literal)*
value: term (" "? /[-+*\/%]/ " "? term)*
term: FUNCTION "(" ("*" | (DISTINCT " ")? value) ")" | name | literal | "(" value ")"
name: NAME ("." NAME)?
literal: INTEGER | DECIMAL | STRING | NULL
SELECT: /(?i)select/
DISTINCT: /(?i)distinct/
FROM: /(?i)from/
WHERE: /(?i)where/
GROUP: /(?i)group by/
HAVING: /(?i)having/
ORDER: /(?i)order by/
LIMIT: /(?i)limit/
AS: /(?i)as/
INNER: /(?i)inner/
LEFT: /(?i)left/
RIGHT: /(?i)right/
JOIN: /(?i)join/
ON: /(?i)on/
AND: /(?i)and/
OR: /(?i)or/
NOT: /(?i)not/
LIKE: /(?i)like/
IS: /(?i)is/
IN: /(?i)in/
BETWEEN: /(?i)between/
NULL: /(?i)null/
ASC: /(?i)asc/
DESC: /(?i)desc/
FUNCTION: /(?i)(count|sum|avg|min|max|lower|upper|length|abs|round)/
COMPARATOR: /=|<>|!=|<=?|>=?/
NAME: /[A-Za-z_][A-Za-z0-9_]{0,30}/
INTEGER: /[0-9]{1,12}/
DECIMAL: /[0-9]{1,12}\.[0-9]{1,12}/
STRING: /'([^'\n]|''){0,80}'/
"#;

impl Spec {
    /// Reads the text form. `load` reads the files that it names.
    ///
    /// # Errors
    /// `syntax` with the place, in the text or in the grammar it holds; what `load` refuses;
    /// `unknown_stage` for a name that is none.
    ///
    /// # Examples
    /// ```
    /// use logitscope::constraint::{no_files, spec::{Grammar, Spec}};
    ///
    /// let spec = Spec::parse(r#"choice(["yes", "no"])"#, &no_files)?;
    /// assert_eq!(spec.grammar, Grammar::Regex("(?:yes|no)".to_owned()));
    /// let error = Spec::parse(r#"regex("a(b")"#, &no_files).unwrap_err();
    /// assert_eq!(error.code.as_str(), "syntax");
    /// assert!(error.message.contains("at position 1"), "{error}");
    /// # Ok::<(), logitscope::Error>(())
    /// ```
    pub fn parse(text: &str, load: Loader) -> Result<Self> {
        let mut call = match Arguments::parse(text) {
            Ok(call) => call,
            // A path may stand without quotes.
            Err(error) => match bare_path(text) {
                Some(quoted) => Arguments::parse(&quoted)?,
                None => return Err(error),
            },
        };
        let (grammar, json) = match call.name() {
            "regex" => {
                let pattern = string(&mut call, "pattern")?;
                check_regex(&pattern)?;
                (Grammar::Regex(pattern), false)
            }
            "choice" => (Grammar::Regex(choice(&mut call)?), false),
            "lark" => (Grammar::Lark(source(&mut call, "grammar", load)?), false),
            "gbnf" => (Grammar::Lark(gbnf::to_lark(&source(&mut call, "grammar", load)?)?), false),
            "json" => (Grammar::Schema(with_white_space(json!({}), &mut call)?), true),
            "json_schema" => {
                let schema = document(&mut call, "schema", load)?;
                (Grammar::Schema(with_white_space(schema, &mut call)?), true)
            }
            "tool" => {
                let tools = document(&mut call, "tools", load)?;
                let schema = tool_schema(&tools)?;
                (Grammar::Schema(with_white_space(schema, &mut call)?), true)
            }
            "sql_select" => (Grammar::Lark(SQL_SELECT.to_owned()), false),
            name => {
                let message = format!("there is no constraint `{name}`; there are {}", NAMES.join(", "));
                return Err(call.fault(ErrorCode::UnknownStage, message));
            }
        };
        call.finish()?;
        Ok(Self { text: text.trim().to_owned(), grammar, json })
    }
}

/// `json_schema(a/b.json)` with the path in quotes, if it looks like that.
fn bare_path(text: &str) -> Option<String> {
    let (name, rest) = text.split_once('(')?;
    let path = rest.trim_end().strip_suffix(')')?.trim();
    let plain = !path.is_empty() && !path.contains(['"', '{', '[', '\n']);
    plain.then(|| format!("{name}({})", Value::from(path)))
}

fn string(call: &mut Arguments, param: &'static str) -> Result<String> {
    let (position, value) = call.only(param)?;
    match value {
        Value::String(text) => Ok(text),
        other => Err(call
            .fault(ErrorCode::WrongType, format!("{}.{param} is {other}, but must be a text", call.name()))
            .param(param)
            .position(position)),
    }
}

/// A grammar given in place, or the file that holds it.
fn source(call: &mut Arguments, param: &'static str, load: Loader) -> Result<String> {
    let text = string(call, param)?;
    // A grammar has a rule, and a path has none.
    let in_place = text.contains("::=") || text.contains('\n') || text.contains(": ");
    if in_place { Ok(text) } else { load(&text) }
}

/// A JSON document given in place, as JSON or as a text with JSON, or the file that holds it.
fn document(call: &mut Arguments, param: &'static str, load: Loader) -> Result<Value> {
    let (position, value) = call.only(param)?;
    let text = match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => text,
        Value::String(path) => load(&path)?,
        Value::Object(_) | Value::Array(_) | Value::Bool(_) => return Ok(value),
        other => {
            let message = format!("{}.{param} is {other}, but must be a JSON object or a file", call.name());
            return Err(call.fault(ErrorCode::WrongType, message).param(param).position(position));
        }
    };
    serde_json::from_str(&text).map_err(|error| {
        let place = offset(&text, error.line(), error.column());
        Error::new(ErrorCode::Syntax, format!("{}: the document is not JSON: {error}", call.name()))
            .stage(call.name())
            .param(param)
            .position(place)
    })
}

/// The byte offset of a line and a column, both counted from 1.
pub(crate) fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

/// `whitespace=compact` allows none but in strings.
fn with_white_space(mut schema: Value, call: &mut Arguments) -> Result<Value> {
    let compact = call.word("whitespace", &["flexible", "compact"])? == "compact";
    if compact {
        if schema == json!(true) {
            schema = json!({});
        }
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("x-guidance".to_owned(), json!({ "whitespace_flexible": false }));
        }
    }
    Ok(schema)
}

fn choice(call: &mut Arguments) -> Result<String> {
    let (position, value) = call.only("of")?;
    let texts: Option<Vec<&str>> = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
    match texts {
        Some(texts) if !texts.is_empty() => {
            let texts: Vec<String> = texts.into_iter().map(gbnf::regex_literal).collect();
            Ok(format!("(?:{})", texts.join("|")))
        }
        _ => Err(call
            .fault(ErrorCode::WrongType, format!("choice.of is {value}, but must be a list of texts"))
            .param("of")
            .position(position)),
    }
}

fn check_regex(pattern: &str) -> Result<()> {
    let fault = |message: String, offset: usize| {
        Error::new(ErrorCode::Syntax, format!("regex: {message} at position {offset} of the pattern"))
            .stage("regex")
            .position(offset)
    };
    match regex_syntax::ast::parse::Parser::new().parse(pattern) {
        Ok(_) => Ok(()),
        Err(error) => Err(fault(error.kind().to_string(), error.span().start.offset)),
    }
}

/// The schema of a call of one of several functions, as OpenAI's and Anthropic's tool
/// definitions describe them.
///
/// `OpenAI`: `{"type": "function", "function": {"name", "parameters"}}`, or its inner object;
/// the call is `{"name": …, "arguments": {…}}`. Anthropic: `{"name", "input_schema"}`; the call
/// is `{"name": …, "input": {…}}`. A list of either is a choice.
///
/// # Errors
/// `bad_input`, which says what of a definition is missing.
///
/// # Examples
/// ```
/// use logitscope::constraint::spec::tool_schema;
/// use serde_json::json;
///
/// let schema = tool_schema(&json!({"name": "now", "input_schema": {"type": "object"}}))?;
/// assert_eq!(schema["properties"]["name"], json!({"const": "now"}));
/// assert_eq!(schema["required"], json!(["name", "input"]));
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn tool_schema(tools: &Value) -> Result<Value> {
    let list = match tools {
        Value::Array(list) => list.clone(),
        // Requests carry them under this name.
        Value::Object(fields) if fields.contains_key("tools") => {
            fields["tools"].as_array().cloned().unwrap_or_default()
        }
        one => vec![one.clone()],
    };
    let mut calls = Vec::new();
    for tool in &list {
        let inner = tool.get("function").unwrap_or(tool);
        let refuse = |what: &str| {
            Error::new(ErrorCode::BadInput, format!("the tool {inner} has no {what}")).stage("tool")
        };
        let name = inner["name"].as_str().ok_or_else(|| refuse("`name`"))?;
        let (field, arguments) = match (inner.get("parameters"), inner.get("input_schema")) {
            (Some(parameters), _) => ("arguments", parameters.clone()),
            (None, Some(input)) => ("input", input.clone()),
            // OpenAI allows a function without parameters.
            (None, None) if tool.get("function").is_some() => {
                ("arguments", json!({ "type": "object", "properties": {}, "additionalProperties": false }))
            }
            (None, None) => return Err(refuse("`parameters` or `input_schema`")),
        };
        calls.push(json!({
            "type": "object",
            "properties": { "name": { "const": name }, field: arguments },
            "required": ["name", field],
            "additionalProperties": false,
        }));
    }
    match calls.len() {
        0 => Err(Error::new(ErrorCode::BadInput, "there is no tool in the list").stage("tool")),
        1 => Ok(calls.remove(0)),
        _ => Ok(json!({ "anyOf": calls })),
    }
}

/// The part of a schema that a compiler refuses, as a JSON pointer: the smallest one inside
/// which nothing else is refused.
pub(crate) fn place_in_schema(schema: &Value, refused: &dyn Fn(&Value) -> bool) -> String {
    let mut pointer = "#".to_owned();
    let mut at = schema;
    let definitions = ["$defs", "definitions"];
    'down: loop {
        let Some(fields) = at.as_object() else { return pointer };
        let mut children: Vec<(String, &Value)> = Vec::new();
        for (name, value) in fields {
            match name.as_str() {
                "properties" | "patternProperties" | "$defs" | "definitions" => {
                    for (key, child) in value.as_object().into_iter().flatten() {
                        children.push((format!("/{name}/{key}"), child));
                    }
                }
                "items" | "additionalProperties" | "not" | "contains" => {
                    children.push((format!("/{name}"), value));
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    for (index, child) in value.as_array().into_iter().flatten().enumerate() {
                        children.push((format!("/{name}/{index}"), child));
                    }
                }
                _ => {}
            }
        }
        for (step, child) in children {
            let mut alone = child.clone();
            if let Some(alone) = alone.as_object_mut() {
                for name in definitions {
                    if let Some(shared) = schema.get(name) {
                        alone.entry(name).or_insert_with(|| shared.clone());
                    }
                }
            }
            // Shared definitions may themselves be what is refused; then they are not gone
            // into twice.
            if refused(&alone)
                && !(definitions.iter().any(|name| schema.get(name).is_some())
                    && refused(&only_shared(schema)))
            {
                // Writing to a String cannot fail.
                let _ = write!(pointer, "{step}");
                at = child;
                continue 'down;
            }
        }
        return pointer;
    }
}

fn only_shared(schema: &Value) -> Value {
    let mut alone = json!({ "type": "null" });
    for name in ["$defs", "definitions"] {
        if let Some(shared) = schema.get(name) {
            alone[name] = shared.clone();
        }
    }
    alone
}
