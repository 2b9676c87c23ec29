//! Where the rows of a run were computed, and why: noted as each row is, so that the account is of
//! what happened and not of what was planned.

use std::fmt;

use serde::Serialize;

use crate::{Logits, Pipeline, error::Result, trace::Observer};

/// Where the logits or a stage of a pipeline run, and why not on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// The stage's name; `logits` for the model's last matrix.
    pub stage: &'static str,
    /// Whether it runs on the device.
    pub device: bool,
    /// Why it does not; empty if it does.
    pub why: String,
}

impl Placement {
    /// Every stage of a pipeline on the CPU, for one reason; its sampler is the last.
    pub(crate) fn all_on_the_cpu(pipeline: &Pipeline, why: &str) -> Vec<Self> {
        let stages = pipeline.stages().iter().map(|stage| &stage.args).chain([pipeline.sampler_args()]);
        stages.map(|args| Self { stage: args.spec.id, device: false, why: why.to_owned() }).collect()
    }
}

/// What a row comes to, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Station {
    /// The model's last matrix.
    Logits,
    /// A transform, by its place in the pipeline.
    Transform(usize),
    /// The sampler.
    Sampler,
}

/// The rows that ran so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Where, and why.
    #[serde(flatten)]
    pub place: Placement,
    /// How many rows.
    pub rows: usize,
    /// Of how many that this stage had in all.
    pub of: usize,
    #[serde(skip)]
    station: Station,
}

/// Who computed how many rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Rows of the device.
    pub device: usize,
    /// Launches of the device for them, all rows of a batch in one.
    pub launches: usize,
    /// Rows of the CPU.
    pub cpu: usize,
}

/// What was computed, and where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Rows of logits, products of a hidden state and the last matrix.
    pub logits: Count,
    /// Rows that came to a sampler, which drew from them or gave the probabilities to choose by.
    pub draws: Count,
}

/// Where everything of a run was computed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// The GPU that was there, perhaps only for a while.
    pub adapter: Option<String>,
    /// Why there is none now.
    pub why: Option<String>,
    /// For the logits and then for each stage, where its rows ran; the parts of a stage add up to
    /// all of them. Empty where nothing asked for a device.
    pub places: Vec<Share>,
    /// The same in numbers.
    #[serde(flatten)]
    pub tally: Tally,
}

/// What was computed since the last account.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rows: Vec<(Station, Placement, usize)>,
    /// Launches that made logits.
    pub(super) multiplied: usize,
    /// Launches that drew.
    pub(super) drew: usize,
}

impl Ledger {
    /// Adds rows that a station computed so.
    fn note(&mut self, station: Station, place: Placement, rows: usize) {
        match self.rows.iter_mut().find(|(at, known, _)| *at == station && *known == place) {
            Some((.., known)) => *known += rows,
            None if rows > 0 => self.rows.push((station, place, rows)),
            None => {}
        }
    }

    /// Adds rows of logits.
    pub(super) fn note_logits(&mut self, place: Placement, rows: usize) {
        self.note(Station::Logits, place, rows);
    }

    /// Adds a row that came to the first so many stages of a pipeline, which ran at these places;
    /// the last place is the sampler's.
    pub(super) fn note_stages(&mut self, places: Vec<Placement>, reached: usize) {
        let sampler = places.len() - 1;
        for (index, place) in places.into_iter().enumerate().take(reached) {
            let station = if index == sampler { Station::Sampler } else { Station::Transform(index) };
            self.note(station, place, 1);
        }
    }

    /// The account of it all.
    pub(super) fn account(&self, adapter: Option<String>, why: Option<String>) -> Account {
        let rows = |wanted: &dyn Fn(Station, &Placement) -> bool| -> usize {
            let own = self.rows.iter().filter(|(station, place, _)| wanted(*station, place));
            own.map(|(.., rows)| rows).sum()
        };
        let count = |own: Station, launches| Count {
            device: rows(&|station, place| station == own && place.device),
            launches,
            cpu: rows(&|station, place| station == own && !place.device),
        };
        let tally = Tally {
            logits: count(Station::Logits, self.multiplied),
            draws: count(Station::Sampler, self.drew),
        };
        let share = |(station, place, own): &(Station, Placement, usize)| Share {
            place: place.clone(),
            rows: *own,
            of: rows(&|at, other| at == *station && other.stage == place.stage),
            station: *station,
        };
        let mut places: Vec<Share> = self.rows.iter().map(share).collect();
        // What the device did comes first; the rest in the order in which it came.
        places.sort_by_key(|share| (share.station, share.place.stage, !share.place.device));
        Account { adapter, why, places, tally }
    }
}

/// Watches how far rows come: for each, how many stages of its pipeline began.
#[derive(Debug, Default)]
pub(crate) struct Reached(pub(crate) Vec<usize>);

impl Observer for Reached {
    const ENABLED: bool = false;

    fn raw(&mut self, _: &mut Logits) -> Result<()> {
        self.0.push(0);
        Ok(())
    }

    fn before(&mut self, _: &mut Logits) -> Result<()> {
        if let Some(stages) = self.0.last_mut() {
            *stages += 1;
        }
        Ok(())
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.adapter, &self.why) {
            (Some(adapter), None) => writeln!(f, "device: {adapter}")?,
            (Some(adapter), Some(why)) => writeln!(f, "device: {adapter}, until {why}")?,
            (None, why) => {
                return writeln!(f, "device: none, because {}", why.as_deref().unwrap_or("there is none"));
            }
        }
        let Tally { logits, draws } = self.tally;
        writeln!(f, "  launches: {} for the logits, {} for the draws", logits.launches, draws.launches)?;
        for stage in self.places.chunk_by(|a, b| (a.station, a.place.stage) == (b.station, b.place.stage)) {
            write!(f, "  {}:", stage[0].place.stage)?;
            for (part, Share { place, rows, of, .. }) in stage.iter().enumerate() {
                let end = if part == 0 { "" } else { ";" };
                let chip = if place.device { "GPU" } else { "CPU" };
                write!(f, "{end} on the {chip} in {rows} of {of} rows")?;
                if !place.device {
                    write!(f, ", because {}", place.why)?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_stage_add_up_to_its_rows() {
        let place = |stage, device, why: &str| Placement { stage, device, why: why.to_owned() };
        let mut ledger = Ledger::default();
        // Two stages of one name are two, and what comes first is told first.
        let pipeline = |device, why| {
            vec![place("top_k", device, why), place("top_k", device, why), place("greedy", device, why)]
        };
        ledger.note_stages(pipeline(false, "of a reason"), 3);
        for _ in 0..3 {
            ledger.note_stages(pipeline(true, ""), 3);
        }
        // The second stage left nothing of this row.
        ledger.note_stages(pipeline(false, "of a reason"), 2);
        ledger.note_logits(place("logits", true, ""), 5);
        ledger.note_logits(place("logits", false, "it was lost"), 0);
        let account = ledger.account(Some("a GPU".to_owned()), None);
        let told = account.to_string();
        let lines: Vec<&str> = told.lines().skip(2).map(str::trim).collect();
        let parts = "top_k: on the GPU in 3 of 5 rows; on the CPU in 2 of 5 rows, because of a reason";
        assert_eq!(
            lines,
            [
                "logits: on the GPU in 5 of 5 rows",
                parts,
                parts,
                "greedy: on the GPU in 3 of 4 rows; on the CPU in 1 of 4 rows, because of a reason",
            ]
        );
        let count = |device, cpu| Count { device, launches: 0, cpu };
        assert_eq!(account.tally, Tally { logits: count(5, 0), draws: count(3, 1) });
    }
}
