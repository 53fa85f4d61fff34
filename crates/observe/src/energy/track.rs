//! Readings at uneven moments, and the energy between any two moments among them.
//!
//! Counters are followed across their wraps and assumed to grow linearly between two readings;
//! powers
//! are integrated over the readings' own time stamps by the trapezoidal rule. A window that the
//! readings do not cover completely is refused.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use weigh_model::numbers::{exact, seconds, three_digits};

use weigh_model::energy::Span;

use super::readings::{Facts, MeterError, Reading, Value};

/// All readings of a meter over some time.
#[derive(Clone, Debug)]
pub struct Track {
    facts: Facts,
    energy: Curve,
    domains: BTreeMap<String, Curve>,
    charge: Option<Curve>,
    voltage: Option<Curve>,
    /// The smallest step that a gauge's count took, joules.
    step_j: f64,
    /// Why the readings ended early.
    lost: Option<MeterError>,
    /// Gaps in which a counter may have wrapped unseen.
    unseen: Vec<(u64, u64)>,
    own_cpu_ns: u64,
}

/// Energy and power in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Joules.
    pub energy_j: f64,
    /// Mean power, watts.
    pub power_w: f64,
    /// Charge, milliampere hours, where the meter knows a current or counts charge.
    pub charge_mah: Option<f64>,
    /// Mean voltage.
    pub voltage_v: Option<f64>,
    /// Joules by domain.
    pub domains: BTreeMap<String, f64>,
    /// Readings inside.
    pub readings: u64,
    /// Standard uncertainty from sampling, joules.
    pub sampling_j: f64,
    /// True if it is less than such a meter can plausibly show.
    pub is_implausibly_low: bool,
}

/// Why there is no figure for a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// There are fewer than two readings.
    Unread,
    /// The readings begin after the window does, or end before it; seconds that are missing.
    Uncovered(f64),
    /// The meter went away before the window ended.
    Vanished(MeterError),
    /// No reading for this number of seconds.
    Silent(f64),
    /// Too few readings of power to estimate the error between them.
    Sparse(u64),
    /// A counter may have wrapped unseen in this number of seconds without a reading.
    Unseen(f64),
    /// A counter did not change.
    StoodStill,
    /// A battery's count rose.
    Charged,
    /// Mean watts, and the most that the meter can show.
    Implausible(f64, f64),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Unread => f.write_str("the meter was not read twice"),
            Refused::Uncovered(time_s) => {
                write!(f, "its readings do not cover {} of the window", seconds(*time_s))
            }
            Refused::Vanished(error) => write!(f, "the meter vanished during the window: {error}"),
            Refused::Silent(time_s) => {
                write!(f, "it was not read for {}, so its energy is unknown", seconds(*time_s))
            }
            Refused::Sparse(readings) => {
                write!(f, "{readings} readings are too few to estimate the energy between them")
            }
            Refused::Unseen(time_s) => {
                write!(f, "its counter may have wrapped in {} without a reading", seconds(*time_s))
            }
            Refused::StoodStill => f.write_str("its counter did not change"),
            Refused::Charged => f.write_str(
                "the battery's count did not fall: it was charged, or the window is too short",
            ),
            Refused::Implausible(watts, most) => write!(
                f,
                "{} W on average, but it can show at most {} W: its unit is off, perhaps by 1,000",
                three_digits(*watts),
                exact(*most)
            ),
        }
    }
}

impl Track {
    /// Makes a track of readings in the order of time, and of the error that ended them, if any.
    pub fn new(facts: Facts, readings: &[Reading], lost: Option<MeterError>) -> Track {
        let mut track = Track {
            energy: Curve::default(),
            domains: BTreeMap::new(),
            charge: None,
            voltage: None,
            step_j: 0.0,
            lost,
            unseen: Vec::new(),
            own_cpu_ns: 0,
            facts,
        };
        match readings.first().map(|reading| &reading.value) {
            Some(Value::Energy(_)) => track.take_counters(readings),
            Some(Value::Power { .. }) => track.take_powers(readings),
            Some(Value::Left { .. }) => track.take_gauge(readings),
            None => {}
        }
        track
    }

    /// Adds the processor time that reading took, nanoseconds.
    pub fn with_own_cpu(self, own_cpu_ns: u64) -> Track {
        Track { own_cpu_ns, ..self }
    }

    /// Properties of the meter.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Processor time that reading took, nanoseconds.
    pub fn own_cpu_ns(&self) -> u64 {
        self.own_cpu_ns
    }

    /// Span from the first reading to the last; `None` with fewer than two.
    pub fn whole(&self) -> Option<Span> {
        let (first, last) = (self.energy.at_ns.first()?, self.energy.at_ns.last()?);
        (first < last).then_some(Span { from_ns: *first, to_ns: *last })
    }

    /// Energy between two moments of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// If the readings are not sufficient.
    pub fn window(&self, from_ns: u64, to_ns: u64) -> Result<Drawn, Refused> {
        let drawn = self.idle(from_ns, to_ns)?;
        match drawn.energy_j > 0.0 {
            true => Ok(drawn),
            false if self.step_j > 0.0 => Err(Refused::Charged),
            false => Err(Refused::StoodStill),
        }
    }

    /// Energy of an idle phase: a count that took no step means less than one step.
    ///
    /// # Errors
    /// If the readings are not sufficient.
    pub fn idle(&self, from_ns: u64, to_ns: u64) -> Result<Drawn, Refused> {
        self.check_covered(from_ns, to_ns)?;
        let seconds = (to_ns - from_ns) as f64 / 1e9;
        let energy_j = self.energy.between(from_ns, to_ns) / 1e6;
        if energy_j < 0.0 {
            return Err(Refused::Charged);
        }
        let power_w = energy_j / seconds;
        let (low, high) = self.facts.plausible_w;
        if power_w > high {
            return Err(Refused::Implausible(power_w, high));
        }
        let joules =
            |(name, curve): (&String, &Curve)| (name.clone(), curve.between(from_ns, to_ns) / 1e6);
        let mean = |curve: &Curve| curve.between(from_ns, to_ns) / seconds;
        Ok(Drawn {
            energy_j,
            power_w,
            charge_mah: self.charge.as_ref().map(|curve| curve.between(from_ns, to_ns) / 1e3),
            voltage_v: self.voltage.as_ref().map(mean),
            domains: self.domains.iter().map(joules).collect(),
            readings: self.energy.count(from_ns, to_ns),
            sampling_j: self.sampling_j(from_ns, to_ns, power_w)?,
            is_implausibly_low: power_w < low,
        })
    }

    fn check_covered(&self, from_ns: u64, to_ns: u64) -> Result<(), Refused> {
        let at = &self.energy.at_ns;
        let (Some(first), Some(last)) = (at.first(), at.last()) else {
            return Err(self.lost.clone().map_or(Refused::Unread, Refused::Vanished));
        };
        if *last < to_ns {
            let missing = Refused::Uncovered((to_ns - last.max(&from_ns)) as f64 / 1e9);
            return Err(self.lost.clone().map_or(missing, Refused::Vanished));
        }
        if *first > from_ns || from_ns >= to_ns || at.len() < 2 {
            return Err(Refused::Uncovered(first.saturating_sub(from_ns) as f64 / 1e9));
        }
        let overlaps = |gap: &&(u64, u64)| gap.0 < to_ns && gap.1 > from_ns;
        if let Some((begin, end)) = self.unseen.iter().find(overlaps) {
            return Err(Refused::Unseen((end - begin) as f64 / 1e9));
        }
        if self.energy.has_rates() {
            let longest = self.energy.longest_gap(from_ns, to_ns);
            let allowed = GAP_MAX.max(self.facts.period * GAP_PERIODS).as_nanos() as u64;
            if longest > allowed {
                return Err(Refused::Silent(longest as f64 / 1e9));
            }
        }
        Ok(())
    }

    /// For powers: the distance of the integrals over every other reading from the full one, at the
    /// same rate where these do not reach both ends of the window. For counters: the energy drawn
    /// while they do not change, at both ends (two rectangular distributions), and at ends between
    /// readings the error of linear growth.
    fn sampling_j(&self, from_ns: u64, to_ns: u64, power_w: f64) -> Result<f64, Refused> {
        if self.energy.has_rates() {
            let apart = |odd: usize| {
                let thinned = self.energy.thinned(odd);
                let begin = from_ns.max(*thinned.at_ns.first()?);
                let end = to_ns.min(*thinned.at_ns.last()?);
                let share = end.saturating_sub(begin) as f64 / (to_ns - from_ns) as f64;
                let off = thinned.between(begin, end) - self.energy.between(begin, end);
                (share >= THINNED_SHARE_MIN).then(|| off.abs() / share)
            };
            let apart = [apart(0), apart(1)].into_iter().flatten().reduce(f64::max);
            let too_few = || Refused::Sparse(self.energy.count(from_ns, to_ns));
            return Ok(apart.ok_or_else(too_few)? / 1e6);
        }
        let both_ends = 1.0 / 6.0_f64.sqrt();
        let stays_j = (power_w * self.facts.accuracy.refresh.as_secs_f64()).max(self.step_j);
        let between = |at_ns| self.energy.hidden(at_ns) / 1e6 / 3.0_f64.sqrt();
        Ok((stays_j * both_ends).hypot(between(from_ns)).hypot(between(to_ns)))
    }

    fn take_counters(&mut self, readings: &[Reading]) {
        let counts = |reading: &Reading| match &reading.value {
            Value::Energy(counts) => Some((reading.at_ns, counts.clone())),
            _ => None,
        };
        let looks: Vec<(u64, Vec<u64>)> = readings.iter().filter_map(counts).collect();
        let at_ns: Vec<u64> = looks.iter().map(|(at_ns, _)| *at_ns).collect();
        let mut sum = vec![0.0; looks.len()];
        for (place, domain) in self.facts.domains.clone().iter().enumerate() {
            let column: Vec<u64> =
                looks.iter().filter_map(|(_, counts)| counts.get(place).copied()).collect();
            let total = unwrapped(&column, domain.wraps_at_uj);
            if domain.is_summed {
                sum.iter_mut().zip(&total).for_each(|(sum, own)| *sum += own);
                self.unseen.extend(unseen(&at_ns, &total, domain.wraps_at_uj));
            }
            let curve = Curve { at_ns: at_ns.clone(), total, rate: Vec::new() };
            self.domains.insert(domain.name.clone(), curve);
        }
        self.energy = Curve { at_ns, total: sum, rate: Vec::new() };
    }

    fn take_powers(&mut self, readings: &[Reading]) {
        let (mut powers, mut volts, mut amperes) = (Vec::new(), Vec::new(), Vec::new());
        for reading in readings {
            let Value::Power { power_w, voltage_v, current_a } = reading.value else { continue };
            powers.push((reading.at_ns, power_w * 1e6));
            volts.extend(voltage_v.map(|value| (reading.at_ns, value)));
            // A microampere hour is 3,600 microampere seconds.
            amperes.extend(current_a.map(|value| (reading.at_ns, value * 1e6 / 3_600.0)));
        }
        let known = |points: Vec<(u64, f64)>| {
            (!points.is_empty() && points.len() == powers.len()).then(|| Curve::integral(&points))
        };
        (self.voltage, self.charge) = (known(volts), known(amperes));
        self.energy = Curve::integral(&powers);
    }

    fn take_gauge(&mut self, readings: &[Reading]) {
        let (mut charges, mut energies, mut volts) = (Vec::new(), Vec::new(), Vec::new());
        for reading in readings {
            let Value::Left { charge_uah, energy_uwh, voltage_v } = reading.value else { continue };
            charges.extend(charge_uah.map(|value| (reading.at_ns, value)));
            energies.extend(energy_uwh.map(|value| (reading.at_ns, value)));
            volts.extend(voltage_v.map(|value| (reading.at_ns, value)));
        }
        let voltage = (volts.len() > 1).then(|| Curve::integral(&volts));
        let mean_v = voltage.as_ref().map_or(0.0, Curve::mean);
        self.charge = (!charges.is_empty()).then(|| Curve::fallen(&charges, 1.0));
        // A watt hour is 3,600 joules; by its voltage a gauge of charge becomes one of energy.
        let (counts, uj_per_count) = match energies.is_empty() {
            false => (&energies, 3_600.0),
            true => (&charges, 3_600.0 * mean_v),
        };
        self.energy = Curve::fallen(counts, uj_per_count);
        self.step_j = smallest_step(counts) * uj_per_count / 1e6;
        self.voltage = voltage;
    }
}

/// A total that grows over time; with rates it is the integral of the line from one to the
/// next.
#[derive(Clone, Debug, Default, PartialEq)]
struct Curve {
    at_ns: Vec<u64>,
    total: Vec<f64>,
    rate: Vec<f64>,
}

impl Curve {
    /// Integral over seconds of a line through these values at these moments.
    fn integral(points: &[(u64, f64)]) -> Curve {
        let mut curve = Curve::default();
        let mut total = 0.0;
        for (place, (at_ns, rate)) in points.iter().enumerate() {
            if let Some((before_ns, before)) = place.checked_sub(1).map(|place| points[place]) {
                total += (before + rate) / 2.0 * (at_ns - before_ns) as f64 / 1e9;
            }
            curve.at_ns.push(*at_ns);
            curve.total.push(total);
            curve.rate.push(*rate);
        }
        curve
    }

    /// How far a count has fallen since the first, times a factor for each.
    fn fallen(points: &[(u64, i64)], each: f64) -> Curve {
        let first = points.first().map_or(0, |(_, count)| *count);
        Curve {
            at_ns: points.iter().map(|(at_ns, _)| *at_ns).collect(),
            total: points.iter().map(|(_, count)| (first - count) as f64 * each).collect(),
            rate: Vec::new(),
        }
    }

    fn has_rates(&self) -> bool {
        !self.rate.is_empty()
    }

    fn between(&self, from_ns: u64, to_ns: u64) -> f64 {
        self.at(to_ns) - self.at(from_ns)
    }

    /// Mean of the integrated value.
    fn mean(&self) -> f64 {
        let (Some(first), Some(last)) = (self.at_ns.first(), self.at_ns.last()) else { return 0.0 };
        let seconds = (last - first) as f64 / 1e9;
        match seconds > 0.0 {
            true => self.between(*first, *last) / seconds,
            false => self.rate.first().copied().unwrap_or(0.0),
        }
    }

    fn at(&self, at_ns: u64) -> f64 {
        let after = self.at_ns.partition_point(|own| *own < at_ns);
        let Some(next_ns) = self.at_ns.get(after) else {
            return self.total.last().copied().unwrap_or(0.0);
        };
        if *next_ns == at_ns || after == 0 {
            return self.total[after];
        }
        let (before_ns, before) = (self.at_ns[after - 1], self.total[after - 1]);
        let share = (at_ns - before_ns) as f64 / (next_ns - before_ns) as f64;
        if !self.has_rates() {
            return before + (self.total[after] - before) * share;
        }
        let seconds = (at_ns - before_ns) as f64 / 1e9;
        let (left, right) = (self.rate[after - 1], self.rate[after]);
        before + (left + (right - left) * share / 2.0) * seconds
    }

    /// The shorter part of a step, on one side of a moment between two readings.
    fn hidden(&self, at_ns: u64) -> f64 {
        let after = self.at_ns.partition_point(|own| *own < at_ns);
        let Some(next_ns) = self.at_ns.get(after).filter(|_| after > 0) else { return 0.0 };
        let before_ns = self.at_ns[after - 1];
        let share = (at_ns - before_ns) as f64 / (next_ns - before_ns) as f64;
        (self.total[after] - self.total[after - 1]) * share.min(1.0 - share)
    }

    /// Every other point, from the first or from the second on.
    fn thinned(&self, odd: usize) -> Curve {
        let points: Vec<(u64, f64)> = self
            .at_ns
            .iter()
            .copied()
            .zip(self.rate.iter().copied())
            .skip(odd)
            .step_by(2)
            .collect();
        Curve::integral(&points)
    }

    fn count(&self, from_ns: u64, to_ns: u64) -> u64 {
        let before = self.at_ns.partition_point(|own| *own < from_ns);
        (self.at_ns.partition_point(|own| *own <= to_ns) - before) as u64
    }

    fn longest_gap(&self, from_ns: u64, to_ns: u64) -> u64 {
        let overlapping = |pair: &&[u64]| pair[0] < to_ns && pair[1] > from_ns;
        self.at_ns.windows(2).filter(overlapping).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }
}

/// Increase of a counter since its first reading, each count kept: sums below 2^53 are exact.
fn unwrapped(counts: &[u64], wraps_at: u64) -> Vec<f64> {
    let mut total: u64 = 0;
    let mut before = counts.first().copied();
    let mut add = |count: &u64| {
        let earlier = before.replace(*count).unwrap_or(*count);
        let grown = match *count >= earlier {
            true => count - earlier,
            false => wraps_at.saturating_sub(earlier) + count,
        };
        total += grown;
        total as f64
    };
    counts.iter().map(&mut add).collect()
}

/// Gaps much longer than usual in which, at the usual rate, the counter would have come close to
/// a wrap.
fn unseen(at_ns: &[u64], total: &[f64], wraps_at: u64) -> Vec<(u64, u64)> {
    let steps: Vec<(u64, f64)> = at_ns
        .windows(2)
        .zip(total.windows(2))
        .map(|(at, total)| (at[1] - at[0], total[1] - total[0]))
        .collect();
    let mut lengths: Vec<u64> = steps.iter().map(|(length, _)| *length).collect();
    let mut rates: Vec<f64> = steps
        .iter()
        .filter(|(length, _)| *length > 0)
        .map(|(length, grown)| grown / *length as f64)
        .collect();
    lengths.sort_unstable();
    rates.sort_by(f64::total_cmp);
    let (Some(usual), Some(rate)) = (lengths.get(lengths.len() / 2), rates.get(rates.len() / 2))
    else {
        return Vec::new();
    };
    let is_unseen = |pair: &&[u64]| {
        let length = pair[1] - pair[0];
        length > usual * GAP_USUAL && length as f64 * rate * RATE_SPREAD >= wraps_at as f64
    };
    at_ns.windows(2).filter(is_unseen).map(|pair| (pair[0], pair[1])).collect()
}

/// The smallest step of a count; 1 where it took none.
fn smallest_step(points: &[(u64, i64)]) -> f64 {
    let steps = points.windows(2).map(|pair| pair[1].1.abs_diff(pair[0].1));
    steps.filter(|step| *step > 0).min().unwrap_or(1) as f64
}

/// Power that was not read for longer than this is unknown.
const GAP_MAX: Duration = Duration::from_secs(1);

/// Number of periods that count instead for a slow meter.
const GAP_PERIODS: u32 = 8;

/// With less cover of the window, every other reading shows nothing of the error.
const THINNED_SHARE_MIN: f64 = 0.5;

/// A gap is long from this multiple of the median on.
const GAP_USUAL: u64 = 4;

/// Highest power of a machine over its usual power.
const RATE_SPREAD: f64 = 2.0;
