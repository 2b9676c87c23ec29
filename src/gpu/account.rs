//! Where the rows of a run were computed, and why: noted as each row is, so that the account is of
//! what happened and not of what was planned.

use std::fmt;

use serde::Serialize;

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
    /// Its place in the pipeline; the logits come first, as 0.
    #[serde(skip)]
    index: usize,
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
    /// Tokens drawn by the stages of a pipeline.
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

impl Account {
    /// Adds rows that the logits (index 0) or a stage (1 and on) computed so.
    pub(super) fn note(&mut self, index: usize, place: Placement, rows: usize) {
        if rows == 0 {
            return;
        }
        let end = self.places.partition_point(|share| share.index <= index);
        let begin = self.places.partition_point(|share| share.index < index);
        let of_stage = &self.places[begin..end];
        let of = of_stage.first().map_or(0, |share| share.of);
        // What the device did comes first.
        let end = if place.device { begin } else { end };
        if let Some(known) = of_stage.iter().position(|share| share.place == place) {
            self.places[begin + known].rows += rows;
        } else {
            self.places.insert(end, Share { place, rows, of, index });
        }
        for share in self.places[begin..].iter_mut().take_while(|share| share.index == index) {
            share.of = of + rows;
        }
    }

    /// Adds a row's way through all stages of its pipeline.
    pub(super) fn note_stages(&mut self, places: impl IntoIterator<Item = Placement>, rows: usize) {
        for (index, place) in (1..).zip(places) {
            self.note(index, place, rows);
        }
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
        for stage in self.places.chunk_by(|a, b| a.index == b.index) {
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
        let mut account = Account { adapter: Some("a GPU".to_owned()), ..Account::default() };
        // Two stages of one name are two, and what comes first is told first.
        for _ in 0..3 {
            account.note_stages([place("top_k", true, ""), place("top_k", true, "")], 1);
        }
        account.note_stages([place("top_k", true, ""), place("top_k", false, "of a reason")], 2);
        account.note(0, place("logits", true, ""), 5);
        account.note(0, place("logits", false, "it was lost"), 0);
        let told = account.to_string();
        let lines: Vec<&str> = told.lines().skip(2).map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "logits: on the GPU in 5 of 5 rows",
                "top_k: on the GPU in 5 of 5 rows",
                "top_k: on the GPU in 3 of 5 rows; on the CPU in 2 of 5 rows, because of a reason",
            ]
        );
    }
}
