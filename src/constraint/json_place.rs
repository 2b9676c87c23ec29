//! What of a JSON text that is being written is still open.

use std::fmt::Write as _;

/// An object or a list that is open.
#[derive(Debug)]
enum Open {
    /// The key whose value comes or is being written, once it is known.
    Object(Option<String>),
    /// The index of the item that comes or is being written.
    List(usize),
}

/// A beginning of a JSON text, read one character at a time.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
struct Scanner {
    open: Vec<Open>,
    in_string: bool,
    escaped: bool,
    is_key: bool,
    expects_key: bool,
    /// A number or a word being written, or the text of a key.
    word: String,
    /// Whether the latest value is complete.
    complete: bool,
}

impl Scanner {
    fn read(&mut self, c: char) {
        if self.in_string {
            self.read_in_string(c);
            return;
        }
        match c {
            '"' => {
                self.in_string = true;
                self.is_key = self.expects_key;
                self.word.clear();
            }
            '{' | '[' => {
                self.open.push(if c == '{' { Open::Object(None) } else { Open::List(0) });
                self.expects_key = c == '{';
                self.complete = false;
            }
            '}' | ']' => {
                self.open.pop();
                self.word.clear();
                self.complete = true;
                self.expects_key = false;
            }
            ':' => {
                self.expects_key = false;
                self.complete = false;
            }
            ',' => {
                self.word.clear();
                self.complete = false;
                match self.open.last_mut() {
                    Some(Open::Object(key)) => {
                        *key = None;
                        self.expects_key = true;
                    }
                    Some(Open::List(index)) => *index += 1,
                    None => {}
                }
            }
            c if c.is_whitespace() => {
                self.complete |= !self.word.is_empty();
                self.word.clear();
            }
            c => self.word.push(c),
        }
    }

    fn read_in_string(&mut self, c: char) {
        match c {
            _ if self.escaped => {
                self.escaped = false;
                self.word.push(c);
            }
            '\\' => self.escaped = true,
            '"' => {
                self.in_string = false;
                let word = std::mem::take(&mut self.word);
                match self.open.last_mut() {
                    Some(Open::Object(key)) if self.is_key => *key = Some(word),
                    _ => self.complete = true,
                }
            }
            _ => self.word.push(c),
        }
    }

    /// The path to the value that is open, such as `$.user.tags[1]`.
    fn path(&self) -> String {
        let mut path = "$".to_owned();
        for place in &self.open {
            // Writing to a String cannot fail.
            let _ = match place {
                Open::Object(Some(key)) => write!(path, ".{key}"),
                Open::Object(None) => Ok(()),
                Open::List(index) => write!(path, "[{index}]"),
            };
        }
        path
    }

    fn describe(&self) -> String {
        let path = self.path();
        if self.in_string {
            return if self.is_key { format!("a key of {path}") } else { format!("a string at {path}") };
        }
        if let Some(first) = self.word.chars().next() {
            let kind = if first.is_ascii_digit() || first == '-' { "number" } else { "word" };
            return format!("a {kind} at {path}");
        }
        match self.open.last() {
            None if self.complete => format!("nothing: the value at {path} is complete"),
            None => format!("the beginning of {path}"),
            Some(_) if self.complete => format!("after the value at {path}"),
            Some(Open::Object(None)) => format!("the object {path}, before a key"),
            Some(Open::Object(Some(_))) => format!("before the value at {path}"),
            Some(Open::List(_)) => format!("before the item {path}"),
        }
    }
}

/// Says where a beginning of a JSON text ends: what is open, and the path to it.
///
/// # Examples
/// ```
/// use logitscope::constraint::json_place::describe;
///
/// assert_eq!(describe(r#"{"user": {"tags": ["a", "b"#), "a string at $.user.tags[1]");
/// assert_eq!(describe(r#"{"na"#), "a key of $");
/// assert_eq!(describe(r#"{"n": 12"#), "a number at $.n");
/// assert_eq!(describe(r#"{"n": 12}"#), "nothing: the value at $ is complete");
/// ```
#[must_use]
pub fn describe(text: &str) -> String {
    let mut scanner = Scanner::default();
    for c in text.chars() {
        scanner.read(c);
    }
    scanner.describe()
}
