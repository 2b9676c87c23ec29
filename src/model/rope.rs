//! Rotary position embedding: each pair of numbers turns by an angle that grows with position.
//!
//! Source: Su et al. 2021, "`RoFormer`", <https://arxiv.org/abs/2104.09864>. Two layouts are in
//! use: GGUF files of the llama architecture keep the two numbers of a pair side by side,
//! the qwen architectures half a head apart.

/// Which two numbers of a head form a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    /// `2i` and `2i + 1`.
    Adjacent,
    /// `i` and `i + dimensions / 2`.
    Halves,
}

/// How fast each pair turns.
#[derive(Debug, Clone)]
pub(super) struct Rope {
    pairs: Pairs,
    /// Radians per position, one for each pair.
    frequencies: Vec<f64>,
}

/// Cosine and sine of each pair's angle at one position.
#[derive(Debug)]
pub(super) struct Rotation {
    pairs: Pairs,
    angles: Vec<(f32, f32)>,
}

impl Rope {
    /// Pair `i` of `dimensions / 2` turns by `base^(-2i / dimensions) / factor[i]` a position.
    /// `factors` is empty where the model has none.
    pub(super) fn new(pairs: Pairs, dimensions: usize, base: f64, divisor: f64, factors: &[f32]) -> Self {
        let frequencies = (0..dimensions / 2)
            .map(|i| {
                let factor = factors.get(i).map_or(1.0, |factor| f64::from(*factor));
                libm::pow(base, -2.0 * i as f64 / dimensions as f64) / (divisor * factor)
            })
            .collect();
        Self { pairs, frequencies }
    }

    /// The rotation at a position. Angles are f64, so they stay exact enough far out.
    #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the last step on purpose")]
    pub(super) fn at(&self, position: usize) -> Rotation {
        let angles = self.frequencies.iter().map(|frequency| {
            let angle = position as f64 * frequency;
            (libm::cos(angle) as f32, libm::sin(angle) as f32)
        });
        Rotation { pairs: self.pairs, angles: angles.collect() }
    }
}

impl Rotation {
    /// Turns one head in place; numbers beyond the rotated dimensions stay.
    pub(super) fn apply(&self, head: &mut [f32]) {
        let half = self.angles.len();
        for (i, (cos, sin)) in self.angles.iter().enumerate() {
            let (first, second) = match self.pairs {
                Pairs::Adjacent => (2 * i, 2 * i + 1),
                Pairs::Halves => (i, i + half),
            };
            let (x, y) = (head[first], head[second]);
            head[first] = x * cos - y * sin;
            head[second] = x * sin + y * cos;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_pairs_by_position_times_frequency() {
        let rope = Rope::new(Pairs::Adjacent, 4, 100.0, 1.0, &[]);
        assert_eq!(rope.frequencies, [1.0, 0.1]);
        let mut head = [1.0, 0.0, 1.0, 0.0, 5.0];
        rope.at(2).apply(&mut head);
        let expected = [2.0_f64.cos(), 2.0_f64.sin(), 0.2_f64.cos(), 0.2_f64.sin(), 5.0];
        for (have, want) in head.iter().zip(expected) {
            assert!((f64::from(*have) - want).abs() < 1e-6, "{head:?}");
        }
    }

    #[test]
    fn both_layouts_turn_the_same_pairs() {
        let (mut adjacent, mut halves) = ([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]);
        Rope::new(Pairs::Adjacent, 4, 1e4, 1.0, &[]).at(7).apply(&mut adjacent);
        Rope::new(Pairs::Halves, 4, 1e4, 1.0, &[]).at(7).apply(&mut halves);
        assert_eq!(adjacent, [halves[0], halves[2], halves[1], halves[3]]);
    }
}
