//! Aligns the log of an external meter with the run's clock. Before and after the trials the
//! machine is made busy three times, in a pattern that differs from itself when shifted. The
//! pulses were where the log's power correlates best with the pattern. Two places give offset and
//! drift.

use weigh_model::energy::Span;
use weigh_model::numbers::{exact, seconds};

/// Relation of a meter's clock to the run's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alignment {
    /// The first pulse before, and the first after, on the run's clock, nanoseconds.
    run_ns: (u64, u64),
    /// The same on the log's clock.
    log_ns: (f64, f64),
    /// Possible error of a moment between them, nanoseconds.
    pub bound_ns: u64,
    /// The smaller of the two correlations, at most 1.
    pub correlation: f64,
}

impl Alignment {
    /// Finds the pulses of the run in the powers of a log, which are watts at moments of its own
    /// clock, nanoseconds.
    ///
    /// # Errors
    /// If they are missing, or in more than one place: what was found, and the fix.
    pub fn find(
        powers: &[(i64, f64)],
        before: &[Span],
        after: &[Span],
    ) -> Result<Alignment, String> {
        let (first, second) = (Pattern::of(before), Pattern::of(after));
        let (first, second) = first.zip(second).ok_or("the run made no pulses before and after")?;
        let (from, to) = (first.start_ns, second.start_ns);
        let apart_s = to.saturating_sub(from) as f64 / 1e9;
        let log = Integrals::of(powers);
        if log.length_s() > LOG_S_MAX {
            return Err(format!(
                "the log is {} long, and a run at most {}: cut it to the run",
                seconds(log.length_s()),
                seconds(LOG_S_MAX)
            ));
        }
        let needed_s = apart_s + second.length_s;
        if log.length_s() < needed_s {
            return Err(format!(
                "the log is {} long, and first to last pulse are {}: log from before the run to \
                 its end",
                seconds(log.length_s()),
                seconds(needed_s)
            ));
        }
        let (one, other) = places(&log, &first, &second, apart_s)?;
        let (at_one, at_other) = (refined(&log, &first, one), refined(&log, &second, other));
        let scores = [first.score(&log, at_one), second.score(&log, at_other)];
        let correlation = scores[0].min(scores[1]);
        if correlation < CORRELATION_MIN {
            return Err(format!(
                "the pulses are not in it: the best correlation of its power is {correlation:.2}: \
                 log the machine that generates the load, from before the run to its end"
            ));
        }
        let step_s = usual_step(powers.iter().map(|(at_ns, _)| *at_ns)) as f64 / 1e9;
        let duty = first.duty();
        let noise = (1.0 - correlation.powi(2)).max(0.0) * duty * (1.0 - duty);
        let noise = noise / correlation.powi(2);
        // Moving by d swaps d at each of six edges: the signal lost is 6 d times the contrast, the
        // noise that could hide it twice the root of 6 d over a row's length.
        let bound_s = step_s * (1.0 + 4.0 / 6.0 * noise) + EDGE_S;
        let drift = (at_other - at_one) / apart_s - 1.0;
        if drift.abs() > DRIFT_MAX + 2.0 * bound_s / apart_s {
            return Err(format!(
                "its clock would be {} ppm off, more than any clock: check the unit of its times",
                exact((drift * 1e6).round())
            ));
        }
        let start = powers[0].0 as f64;
        Ok(Alignment {
            run_ns: (from, to),
            log_ns: (start + at_one * 1e9, start + at_other * 1e9),
            bound_ns: (bound_s * 1e9).ceil() as u64,
            correlation,
        })
    }

    /// A moment of the log's clock on the run's.
    pub fn to_run(&self, log_ns: i64) -> u64 {
        let share = (log_ns as f64 - self.log_ns.0) / (self.log_ns.1 - self.log_ns.0);
        let length = (self.run_ns.1 - self.run_ns.0) as f64;
        self.run_ns.0.saturating_add_signed((share * length).round() as i64)
    }

    /// What must be added to the log's times at the first pulse, nanoseconds.
    pub fn offset_ns(&self) -> i64 {
        (self.run_ns.0 as f64 - self.log_ns.0).round() as i64
    }

    /// How much faster the log's clock runs, parts per million.
    pub fn drift_ppm(&self) -> f64 {
        let run = (self.run_ns.1 - self.run_ns.0) as f64;
        ((self.log_ns.1 - self.log_ns.0) / run - 1.0) * 1e6
    }
}

/// Pulses from the start of the first on, seconds.
struct Pattern {
    start_ns: u64,
    pulses: Vec<(f64, f64)>,
    length_s: f64,
    /// Idle time that is compared on either side.
    margin_s: f64,
}

impl Pattern {
    fn of(pulses: &[Span]) -> Option<Pattern> {
        let (first, last) = (pulses.first()?, pulses.last()?);
        let since = |at_ns: u64| at_ns.saturating_sub(first.from_ns) as f64 / 1e9;
        Some(Pattern {
            start_ns: first.from_ns,
            pulses: pulses.iter().map(|own| (since(own.from_ns), since(own.to_ns))).collect(),
            length_s: since(last.to_ns),
            margin_s: first.seconds() / 2.0,
        })
    }

    fn busy_s(&self) -> f64 {
        self.pulses.iter().map(|(from, to)| to - from).sum()
    }

    fn whole_s(&self) -> f64 {
        self.length_s + 2.0 * self.margin_s
    }

    fn duty(&self) -> f64 {
        self.busy_s() / self.whole_s()
    }

    /// Pearson's correlation of the log's power with the pattern that begins at `at` seconds of the
    /// log; 0 beyond its ends.
    fn score(&self, log: &Integrals, at: f64) -> f64 {
        let (from, to) = (at - self.margin_s, at + self.length_s + self.margin_s);
        if from < 0.0 || to > log.length_s() {
            return 0.0;
        }
        let whole_s = self.whole_s();
        let mean = (log.power(to) - log.power(from)) / whole_s;
        let square = (log.square(to) - log.square(from)) / whole_s;
        let of = |(from, to): &(f64, f64)| log.power(at + to) - log.power(at + from);
        let busy = self.pulses.iter().map(of).sum::<f64>() / whole_s;
        let duty = self.duty();
        let variance = (square - mean * mean) * duty * (1.0 - duty);
        if variance > 0.0 { (busy - mean * duty) / variance.sqrt() } else { 0.0 }
    }
}

/// The two places with the best joint fit, at the coarseness of the search.
fn places(
    log: &Integrals,
    first: &Pattern,
    second: &Pattern,
    apart_s: f64,
) -> Result<(f64, f64), String> {
    let step_s = first.pulses.iter().map(|(from, to)| to - from).fold(f64::MAX, f64::min) / 20.0;
    let count = (log.length_s() / step_s).ceil() as usize;
    let scores = |pattern: &Pattern| -> Vec<f64> {
        (0..count).map(|place| pattern.score(log, place as f64 * step_s)).collect()
    };
    let (one, other) = (scores(first), scores(second));
    let away = (apart_s / step_s).round() as usize;
    let reach = (apart_s * DRIFT_MAX / step_s).ceil() as usize + 2;
    let mut fits: Vec<(f64, usize, usize)> = Vec::new();
    for (place, own) in one.iter().enumerate() {
        let range = (place + away).saturating_sub(reach)..(place + away + reach + 1).min(count);
        let best = range.max_by(|a, b| other[*a].total_cmp(&other[*b]));
        fits.extend(best.map(|best| (own.min(other[best]), place, best)));
    }
    let best = fits.iter().max_by(|a, b| a.0.total_cmp(&b.0)).copied();
    let (score, place, partner) = best.ok_or("the log is too short")?;
    let length = (first.length_s / step_s) as usize;
    let elsewhere = fits.iter().filter(|fit| fit.1.abs_diff(place) > length).map(|fit| fit.0);
    let second_best = elsewhere.fold(0.0, f64::max);
    if score > CORRELATION_MIN && second_best > score * ALIKE {
        return Err(format!(
            "the pulses are in two places of it (correlations {score:.2} and {second_best:.2}): \
             cut the log to this run"
        ));
    }
    Ok((place as f64 * step_s, partner as f64 * step_s))
}

/// The place near `at` where the pattern fits best.
fn refined(log: &Integrals, pattern: &Pattern, at: f64) -> f64 {
    let mut step_s = pattern.pulses.iter().map(|(from, to)| to - from).fold(f64::MAX, f64::min);
    let (mut best, mut step) = (at, step_s / 20.0);
    step_s /= STEP_FINEST;
    while step > step_s {
        let near = (-10..=10).map(|number| best + f64::from(number) * step / 5.0);
        let scored = near.map(|place| (pattern.score(log, place), place));
        best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(best, |(_, place)| place);
        step /= 5.0;
    }
    best
}

/// The integrals of a log's power and of its square from the beginning on, over seconds.
struct Integrals {
    at_s: Vec<f64>,
    power: Vec<f64>,
    square: Vec<f64>,
}

impl Integrals {
    fn of(powers: &[(i64, f64)]) -> Integrals {
        let mut own = Integrals { at_s: Vec::new(), power: Vec::new(), square: Vec::new() };
        let start = powers.first().map_or(0, |(at_ns, _)| *at_ns);
        let (mut power, mut square) = (0.0, 0.0);
        let mut before: Option<(f64, f64)> = None;
        for (at_ns, watts) in powers {
            let at_s = at_ns.saturating_sub(start) as f64 / 1e9;
            if let Some((before_s, before_w)) = before.replace((at_s, *watts)) {
                let length = at_s - before_s;
                power += (before_w + watts) / 2.0 * length;
                // Integral of the square of a value that changes linearly.
                square += (before_w * before_w + before_w * watts + watts * watts) / 3.0 * length;
            }
            own.at_s.push(at_s);
            own.power.push(power);
            own.square.push(square);
        }
        own
    }

    fn length_s(&self) -> f64 {
        self.at_s.last().copied().unwrap_or(0.0)
    }

    fn power(&self, at_s: f64) -> f64 {
        self.at(&self.power, at_s)
    }

    fn square(&self, at_s: f64) -> f64 {
        self.at(&self.square, at_s)
    }

    fn at(&self, integral: &[f64], at_s: f64) -> f64 {
        let after = self.at_s.partition_point(|own| *own < at_s);
        let Some(next_s) = self.at_s.get(after) else {
            return integral.last().copied().unwrap_or(0.0);
        };
        if after == 0 {
            return integral[0];
        }
        let share = (at_s - self.at_s[after - 1]) / (next_s - self.at_s[after - 1]);
        integral[after - 1] + (integral[after] - integral[after - 1]) * share
    }
}

/// Longest log that is searched, seconds: three days, longer than any run with a meter's log.
/// The search keeps a few numbers for every twentieth of a pulse, 200 MB for such a log.
pub(super) const LOG_S_MAX: f64 = 3.0 * 86_400.0;

/// Below it power does not follow the pulses.
const CORRELATION_MIN: f64 = 0.5;

/// Two places are ambiguous from this share of the better correlation on.
const ALIKE: f64 = 0.9;

/// Clocks of meters and of the programs that read them stay within: quartz within 100 ppm, time
/// stamps by an uncorrected host within 500 (RFC 5905 takes 15 ppm as usual and 500 as the most).
const DRIFT_MAX: f64 = 0.001;

/// How much later than requested a machine is busy or at rest, and its supply shows it, seconds.
const EDGE_S: f64 = 0.002;

/// The finest step of the search, as a share of the shortest pulse.
const STEP_FINEST: f64 = 20_000.0;

/// The median of the steps between moments, nanoseconds.
pub(super) fn usual_step(at_ns: impl Iterator<Item = i64>) -> u64 {
    let at_ns: Vec<i64> = at_ns.collect();
    let mut steps: Vec<u64> = at_ns.windows(2).map(|pair| pair[1].abs_diff(pair[0])).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_stats::random::Random;

    const SECOND: u64 = 1_000_000_000;

    fn pulses(start_ns: u64) -> Vec<Span> {
        [(0, 10), (20, 30), (50, 60)]
            .map(|(from, to)| Span {
                from_ns: start_ns + from * SECOND / 10,
                to_ns: start_ns + to * SECOND / 10,
            })
            .to_vec()
    }

    /// Powers on a clock that shows `offset_s` more and runs faster by `drift`.
    fn log(
        groups: &[Vec<Span>],
        clock: (f64, f64),
        step_s: f64,
        noise_w: f64,
        seed: u64,
    ) -> Vec<(i64, f64)> {
        let mut random = Random::new(seed);
        let mut at_s: f64 = 0.0;
        let mut rows = Vec::new();
        while at_s < 80.0 {
            let run_ns = (at_s * 1e9) as u64;
            let inside = |own: &Span| (own.from_ns..own.to_ns).contains(&run_ns);
            let is_busy = groups.iter().flatten().any(inside);
            // Something else goes on between the pulses.
            let other = if (20.0..60.0).contains(&at_s) { 0.8 * (at_s * 1.7).sin() } else { 0.0 };
            let watts = 2.0 + if is_busy { 1.5 } else { 0.0 } + other;
            let noise = (random.next_f64() - 0.5) * 2.0 * noise_w;
            rows.push((((at_s * (1.0 + clock.1) + clock.0) * 1e9) as i64, watts + noise));
            at_s += step_s * (0.7 + 0.6 * random.next_f64());
        }
        rows
    }

    #[test]
    fn the_bound_contains_the_truth_in_100_of_100() {
        let (before, after) = (pulses(8 * SECOND + 123_456_789), pulses(70 * SECOND));
        let groups = [before.clone(), after.clone()];
        let mut worst: f64 = 0.0;
        for seed in 0..100 {
            let clock =
                (f64::from(seed as u32) * 0.37 - 20.0, (f64::from(seed as u32) - 50.0) * 4e-6);
            let step_s = [0.001, 0.01, 0.05][seed as usize % 3];
            let rows = log(&groups, clock, step_s, 0.6, seed);
            let found = Alignment::find(&rows, &before, &after).unwrap();
            for at_s in [8.2, 30.0, 70.0] {
                let shown = ((at_s * (1.0 + clock.1) + clock.0) * 1e9) as i64;
                let off_s = (found.to_run(shown) as f64 / 1e9 - at_s).abs();
                assert!(off_s * 1e9 <= found.bound_ns as f64, "{seed}: {off_s} {found:?}");
                worst = worst.max(off_s * 1e9 / found.bound_ns as f64);
            }
            assert!(found.bound_ns as f64 / 1e9 < step_s * 2.0 + 0.003, "{seed}: {found:?}");
            let drift = clock.1 * 1e6;
            let off_ppm = (found.drift_ppm() - drift).abs();
            assert!(off_ppm < 2.0 * found.bound_ns as f64 / 60e3, "{seed}: {off_ppm}");
        }
        assert!(worst > 0.1, "a tenth of the bound would not do: {worst}");
    }

    #[test]
    fn a_log_without_pulses_or_with_two_runs_is_refused() {
        let (before, after) = (pulses(8 * SECOND), pulses(70 * SECOND));
        let none = log(&[], (0.0, 0.0), 0.01, 0.3, 1);
        let said = Alignment::find(&none, &before, &after).unwrap_err();
        assert!(said.contains("not in it"), "{said}");
        let short = &log(std::slice::from_ref(&before), (0.0, 0.0), 0.01, 0.3, 1)[..500];
        let said = Alignment::find(short, &before, &after).unwrap_err();
        assert!(said.contains("to its end"), "{said}");
        let (soon, later) = (pulses(62 * SECOND), pulses(71 * SECOND));
        let groups = [pulses(2 * SECOND), pulses(11 * SECOND), soon.clone(), later.clone()];
        let twice = log(&groups, (0.0, 0.0), 0.01, 0.0, 1);
        let said = Alignment::find(&twice, &soon, &later).unwrap_err();
        assert!(said.contains("two places"), "{said}");
        let ages = [(i64::MIN, 2.0), (0, 2.0), (i64::MAX, 2.0)];
        let said = Alignment::find(&ages, &before, &after).unwrap_err();
        assert!(said.contains("cut it to the run"), "{said}");
    }
}
