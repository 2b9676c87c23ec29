//! Chat templates: how a model wants turns of a conversation written as one text.
//!
//! A GGUF file carries the template as Jinja source (`tokenizer.chat_template`). It is
//! applied only when somebody asks for it, and what it makes is a prompt like any other, so
//! that everybody sees what the model is given.
//!
//! Source: the conventions of the Python package `transformers`, on whose template engine
//! most of these templates were written; `tests/chat.rs` holds them to it.

use minijinja::{Environment, ErrorKind, Value, context, syntax::SyntaxConfig};
use serde::{Deserialize, Serialize};

use super::LanguageModel;
use crate::{Error, ErrorCode, TokenId, error::Result};

/// Steps that a template may take: far more than any sensible one, far less than a minute.
const MOST_STEPS: u64 = 1_000_000;

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
/// `model_unsupported` when the model has no template, or it cannot be applied.
pub fn prompt(model: &dyn LanguageModel, messages: &[Message]) -> Result<String> {
    let template = model.info().chat_template.as_deref().ok_or_else(|| {
        Error::new(ErrorCode::ModelUnsupported, "the model's file has no chat template").param("chat")
    })?;
    let vocab = model.vocab();
    let text = |token: Option<&TokenId>| {
        token.map(|token| String::from_utf8_lossy(vocab.bytes(*token)).into_owned()).unwrap_or_default()
    };
    let (bos, eos) = (text(vocab.bos.as_ref()), text(vocab.eos.first()));
    let prompt = render(template, messages, &bos, &eos)?;
    let added = model.encode("", true, true)?.ids.first().copied();
    match prompt.strip_prefix(&bos) {
        Some(rest) if added.is_some() && added == vocab.bos => Ok(rest.to_owned()),
        _ => Ok(prompt),
    }
}

/// A template applied to messages, the next turn of the assistant begun.
///
/// # Errors
/// `model_unsupported` when the template is malformed, refuses the messages, or does not end.
///
/// # Examples
/// ```
/// use logitscope::model::chat::{Message, render};
///
/// let template = "{% for m in messages %}<{{ m.role }}>{{ m['content'].strip() }}{% endfor %}\
///                 {% if add_generation_prompt %}<assistant>{% endif %}";
/// let prompt = render(template, &[Message::from_user(" Hi! ")], "<s>", "</s>")?;
/// assert_eq!(prompt, "<user>Hi!<assistant>");
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn render(template: &str, messages: &[Message], bos: &str, eos: &str) -> Result<String> {
    let refused = |error: minijinja::Error| {
        let message = format!("the model's chat template cannot be applied: {error}");
        Error::new(ErrorCode::ModelUnsupported, message).param("chat")
    };
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(refused)?);
    environment.set_fuel(Some(MOST_STEPS));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", refuse);
    let turn = |message: &Message| context! { role => &message.role, content => &message.content };
    let context = context! {
        messages => messages.iter().map(turn).collect::<Value>(),
        add_generation_prompt => true,
        bos_token => bos,
        eos_token => eos,
    };
    environment.render_str(template, context).map_err(refused)
}

/// What templates call where they do not like the messages.
fn refuse(why: String) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(template: &str) -> Error {
        render(template, &[Message::from_user("a")], "", "").unwrap_err()
    }

    #[test]
    fn templates_that_fail_are_refused_with_their_reason() {
        for (template, why) in [
            ("{% for %}", "syntax"),
            ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
            ("{{ messages[0].nonsense() }}", "nonsense"),
            ("{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}", "fuel"),
        ] {
            let error = refusal(template);
            assert_eq!(error.code, ErrorCode::ModelUnsupported);
            assert!(error.message.contains(why), "{template}: {error}");
        }
    }

    #[test]
    fn a_model_without_a_template_says_so() {
        let table = r#"{"vocab": 2, "table": [0, 1, 2, 3, 4, 5, 6, 7]}"#;
        let model = super::super::table::TableModel::from_json(table).unwrap();
        let error = prompt(&model, &[Message::from_user("a")]).unwrap_err();
        assert!(error.message.contains("no chat template"), "{error}");
    }
}
