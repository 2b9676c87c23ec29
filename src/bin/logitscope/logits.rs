//! `logitscope logits`: what the model itself says, before any decoding.

use std::io::{self, BufWriter, Write};

use logitscope::{Error, ErrorCode, Logits, TokenId, model::Precision};
use serde::Serialize;

use super::{Failure, models, write_line};

/// List the highest logits after a prompt, one line of JSON for each position.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// `default`, `table:FILE`, or a GGUF file
    #[arg(long)]
    model: String,
    /// The text that comes before; special tokens in it are parsed
    #[arg(long, required_unless_present = "prompt_ids", conflicts_with = "prompt_ids")]
    prompt: Option<String>,
    /// The token ids that come before, such as 504,3575
    #[arg(long)]
    prompt_ids: Option<String>,
    /// How many tokens to show at a position
    #[arg(long, default_value_t = 20)]
    top: usize,
    /// Show every position, not only the last
    #[arg(long)]
    all_positions: bool,
    /// native or f32
    #[arg(long, default_value = "native")]
    precision: String,
}

/// One line of the answer.
#[derive(Debug, Serialize)]
struct Line {
    /// The index of the token after which these logits hold.
    position: usize,
    /// Id, piece and logit, the highest first, the lower id of equals.
    top: Vec<(TokenId, String, f32)>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let precision: Precision = arguments.precision.parse()?;
    let model = models::open(&arguments.model, precision)?;
    let prompt = match (&arguments.prompt_ids, &arguments.prompt) {
        (Some(ids), _) => models::parse_ids(ids)?,
        (None, text) => model.tokenize(text.as_deref().unwrap_or_default(), true, true)?,
    };
    if prompt.is_empty() {
        let message = "the prompt has no tokens, so there is nothing to continue";
        return Err(Error::new(ErrorCode::BadInput, message).param("prompt").into());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let mut state = model.start();
    let first = if arguments.all_positions { 0 } else { prompt.len() - 1 };
    // One position at a time, so that a long prompt needs memory for one row only.
    for position in first..prompt.len() {
        let fed = state.tokens().len();
        for logits in state.advance(&prompt[fed..=position], 1)? {
            expect_numbers(&logits, position)?;
            let top = top(&logits, arguments.top)
                .into_iter()
                .map(|id| (id, models::piece(&*model, id), logits[id.index()]))
                .collect();
            write_line(&mut out, &Line { position, top })?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Refuses a row that no pipeline would take.
fn expect_numbers(logits: &[f32], position: usize) -> Result<(), Error> {
    Logits::new(logits).map(|_| ()).map_err(|mut error| {
        error.message = format!("after position {position}: {}", error.message);
        error
    })
}

/// The ids of the `count` highest logits, the highest first, the lower id of equals.
fn top(logits: &[f32], count: usize) -> Vec<TokenId> {
    // A score of -∞ is a dead token.
    let alive = (0..).zip(logits).filter(|(_, score)| **score > f32::NEG_INFINITY);
    let mut ids: Vec<TokenId> = alive.map(|(id, _)| TokenId(id)).collect();
    let order = |a: &TokenId, b: &TokenId| logits[b.index()].total_cmp(&logits[a.index()]).then(a.cmp(b));
    if count < ids.len() {
        ids.select_nth_unstable_by(count, order);
        ids.truncate(count);
    }
    ids.sort_unstable_by(order);
    ids
}
