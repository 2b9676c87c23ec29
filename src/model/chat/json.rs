//! Values as JSON, as the filter `tojson` of chat templates writes them.
//!
//! Source: Python's `json.dumps`, which the Python package `transformers` puts in the place of
//! Jinja's own filter.

use minijinja::{
    Error, ErrorKind, Value,
    value::{Kwargs, ValueKind},
};

use super::{MOST_BYTES, too_much};

/// How JSON is laid out.
struct Layout {
    /// Spaces by which each level is set in; everything is on one line without.
    indent: Option<usize>,
    between: String,
    after_key: String,
    sort_keys: bool,
}

/// `value | tojson`, with the arguments that `json.dumps` has.
pub(super) fn to_json(value: &Value, arguments: &Kwargs) -> Result<String, Error> {
    if arguments.get::<Option<bool>>("ensure_ascii")? == Some(true) {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson(ensure_ascii=true) is not supported"));
    }
    let indent: Option<usize> = arguments.get("indent")?;
    let separators: Option<Vec<String>> = arguments.get("separators")?;
    let (between, after_key) = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }, ": "),
        Some([between, after_key]) => (between.as_str(), after_key.as_str()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "tojson takes two separators")),
    };
    let sort_keys = arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let layout = Layout { indent, between: between.to_owned(), after_key: after_key.to_owned(), sort_keys };
    arguments.assert_all_used()?;
    let mut text = String::new();
    layout.write(value, 0, &mut text)?;
    Ok(text)
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Layout {
    fn write(&self, value: &Value, depth: usize, text: &mut String) -> Result<(), Error> {
        if text.len() > MOST_BYTES {
            return Err(too_much());
        }
        match value.kind() {
            ValueKind::None => text.push_str("null"),
            ValueKind::Bool => text.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => text.push_str(&value.to_string()),
            ValueKind::String => text.push_str(&quoted(value.as_str().unwrap_or_default())),
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.list(text, depth, ['[', ']'], &items, |item, text| self.write(item, depth + 1, text))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.list(text, depth, ['{', '}'], &keys, |key, text| {
                    text.push_str(&quoted(&key.to_string()));
                    text.push_str(&self.after_key);
                    self.write(&value.get_item(key)?, depth + 1, text)
                })?;
            }
            kind => {
                let message = format!("a value of the kind {kind} cannot be written as JSON");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
        Ok(())
    }

    fn list(
        &self,
        text: &mut String,
        depth: usize,
        [open, close]: [char; 2],
        items: &[Value],
        write: impl Fn(&Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let line = |text: &mut String, depth: usize| {
            if let Some(indent) = self.indent {
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', indent * depth));
            }
        };
        text.push(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                text.push_str(&self.between);
            }
            line(text, depth + 1);
            write(item, text)?;
        }
        if !items.is_empty() {
            line(text, depth);
        }
        text.push(close);
        Ok(())
    }
}
