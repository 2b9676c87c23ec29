//! What the two versions of Mirostat share: a target surprise, and a bound that learns.

use serde_json::{Map, Value, json};

use crate::{
    config::Args,
    error::{Error, ErrorCode, Result},
    spec::{ParamSpec, non_negative, number},
};

/// The `tau` parameter.
pub(crate) const TAU: ParamSpec = ParamSpec {
    name: "tau",
    ty: non_negative(),
    default: Some("5"),
    neutral: None,
    slider: Some((0.0, 10.0, 0.1)),
    unit: "bits",
    help: "The surprise to aim at.",
};

/// The `eta` parameter.
pub(crate) const ETA: ParamSpec = ParamSpec {
    name: "eta",
    ty: number(0.0, 1.0),
    default: Some("0.1"),
    neutral: None,
    slider: Some((0.0, 1.0, 0.01)),
    unit: "",
    help: "How fast the bound follows the surprise of the tokens drawn.",
};

/// The bound `mu` and what moves it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) mu: f64,
    tau: f64,
    eta: f64,
}

impl Bound {
    pub(crate) fn from_args(args: &Args) -> Result<Self> {
        let tau = args.number("tau")?;
        Ok(Self { mu: 2.0 * tau, tau, eta: args.number("eta")? })
    }

    /// Moves the bound against the error of a token's surprise. A token that had no
    /// probability, forced against the draw, teaches nothing.
    pub(crate) fn learn(&mut self, probability: f64) {
        if probability > 0.0 {
            self.mu -= self.eta * (-libm::log2(probability) - self.tau);
        }
    }

    pub(crate) fn state(&self) -> Map<String, Value> {
        Map::from_iter([("mu".to_owned(), json!(self.mu))])
    }

    pub(crate) fn set_state(&mut self, state: &Map<String, Value>) -> Result<()> {
        for (name, value) in state {
            if name != "mu" {
                let message = format!("this sampler has no state `{name}`; it has mu");
                return Err(Error::new(ErrorCode::BadInput, message).param(name));
            }
            self.mu = value.as_f64().ok_or_else(|| {
                Error::new(ErrorCode::BadInput, format!("mu is {value}, but must be a number")).param(name)
            })?;
        }
        Ok(())
    }
}
