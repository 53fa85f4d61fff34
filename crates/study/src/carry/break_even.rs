//! Compares two lanes with each other, and with figures of others.

use weigh_advice::cost::{Driver, Load};
use weigh_model::numbers::{exact, three_digits, time};
use weigh_stats::cost_model::Coefficients;
use weigh_stats::quantile::interpolated;

use super::asked::{Anchor, Asked, LaneAsked};
use super::family::Family;
use super::observed::{Way, arrivals};
use super::outcome::{AnchorShown, BreakEvenShown, FamilyShown};

/// From how many messages a connection on one way costs less than the other: with `o` for opening
/// a connection and `m` for a message, `n = (o_a - o_b) / (m_b - m_a)`.
pub(super) fn all(asked: &Asked, families: &[(Family, FamilyShown)]) -> Vec<BreakEvenShown> {
    asked.break_even.iter().filter_map(|pair| of_pair(pair, asked, families)).collect()
}

fn of_pair(
    pair: &super::asked::Pair,
    asked: &Asked,
    families: &[(Family, FamilyShown)],
) -> Option<BreakEvenShown> {
    let [a, b] = [&pair.a, &pair.b].map(|label| side(label, asked, families));
    let (a, b) = (a?, b?);
    let best = |side: &Side<'_>| side.costs(&side.family.model()?.best);
    let (of_a, of_b) = (best(&a)?, best(&b)?);
    let messages = equal(of_a, of_b);
    let draws_a = &a.family.model()?.draws;
    let draws_b = &b.family.model()?.draws;
    let both = draws_a.iter().zip(draws_b);
    let drawn: Vec<Both> =
        both.filter_map(|(left, right)| Some([a.costs(left)?, b.costs(right)?])).collect();
    let n = drawn.len().max(1) as f64;
    let share =
        |is: &dyn Fn(&Both) -> bool| drawn.iter().filter(|costs| is(costs)).count() as f64 / n;
    let at_one = share(&|[a, b]| a.0 + a.1 < b.0 + b.1);
    let at_many = share(&|[a, b]| a.1 < b.1);
    let mut found: Vec<f64> = drawn.iter().filter_map(|[a, b]| equal(*a, *b)).collect();
    found.sort_unstable_by(f64::total_cmp);
    let has_interval = found.len() as f64 >= SURE * n && messages.is_some();
    let end = |share: f64| has_interval.then(|| interpolated(&found, share));
    let (low, high) = (end(0.025), end(0.975));
    let mut shown = BreakEvenShown {
        a: pair.a.clone(),
        b: pair.b.clone(),
        messages,
        low,
        high,
        a_cheaper_at_one: at_one,
        a_cheaper_at_many: at_many,
        sentence: String::new(),
    };
    shown.sentence = sentence(&shown);
    Some(shown)
}

/// Where two straight lines cross at one message or more; nothing where the same one is always
/// the lower.
fn equal((open_a, each_a): (f64, f64), (open_b, each_b): (f64, f64)) -> Option<f64> {
    let messages = (open_a - open_b) / (each_b - each_a);
    (messages.is_finite() && messages >= 1.0).then_some(messages)
}

fn sentence(shown: &BreakEvenShown) -> String {
    let BreakEvenShown { a, b, .. } = shown;
    let is_open = |share: f64| (0.05..=0.95).contains(&share);
    let cheaper = |share: f64| if share > 0.5 { a } else { b };
    if let (Some(messages), Some(low), Some(high)) = (shown.messages, shown.low, shown.high) {
        let (before, after) = (cheaper(shown.a_cheaper_at_one), cheaper(shown.a_cheaper_at_many));
        return format!(
            "Up to {} messages on a connection ({} to {}) {before} takes less of the server's \
             processor, beyond that {after}.",
            exact(messages.round()),
            exact(low.round()),
            exact(high.round())
        );
    }
    if is_open(shown.a_cheaper_at_one) || is_open(shown.a_cheaper_at_many) {
        return format!("{a} and {b}: too close to call.");
    }
    if (shown.a_cheaper_at_one > 0.5) == (shown.a_cheaper_at_many > 0.5) {
        let cheap = cheaper(shown.a_cheaper_at_one);
        let dear = if cheap == a { b } else { a };
        return format!(
            "{cheap} takes less than {dear} for any number of messages per connection."
        );
    }
    format!("The number of messages at which {a} and {b} are equal is unknown.")
}

/// The costs beside figures of others.
pub(super) fn anchors(asked: &Asked, families: &[(Family, FamilyShown)]) -> Vec<AnchorShown> {
    let shown = |anchor: &Anchor| {
        let side = side(&anchor.lane, asked, families)?;
        let model = side.family.model();
        let rate = anchor.per_s_per_core;
        let load = Load { messages: rate, sealed: side.sealed(rate), ..side.load() };
        let ours = model
            .filter(|_| side.family.unknown(&load).is_none())
            .map(|model| side.family.cores(&load, &model.best) / rate * 1e6);
        let factor = ours.filter(|ours| *ours > 0.0).map(|ours| anchor.us_per_message / ours);
        let sentence = match (ours, factor) {
            (Some(ours), Some(factor)) => {
                let times = match (0.5..=2.0).contains(&factor) {
                    true => ": within a factor of 2.".to_owned(),
                    false => format!(", a factor of {}: {}", three_digits(factor), anchor.differs),
                };
                let (theirs, rate) = (anchor.us_per_message, exact(rate));
                let here = time(ours * 1e3, false);
                format!(
                    "at {rate} messages a second on a core: {here} per message here, {theirs} µs \
                     there{times}"
                )
            }
            _ => "The cost of a message was not fitted here.".to_owned(),
        };
        Some(AnchorShown {
            lane: anchor.lane.clone(),
            theirs_us: anchor.us_per_message,
            source: anchor.source.clone(),
            ours_us: ours,
            factor,
            sentence,
        })
    };
    asked.anchor.iter().filter_map(shown).collect()
}

/// One of two ways.
struct Side<'s> {
    lane: &'s LaneAsked,
    family: &'s Family,
    arrivals: f64,
}

fn side<'s>(
    label: &str,
    asked: &'s Asked,
    families: &'s [(Family, FamilyShown)],
) -> Option<Side<'s>> {
    let lane = asked.lane.iter().find(|lane| lane.label == *label)?;
    let (family, _) = families.iter().find(|(_, shown)| shown.name == lane.family)?;
    Some(Side { lane, family, arrivals: arrivals(&Way::of_lane(lane), &asked.family) })
}

impl Side<'_> {
    /// Opening a connection, and a message on it, in cores: on a server that is busy, where
    /// nothing wakes it.
    fn costs(&self, found: &Coefficients) -> Option<(f64, f64)> {
        let opening = match (self.lane.tls, self.lane.resumed) {
            (false, _) => Driver::Opened,
            (true, false) => Driver::Full,
            (true, true) => Driver::Resumed,
        };
        let message = Driver::Message(self.lane.variant.clone());
        let has = |driver: &Driver| {
            self.family.fitted.as_ref().is_some_and(|fitted| fitted.drivers.contains(driver))
        };
        (has(&opening) && has(&message)).then(|| {
            let each = |driver: &Driver| self.family.each(driver, found);
            let around = if self.lane.tls { each(&Driver::Sealed) } else { 0.0 };
            (each(&opening), each(&message) + around)
        })
    }

    fn load(&self) -> Load {
        let variant = self.lane.variant.clone();
        Load { variant, arrivals: self.arrivals, ..Load::default() }
    }

    fn sealed(&self, rate: f64) -> f64 {
        if self.lane.tls { rate } else { 0.0 }
    }
}

/// So large a share of the resamples must have a crossing for an interval of it.
const SURE: f64 = 0.975;

/// Opening a connection and a message on it, of the one way and of the other.
type Both = [(f64, f64); 2];
