//! "Run it as llama.cpp, transformers, vLLM, … would": versioned data, no new mathematics.
//!
//! A [`Profile`] is a file in `data/`: one framework at one version, with its own parameter
//! names, defaults, sentinels and order. [`Profile::translate`] turns a request in those names
//! into a pipeline text and typed notes about what is ignored, clamped, on by default, or not
//! expressible. [`copy`] goes the other way.
//!
//! To change what a framework does, change its file; to add one, write a file and list it in
//! `DATA`.

pub mod copy;
mod request;
mod rules;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use request::{Beside, Reading, joined, says_nothing};
pub use request::{Kind, Parameter};
use rules::{Condition, Derived, Entry, Rule, all, fill};

use crate::{
    error::{Error, ErrorCode, Result},
    order,
    pipeline::Pipeline,
};

/// Every profile by name, and its data.
const DATA: &[(&str, &str)] = &[
    ("lesson", include_str!("data/lesson.json")),
    ("transformers", include_str!("data/transformers.json")),
    ("llama.cpp", include_str!("data/llama.cpp.json")),
    ("vllm", include_str!("data/vllm.json")),
    ("sglang", include_str!("data/sglang.json")),
    ("koboldcpp", include_str!("data/koboldcpp.json")),
    ("text-generation-webui", include_str!("data/text-generation-webui.json")),
    ("transformers.js", include_str!("data/transformers.js.json")),
    ("web-llm", include_str!("data/web-llm.json")),
    ("candle", include_str!("data/candle.json")),
    ("mistral.rs", include_str!("data/mistral.rs.json")),
    ("rten", include_str!("data/rten.json")),
    ("tgi", include_str!("data/tgi.json")),
    ("openai", include_str!("data/openai.json")),
    ("anthropic", include_str!("data/anthropic.json")),
];

/// The names of all profiles, in the order in which a list shows them.
#[must_use]
pub fn names() -> Vec<&'static str> {
    DATA.iter().map(|(name, _)| *name).collect()
}

/// One framework at one version.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, as the command line takes it.
    pub name: String,
    /// The version that was read.
    pub version: String,
    /// Which of its files or pages were read.
    pub source: String,
    /// Its parameters, in its own words.
    pub parameters: Vec<Parameter>,
    /// What a request holds besides.
    #[serde(default)]
    beside: Beside,
    /// Fields of a request that are objects of further fields.
    #[serde(default)]
    inside: Vec<String>,
    /// Values computed from them.
    #[serde(default)]
    derived: Vec<Derived>,
    /// Stages, in the framework's order.
    order: Vec<Entry>,
    /// The first whose condition holds is the sampler.
    samplers: Vec<Rule>,
    /// What its user should know.
    #[serde(default)]
    notes: Vec<NoteRule>,
    /// Other orders that the documentation allows.
    #[serde(default)]
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteRule {
    code: String,
    #[serde(default)]
    when: Vec<Condition>,
    /// Only if some of these were given, which `$given` in the message lists.
    #[serde(default)]
    given: Vec<String>,
    message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alternative {
    reason: String,
    order: Vec<Entry>,
}

/// What the user of a profile should know about a translation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileNote {
    /// A stable name for the kind of note: `ignored`, `replaced`, `not_expressed`,
    /// `on_by_default`, `unknown_order`, `differs`, `truncation_before_grammar`, `not_a_step`.
    pub code: String,
    /// The parameter concerned, if one is.
    pub param: Option<String>,
    /// What is worth knowing, in a sentence.
    pub message: String,
}

/// A request in a framework's words, as a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Translation {
    /// The profile.
    pub profile: String,
    /// The version it describes.
    pub version: String,
    /// The pipeline text.
    pub pipeline: String,
    /// Pipelines in other orders that the documentation allows as well.
    pub alternatives: Vec<String>,
    /// What is worth knowing.
    pub notes: Vec<ProfileNote>,
}

/// The profile of a name.
///
/// # Errors
/// `bad_input` when there is none, with the names there are.
///
/// # Examples
/// ```
/// use logitscope::profile;
///
/// let llama = profile::find("llama.cpp")?;
/// let asked = serde_json::json!({ "temperature": 0.5, "top_k": 0, "min_p": 0.0 });
/// let found = llama.translate(&asked, 0)?;
/// // top_p 0.95 is on by default, and temperature comes last.
/// assert!(found.pipeline.starts_with("top_p(p=0.95"));
/// assert!(found.pipeline.contains("| temperature(t=0.5) |"));
/// # Ok::<(), logitscope::Error>(())
/// ```
pub fn find(name: &str) -> Result<Profile> {
    let data = DATA.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known = names().join(", ");
        Error::new(ErrorCode::BadInput, format!("there is no profile `{name}`; there are {known}"))
            .param("profile")
    })?;
    let mut profile: Profile = serde_json::from_str(data.1).map_err(|error| {
        Error::new(ErrorCode::BadInput, format!("the profile `{name}` is malformed: {error}"))
    })?;
    profile.beside = profile.beside.complete(&profile.parameters)?;
    Ok(profile)
}

impl Profile {
    /// Turns a request in the framework's parameter names into a pipeline; a parameter left
    /// out has the framework's default, and a field that is not about one step is named in a
    /// note. `prompt_len` serves the parameters that count the prompt.
    ///
    /// # Errors
    /// `bad_input` when `params` is not an object, `unknown_param`, `duplicate_param`,
    /// `wrong_type`, `needs_vocabulary`, and `out_of_range` for what the framework refuses. The
    /// message tells every refusal; code and parameter are the first's.
    pub fn translate(&self, params: &Value, prompt_len: usize) -> Result<Translation> {
        let read = self.read(params);
        let Reading { mut values, given, mut notes } = read.map_err(|refused| {
            let nothing = || Error::new(ErrorCode::BadInput, "the request was refused");
            joined(refused).unwrap_or_else(nothing)
        })?;
        values.insert("prompt_len".to_owned(), json!(prompt_len));
        for derived in &self.derived {
            let value = derived.value(&values);
            values.insert(derived.name.clone(), value);
        }
        let sampler = self.samplers.iter().find(|rule| all(&rule.when, &values));
        let sampler = sampler.map_or("categorical()", |rule| rule.text.as_str());
        let write = |order: &[Entry], notes: &mut Vec<ProfileNote>| -> Result<String> {
            let mut stages = Vec::new();
            for entry in order {
                match entry {
                    Entry::Fixed(rule) => rule.emit(&values, &mut stages, notes),
                    Entry::Ordered(ordered) => ordered.emit(&values, &mut stages, notes)?,
                }
            }
            stages.push(fill(sampler, &values));
            Ok(Pipeline::parse(&stages.join(" | "))?.to_string())
        };
        let pipeline = write(&self.order, &mut notes)?;
        let mut alternatives = Vec::new();
        for alternative in &self.alternatives {
            let other = write(&alternative.order, &mut Vec::new())?;
            if other != pipeline {
                notes.push(note("unknown_order", None, &alternative.reason));
                alternatives.push(other);
            }
        }
        let says = |param: &Parameter| values.get(&param.name).is_some_and(|value| !says_nothing(value));
        let constrained = |param: &&Parameter| param.masks_last && says(param);
        if let Some(param) = self.parameters.iter().find(constrained) {
            let parsed = Pipeline::parse(&pipeline)?;
            let stages: Vec<_> = parsed.stages().iter().map(|stage| &stage.args).collect();
            let suspicious = order::warnings_with_constraint(&stages, Some(stages.len()));
            let late = suspicious.iter().filter(|found| found.code == "truncation_before_grammar");
            notes.extend(late.map(|found| note(found.code, Some(&param.name), &found.message)));
        }
        for rule in self.notes.iter().filter(|rule| all(&rule.when, &values)) {
            let named: Vec<&str> =
                rule.given.iter().filter(|name| given.contains(name)).map(String::as_str).collect();
            if rule.given.is_empty() || !named.is_empty() {
                let message = rule.message.replace("$given", &named.join(", "));
                notes.push(note(&rule.code, None, &fill(&message, &values)));
            }
        }
        Ok(Translation {
            profile: self.name.clone(),
            version: self.version.clone(),
            pipeline,
            alternatives,
            notes,
        })
    }
}

fn note(code: &str, param: Option<&str>, message: &str) -> ProfileNote {
    ProfileNote { code: code.to_owned(), param: param.map(str::to_owned), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_reads_and_its_defaults_translate() {
        for name in names() {
            let profile = find(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, name);
            let found = profile.translate(&json!({}), 3).unwrap_or_else(|error| panic!("{name}: {error}"));
            Pipeline::parse(&found.pipeline).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    /// A field that a step depends on must not be passed over as one that it does not.
    #[test]
    fn no_parameter_is_listed_as_something_else() {
        let mut fields = 0;
        for name in names() {
            let profile = find(name).unwrap_or_else(|error| panic!("{error}"));
            for field in profile.beside.aside() {
                let taken = profile.parameters.iter().any(|param| param.goes_by(field));
                assert!(!taken, "{name}: {field} is a parameter");
                fields += 1;
            }
        }
        assert!(fields > 300, "only {fields} fields");
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_names_there_are() {
        let error =
            find("vllm").expect("a profile").translate(&json!({ "topp": 1 }), 0).expect_err("no such");
        assert_eq!(error.code, ErrorCode::UnknownParam);
        assert!(error.message.contains("top_p"), "{}", error.message);
    }
}
