//! Chat templates: how a model wants turns of a conversation written as one text.
//!
//! A GGUF file carries the template as Jinja source (`tokenizer.chat_template`). It is
//! applied only when somebody asks for it, and what it makes is a prompt like any other, so
//! that everybody sees what the model is given.
//!
//! Source: the conventions of the Python package `transformers`, on whose template engine
//! most of these templates were written; `tests/chat.rs` holds them to it.

mod date;
mod json;

use std::{fmt::Write as _, io, sync::mpsc, thread, time::Duration};

use minijinja::{
    Environment, ErrorKind, Value, context,
    syntax::SyntaxConfig,
    value::{Kwargs, ValueKind},
};
use serde::{Deserialize, Serialize};

pub use date::Date;

use super::LanguageModel;
use crate::{Error, ErrorCode, error::Result};

/// Steps that a template may take: far more than any sensible one.
const MOST_STEPS: u64 = 100_000;
/// Bytes that a template may write: more than any context holds.
const MOST_BYTES: usize = 4_000_000;
/// Stack for values as deeply nested as so many steps can make them.
const STACK_BYTES: usize = 128 << 20;
/// How long one step may take that writes a value of exponential size as text.
const MOST_TIME: Duration = Duration::from_secs(5);

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
}

impl Message {
    /// What the user says.
    pub fn from_user(content: impl Into<String>) -> Self {
        Self { role: "user".to_owned(), content: content.into() }
    }
}

/// The prompt that asks a model for the next turn, by its own template.
///
/// A beginning-of-sequence token that the template writes and the tokenizer adds is left to
/// the tokenizer.
///
/// # Errors
/// `model_unsupported` when the model has no template, or it cannot be applied, as when it asks for
/// the `date` of the day and there is none.
pub fn prompt(model: &dyn LanguageModel, messages: &[Message], date: Option<Date>) -> Result<String> {
    let template = model.info().chat_template.as_deref().ok_or_else(|| {
        Error::new(ErrorCode::ModelUnsupported, "the model's file has no chat template").param("chat")
    })?;
    let text = |token: &Option<String>| token.clone().unwrap_or_default();
    let (bos, eos) = (text(&model.info().bos_token), text(&model.info().eos_token));
    let prompt = render(template, messages, &bos, &eos, date)?;
    let added = model.encode("", true, true)?.ids.first().copied();
    match prompt.strip_prefix(&bos) {
        Some(rest) if added.is_some() && added == model.vocab().bos => Ok(rest.to_owned()),
        _ => Ok(prompt),
    }
}

/// A template applied to messages, the next turn of the assistant begun.
///
/// # Errors
/// `model_unsupported` when the template is malformed, refuses the messages, asks for a `date` that
/// is not given, does not end, or takes or writes too much.
///
/// # Examples
/// ```
/// use logitscope::model::chat::{Message, render};
///
/// let template = "{% for m in messages %}<{{ m.role }}>{{ m['content'].strip() }}{% endfor %}\
///                 {% if add_generation_prompt %}<assistant>{% endif %}";
/// let prompt = render(template, &[Message::from_user(" Hi! ")], "<s>", "</s>", None)?;
/// assert_eq!(prompt, "<user>Hi!<assistant>");
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn render(
    template: &str,
    messages: &[Message],
    bos: &str,
    eos: &str,
    date: Option<Date>,
) -> Result<String> {
    let refused = |why: String| {
        let message = format!("the model's chat template cannot be applied: {why}");
        Error::new(ErrorCode::ModelUnsupported, message).param("chat")
    };
    let turn = |message: &Message| context! { role => &message.role, content => &message.content };
    let context = context! {
        messages => messages.iter().map(turn).collect::<Value>(),
        add_generation_prompt => true,
        tools => (),
        documents => (),
        bos_token => bos,
        eos_token => eos,
    };
    // A thread of its own, because a stack that overflows and a step that does not end can only be
    // prevented and left from outside.
    let (send, receive) = mpsc::channel();
    let template = without_marks_of_training(template);
    let apply = move || send.send(apply(&template, context, date).map_err(|error| error.to_string()));
    thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(apply)
        .map_err(|error| refused(format!("no thread can be had for it: {error}")))?;
    match receive.recv_timeout(MOST_TIME) {
        Ok(rendered) => rendered.map_err(refused),
        Err(_) => Err(refused(format!("it does not end within {} seconds", MOST_TIME.as_secs()))),
    }
}

/// A template whose `{% generation %}`, which marks what a model is trained on, is a block that
/// writes what it holds.
fn without_marks_of_training(template: &str) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, tag)) = rest.split_once("{%") {
        text.push_str(before);
        text.push_str("{%");
        let trimmed = tag.strip_prefix(['-', '+']).unwrap_or(tag).trim_start();
        let (word, with) = match trimmed {
            word if word.starts_with("generation") => ("generation", "with"),
            word if word.starts_with("endgeneration") => ("endgeneration", "endwith"),
            _ => ("", ""),
        };
        let after = &trimmed[word.len()..];
        let end = after.trim_start();
        if word.is_empty() || !["%}", "-%}", "+%}"].iter().any(|close| end.starts_with(close)) {
            rest = tag;
            continue;
        }
        text.push_str(&tag[..tag.len() - trimmed.len()]);
        text.push_str(with);
        rest = after;
    }
    text + rest
}

fn apply(template: &str, context: Value, date: Option<Date>) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_fuel(Some(MOST_STEPS));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", refuse);
    environment.add_function("strftime_now", move |format: String| match date {
        Some(date) => date.format(&format).map_err(|error| refusal(error.message)),
        None => Err(refusal("it asks for the date of the day, and none is given".to_owned())),
    });
    environment.add_test("iterable", is_iterable);
    environment.add_filter("join", join);
    environment.add_filter("tojson", |value: &Value, arguments: Kwargs| json::to_json(value, &arguments));
    let mut text = Bounded(Vec::new());
    let template = environment.template_from_str(template)?;
    template.render_captured_to(context, &mut text).map_err(|error| match error.kind() {
        ErrorKind::WriteFailure => too_much(),
        _ => error,
    })?;
    Ok(String::from_utf8_lossy(&text.0).into_owned())
}

/// A text that refuses to grow too long.
#[derive(Debug)]
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_much() -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, format!("it writes more than {MOST_BYTES} bytes"))
}

/// As Jinja's filter, but of no more text than a template may write.
fn join(items: &Value, between: Option<String>) -> Result<String, minijinja::Error> {
    let between = between.unwrap_or_default();
    let mut text = String::new();
    for (index, item) in items.try_iter()?.enumerate() {
        if index > 0 {
            text.push_str(&between);
        }
        // Writing to a String cannot fail.
        let _ = write!(text, "{item}");
        if text.len() > MOST_BYTES {
            return Err(too_much());
        }
    }
    Ok(text)
}

/// As in Python, where nothing (`none`) has no elements to go through, not even none.
fn is_iterable(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable | ValueKind::Undefined
    )
}

/// What templates call where they do not like the messages.
fn refuse(why: String) -> Result<Value, minijinja::Error> {
    Err(refusal(why))
}

fn refusal(why: String) -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(template: &str) -> Error {
        render(template, &[Message::from_user("a")], "", "", None).unwrap_err()
    }

    #[test]
    fn templates_that_fail_are_refused_with_their_reason() {
        for (template, why) in [
            ("{% for %}", "syntax"),
            ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
            ("{{ messages[0].nonsense() }}", "nonsense"),
            ("{{ strftime_now('%Y') }}", "asks for the date of the day, and none is given"),
            ("{{ nonsense('%Y') }}", "nonsense"),
            ("{{ messages | tojson(ensure_ascii=true) }}", "ensure_ascii"),
            ("{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}", "fuel"),
            ("{% set a = 'x' * 9999 %}{{ ([a] * 9999) | join }}", "more than 4000000 bytes"),
            (
                &format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = [a, a] %}".repeat(40)),
                "4000000 bytes",
            ),
            (
                &format!(
                    "{{% set a = [1] %}}{{% set b = [1] %}}{}{{{{ a == b }}}}",
                    "{% set a = [a, a] %}{% set b = [b, b] %}".repeat(32)
                ),
                "5 seconds",
            ),
        ] {
            let error = refused(template);
            assert_eq!(error.code, ErrorCode::ModelUnsupported);
            assert!(error.message.contains(why), "{template}: {error}");
        }
    }

    #[test]
    fn a_template_gets_the_date_that_is_given() {
        let render = |format: &str, date: &str| {
            let template = format!("{{{{ strftime_now('{format}') }}}}");
            render(&template, &[], "", "", Some(date.parse().unwrap()))
        };
        assert_eq!(render("%d %b %Y", "2026-11-30").unwrap(), "30 Nov 2026");
        let error = render("%H:%M", "2026-11-30").unwrap_err();
        assert!(error.message.contains("%H asks for a time, and the date has none"), "{error}");
    }

    #[test]
    fn marks_of_training_are_no_text() {
        for (template, text) in [
            ("a {% generation %} b {% endgeneration %} c", "a  b  c"),
            ("a {%- generation -%} b {%- endgeneration -%} c", "abc"),
            ("{% set generation = 'x' %}{{ generation }}{% if generation %}y{% endif %}", "xy"),
            ("{{ '{%' }} {%", "syntax"),
        ] {
            match render(template, &[], "", "", None) {
                Ok(have) => assert_eq!(have, text),
                Err(error) => assert!(error.message.contains(text), "{error}"),
            }
        }
    }

    #[test]
    fn values_of_any_depth_are_written() {
        let template = "{% set ns = namespace(a=[]) %}{% for i in range(9000) %}\
                        {% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}";
        let text = render(template, &[Message::from_user("a")], "", "", None).unwrap();
        assert_eq!(text, "[".repeat(9001) + &"]".repeat(9001));
    }

    #[test]
    fn a_model_without_a_template_says_so() {
        let table = r#"{"vocab": 2, "table": [0, 1, 2, 3, 4, 5, 6, 7]}"#;
        let model = super::super::table::TableModel::from_json(table).unwrap();
        let error = prompt(&model, &[Message::from_user("a")], None).unwrap_err();
        assert!(error.message.contains("no chat template"), "{error}");
    }
}
