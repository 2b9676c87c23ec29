//! The written, ordered list of every stage.

use crate::{
    error::{Error, ErrorCode, Result, nearest},
    sampler::{adaptive_p, categorical, greedy, gumbel_max, mirostat1, mirostat2},
    spec::StageSpec,
    transform::{
        bad_words, dry, dynamic_temperature, epsilon, eta, forced_tokens, frequency_penalty, length_decay,
        logit_bias, min_new_tokens, min_p, no_repeat_ngram, presence_penalty, quadratic, repetition_penalty,
        sequence_bias, suppress, tail_free, temperature, top_a, top_h, top_k, top_n_sigma, top_p, typical,
        xtc,
    },
};

/// Every stage, in the order in which a catalogue lists them.
pub const ALL: &[&StageSpec] = &[
    &logit_bias::SPEC,
    &sequence_bias::SPEC,
    &suppress::SPEC,
    &bad_words::SPEC,
    &min_new_tokens::SPEC,
    &forced_tokens::SPEC,
    &length_decay::SPEC,
    &repetition_penalty::SPEC,
    &presence_penalty::SPEC,
    &frequency_penalty::SPEC,
    &no_repeat_ngram::SPEC,
    &dry::SPEC,
    &temperature::SPEC,
    &dynamic_temperature::SPEC,
    &top_k::SPEC,
    &top_p::SPEC,
    &min_p::SPEC,
    &typical::SPEC,
    &epsilon::SPEC,
    &eta::SPEC,
    &top_h::SPEC,
    &top_a::SPEC,
    &tail_free::SPEC,
    &top_n_sigma::SPEC,
    &quadratic::SPEC,
    &xtc::SPEC,
    &greedy::SPEC,
    &categorical::SPEC,
    &gumbel_max::SPEC,
    &mirostat1::SPEC,
    &mirostat2::SPEC,
    &adaptive_p::SPEC,
];

/// The declaration of a stage by its name in the text form.
///
/// # Errors
/// `unknown_stage`, with the nearest name if one is near.
pub fn find(id: &str) -> Result<&'static StageSpec> {
    ALL.iter().copied().find(|spec| spec.id == id).ok_or_else(|| {
        let near = nearest(id, ALL.iter().map(|spec| spec.id));
        let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        Error::new(ErrorCode::UnknownStage, format!("there is no stage `{id}`{hint}")).stage(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_pass_their_own_check() {
        for (place, spec) in ALL.iter().enumerate() {
            assert!(ALL[..place].iter().all(|other| other.id != spec.id), "{} is listed twice", spec.id);
            for param in spec.params {
                for text in [param.default, param.neutral].into_iter().flatten() {
                    let value = crate::config::parse_value(text).expect("a default is a value");
                    param.check(spec.id, &value).expect("a default is in range");
                }
            }
        }
    }

    #[test]
    fn a_misspelt_stage_is_answered_with_the_nearest() {
        let error = find("topp").expect_err("no such stage");
        assert_eq!(error.code, ErrorCode::UnknownStage);
        assert!(error.message.contains("`top_p`"), "{}", error.message);
        let error = find("nosuchthing").expect_err("no such stage");
        assert_eq!(error.message, "there is no stage `nosuchthing`");
    }
}
