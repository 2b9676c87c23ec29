//! A few statistics: chi-square, total variation distance, repetition.

use std::collections::BTreeSet;

use serde::Serialize;

/// The outcome of a chi-square test of observed counts against expected probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChiSquare {
    /// The statistic.
    pub statistic: f64,
    /// Cells minus one, after rare cells were put together.
    pub degrees: usize,
    /// The probability of a statistic at least as large if the expectation is right.
    pub p_value: f64,
}

/// Cells that are expected less often than this are put together into one.
const RARE: f64 = 5.0;

/// Holds observed counts to expected probabilities.
///
/// An observation in a cell whose probability is 0 makes the p-value 0.
///
/// # Examples
/// ```
/// use logitscope::statistics::chi_square;
///
/// // A fair die's 60 throws; the statistic is 1.0 with 5 degrees of freedom.
/// let test = chi_square(&[12, 8, 10, 9, 11, 10], &[1.0 / 6.0; 6]);
/// assert!((test.statistic - 1.0).abs() < 1e-12 && test.degrees == 5);
/// assert!((test.p_value - 0.962_565_773).abs() < 1e-8);
/// ```
#[must_use]
pub fn chi_square(observed: &[u64], probabilities: &[f64]) -> ChiSquare {
    let total: u64 = observed.iter().sum();
    let (mut statistic, mut cells) = (0.0, 0usize);
    let (mut rare_observed, mut rare_expected) = (0.0, 0.0);
    for (&count, &probability) in observed.iter().zip(probabilities) {
        let expected = probability * total as f64;
        if expected <= 0.0 {
            if count > 0 {
                return ChiSquare { statistic: f64::MAX, degrees: cells, p_value: 0.0 };
            }
        } else if expected < RARE {
            rare_observed += count as f64;
            rare_expected += expected;
        } else {
            statistic += (count as f64 - expected).powi(2) / expected;
            cells += 1;
        }
    }
    if rare_expected > 0.0 {
        statistic += (rare_observed - rare_expected).powi(2) / rare_expected;
        cells += 1;
    }
    let degrees = cells.saturating_sub(1);
    ChiSquare { statistic, degrees, p_value: chi_square_tail(statistic, degrees) }
}

/// Half the sum of the absolute differences of two distributions.
///
/// # Examples
/// ```
/// use logitscope::statistics::total_variation;
///
/// assert!((total_variation(&[0.5, 0.5, 0.0], &[0.25, 0.5, 0.25]) - 0.25).abs() < 1e-15);
/// ```
#[must_use]
pub fn total_variation(p: &[f64], q: &[f64]) -> f64 {
    p.iter().zip(q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0
}

/// Of all runs of `length` items, the share that had come before: 0 for a text that never
/// repeats itself, near 1 for one that goes in a circle.
///
/// # Examples
/// ```
/// use logitscope::statistics::repeated_share;
///
/// assert_eq!(repeated_share(&[1, 2, 3, 4], 2), 0.0);
/// // ab ba ab ba: the last two came before.
/// assert_eq!(repeated_share(&["a", "b", "a", "b", "a"], 2), 0.5);
/// assert_eq!(repeated_share(&[1], 2), 0.0);
/// ```
#[must_use]
pub fn repeated_share<T: Ord>(items: &[T], length: usize) -> f64 {
    let mut seen = BTreeSet::new();
    let runs = items.windows(length.max(1));
    let all = runs.len();
    let repeated = runs.filter(|run| !seen.insert(*run)).count();
    if all == 0 { 0.0 } else { repeated as f64 / all as f64 }
}

/// The probability that a chi-square variable exceeds `statistic`.
#[must_use]
pub fn chi_square_tail(statistic: f64, degrees: usize) -> f64 {
    if degrees == 0 {
        return 1.0;
    }
    if statistic <= 0.0 {
        return 1.0;
    }
    upper_gamma(degrees as f64 / 2.0, statistic / 2.0)
}

/// The regularised upper incomplete gamma function, for positive arguments.
#[expect(clippy::many_single_char_names, reason = "the names of the formulas")]
fn upper_gamma(a: f64, x: f64) -> f64 {
    // x^a e^-x / gamma(a), which both expansions share.
    let scale = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        // The lower incomplete gamma function as a series.
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-16 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        (1.0 - scale * sum).clamp(0.0, 1.0)
    } else {
        // The upper one as a continued fraction (Lentz).
        let tiny = f64::MIN_POSITIVE;
        let mut b = x + 1.0 - a;
        let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
        let mut h = d;
        for i in 1..10_000 {
            let i = f64::from(i);
            let an = -i * (i - a);
            b += 2.0;
            d = an * d + b;
            c = b + an / c;
            d = 1.0 / if d.abs() < tiny { tiny } else { d };
            c = if c.abs() < tiny { tiny } else { c };
            h *= d * c;
            if (d * c - 1.0).abs() < 1e-15 {
                break;
            }
        }
        (scale * h).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of printed tables: the 95 % and 99.9 % points.
    #[test]
    fn tails_agree_with_tables() {
        for (degrees, point, tail) in [
            (1, 3.841_458_821, 0.05),
            (5, 11.070_497_694, 0.05),
            (10, 29.588_298_445, 0.001),
            (100, 124.342_113_400, 0.05),
        ] {
            assert!((chi_square_tail(point, degrees) - tail).abs() < 1e-9, "{degrees}");
        }
    }

    #[test]
    fn what_cannot_happen_is_rejected_when_it_does() {
        assert_eq!(chi_square(&[5, 1], &[1.0, 0.0]).p_value, 0.0);
        assert!(chi_square(&[6, 0], &[1.0, 0.0]).p_value > 0.99);
    }
}
