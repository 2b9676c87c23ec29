//! Generated files are what the declarations say, or the tests fail.
//!
//! `cargo xtask update` runs these tests with `LOGITSCOPE_UPDATE=1`, which writes the files
//! instead of comparing them.
#![cfg(not(target_arch = "wasm32"))]

use std::fmt::Write as _;
use std::path::Path;

use logitscope::registry;
use logitscope::spec::{Kind, Law, ParamSpec, ParamType, StageSpec};

fn holds(file: &str, fresh: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("LOGITSCOPE_UPDATE").is_some() {
        std::fs::write(&path, fresh).expect("a writable file");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(written == fresh, "{file} is stale: run `cargo xtask update`");
}

#[test]
fn the_reference_of_stages_is_fresh() {
    let mut page = String::from(
        "# Stages\n\n\
         Generated from the declarations in `src/transform/` and `src/sampler/` by\n\
         `cargo xtask update`; edit those. A pipeline is stages separated by `|`, applied left to\n\
         right; the last is a sampler.\n",
    );
    let kinds = [
        (Kind::Edit, "Stages that change some scores"),
        (Kind::Reshape, "Stages that change all scores"),
        (Kind::Truncate, "Stages that remove tokens"),
        (Kind::Sampler, "Samplers"),
    ];
    let mut written = 0;
    for (kind, title) in kinds {
        writeln!(page, "\n## {title}").expect("writing to a string");
        for spec in registry::ALL.iter().filter(|spec| spec.kind == kind) {
            describe(spec, &mut page).expect("writing to a string");
            written += 1;
        }
    }
    assert_eq!(written, registry::ALL.len(), "a kind of stage has no heading");
    holds("docs/stages.md", &page);
}

fn describe(spec: &StageSpec, page: &mut String) -> std::fmt::Result {
    writeln!(page, "\n### `{}`\n\n{}\n", spec.id, spec.summary)?;
    if !spec.formula.is_empty() {
        writeln!(page, "- Formula: `{}`", spec.formula)?;
    }
    if !spec.source.is_empty() {
        writeln!(page, "- Source: {}", spec.source)?;
    }
    if !spec.laws.is_empty() {
        let laws: Vec<_> = spec.laws.iter().map(|law| promise(*law)).collect();
        writeln!(page, "- Promises: {}", laws.join("; "))?;
    }
    if spec.params.is_empty() {
        return Ok(());
    }
    writeln!(page, "\n| Parameter | Values | Default | Neutral | Meaning |\n|---|---|---|---|---|")?;
    for param in spec.params {
        let or_dash = |text: Option<&str>| text.map_or("–".to_owned(), |text| format!("`{text}`"));
        writeln!(
            page,
            "| `{}` | {} | {} | {} | {} |",
            param.name,
            values(param),
            or_dash(param.default),
            or_dash(param.neutral),
            param.help
        )?;
    }
    Ok(())
}

fn values(param: &ParamSpec) -> String {
    let unit = if param.unit.is_empty() { String::new() } else { format!(" ({})", param.unit) };
    let values = match param.ty {
        ParamType::Number { min, max, min_excluded } => {
            let low = if min == f64::MIN {
                String::new()
            } else {
                format!("{} {min}", if min_excluded { "above" } else { "at least" })
            };
            let high = if max == f64::MAX { String::new() } else { format!("at most {max}") };
            let bounds: Vec<_> = [low, high].into_iter().filter(|bound| !bound.is_empty()).collect();
            if bounds.is_empty() { "any finite number".to_owned() } else { bounds.join(", ") }
        }
        ParamType::Integer { min, .. } => format!("whole, at least {min}"),
        ParamType::Word { words } => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        ParamType::Seed => "whole, 64 bits; drawn and shown if left out".to_owned(),
        ParamType::Ids => "token ids: `[1,2]`".to_owned(),
        ParamType::Sequences => "lists of token ids: `[[1,2],[3]]`".to_owned(),
        ParamType::Bias => "token ids and what is added: `{\"15\": 2.5, \"27\": \"-inf\"}`".to_owned(),
        ParamType::SequenceBias => "sequences and what is added: `[[[1,3],-1.5]]`".to_owned(),
        ParamType::Forced => "steps and the token forced there: `{\"0\": 5}`".to_owned(),
        ParamType::Texts => "texts, or lists of token ids: `[\"\\n\", [13]]`".to_owned(),
    };
    format!("{values}{unit}")
}

fn promise(law: Law) -> &'static str {
    match law {
        Law::OnlyRemoves => "only removes tokens",
        Law::KeepsArgmax => "keeps the highest token",
        Law::NeutralIsIdentity => "changes nothing at its neutral values",
        Law::OrderPreserving => "preserves the order of the survivors",
        Law::KeepsPrefix => "keeps the first so many in order",
        Law::ShiftInvariant => "does not depend on a constant added to every score",
        Law::Idempotent => "doing it twice is doing it once",
    }
}
