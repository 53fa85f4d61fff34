//! The other way: how many devices a server carries, and how many servers a fleet needs, with the
//! resource that ends it. Beyond what was measured the cost model is alone, and the answer says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_stats::cost_model::{Coefficients, ends};

use crate::choice::Choice;
use crate::drawn::Shown;
use crate::family::{Family, KERNEL_BYTES_PER_CONNECTION};
use crate::figures::Figures;
use crate::situation::Situation;

/// How many devices a server carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carries {
    /// Devices on one server; null if nothing that was measured ends it.
    pub devices: Option<Shown>,
    /// The resource that ends it: `processor`, `memory`, `processor or memory` where the error of
    /// the prediction leaves both open, or `nothing measured`.
    pub ends_at: String,
    /// Servers that the devices of the situation need; null if unknown.
    pub servers: Option<Shown>,
    /// True if this is more than was measured.
    pub is_beyond: bool,
}

/// Sizes one server of the situation for an option; `None` without cells. `figures` are those of
/// the situation.
pub fn carries(
    choice: &Choice,
    family: &Family,
    figures: &Figures,
    situation: &Situation,
) -> Option<Carries> {
    let size = situation.traffic.size.0 as f64;
    let nearest = family;
    let family = nearest.sizing(choice, &figures.load, size)?;
    let fitted = family.fitted().ok()?;
    let share = situation.server.headroom.0;
    let cores = situation.server.cores * share;
    let per_device = figures.load.times(1.0 / situation.traffic.devices as f64);
    let by_cores = |found: &Coefficients, factor: f64| {
        let uses = |devices: f64| factor * fitted.cores(&per_device.times(devices), found);
        most(uses, cores)
    };
    let free = situation.server.memory.0 as f64 * share;
    let memory = memory_of(choice, family, (free, size));
    // The error of a prediction is that of its load: here the one at which the server ends.
    let about = by_cores(&fitted.model.best, 1.0);
    let end = if about.is_finite() { per_device.times(about) } else { figures.load.clone() };
    let correction = family.correction(choice, &end);
    let processor = by_cores(&fitted.model.best, correction);
    let drawn: Vec<[f64; 2]> = family
        .draws(choice, &end)
        .iter()
        .enumerate()
        .map(|(at, (found, factor))| {
            let held = memory.as_ref().map_or(f64::INFINITY, |own| own.1[at % own.1.len()]);
            [by_cores(found, *factor), held]
        })
        .collect();
    let held = memory.as_ref().map_or(f64::INFINITY, |own| own.0);
    let value = processor.min(held);
    let [low, high] = ends(drawn.iter().map(|[processor, held]| processor.min(*held)).collect());
    let ends_at = if value.is_finite() { ended_by(&drawn) } else { "nothing measured" };
    let (low, high) = (low.min(value), high.max(value));
    let devices = value.is_finite().then(|| Shown {
        value: value.floor(),
        low: low.floor(),
        high: high.floor(),
    });
    let wanted = situation.traffic.devices as f64;
    let needed = |each: f64| if each >= 1.0 { (wanted / each).ceil() } else { f64::INFINITY };
    let servers =
        devices.map(|_| Shown { value: needed(value), low: needed(high), high: needed(low) });
    let at_end = per_device.times(value.min(DEVICES_MAX));
    let is_beyond = nearest.at(choice, &at_end, size).is_err();
    Some(Carries { devices, ends_at: ends_at.to_owned(), servers, is_beyond })
}

/// The resource that ends a server, by the devices that processor and memory allow in each draw.
fn ended_by(drawn: &[[f64; 2]]) -> &'static str {
    let by_memory = drawn.iter().filter(|[processor, held]| held < processor).count();
    match by_memory as f64 / drawn.len().max(1) as f64 {
        few if few < OPEN => "processor",
        most if most > 1.0 - OPEN => "memory",
        _ => "processor or memory",
    }
}

/// Devices whose connections fill this memory: the value, and every draw. `None` if connections are
/// not kept, or their memory is not known.
fn memory_of(
    choice: &Choice,
    family: &Family,
    (free, size): (f64, f64),
) -> Option<(f64, Vec<f64>)> {
    // A server keeps a session of DTLS for every device, and nothing for datagrams alone.
    if !choice.is_kept || choice.is_datagram && !choice.is_tls {
        return None;
    }
    let one = family.memory(1.0, choice.is_tls, size)?;
    let none = family.memory(0.0, choice.is_tls, size)?;
    let of = |one: f64, none: f64| {
        let each = (one - none).max(KERNEL_BYTES_PER_CONNECTION);
        (free - none).max(0.0) / each
    };
    let both = one.draws.iter().zip(&none.draws);
    Some((of(one.value, none.value), both.map(|(one, none)| of(*one, *none)).collect()))
}

/// The largest number for which `uses` stays below `most`; infinite if it always does.
fn most(uses: impl Fn(f64) -> f64, most: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    if uses(low) >= most {
        return 0.0;
    }
    while uses(high) < most {
        (low, high) = (high, high * 2.0);
        if high > DEVICES_MAX {
            return f64::INFINITY;
        }
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if uses(middle) < most { low = middle } else { high = middle }
    }
    low
}

/// Share of the draws above which a resource may be the one that ends a server: half of what an
/// interval of 95 % leaves out.
const OPEN: f64 = 0.025;

/// More devices than this have no end that matters.
const DEVICES_MAX: f64 = 1e13;

/// Each halves what is left of a doubling: to a thousandth of it.
const HALVINGS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_is_open_where_draws_disagree() {
        let of = |by_memory: usize| {
            let drawn: Vec<[f64; 2]> =
                (0..1_000).map(|at| [2.0, if at < by_memory { 1.0 } else { 3.0 }]).collect();
            ended_by(&drawn)
        };
        assert_eq!([of(0), of(24), of(26)], ["processor", "processor", "processor or memory"]);
        assert_eq!([of(974), of(976)], ["processor or memory", "memory"]);
    }

    #[test]
    fn the_largest_number_is_found() {
        let found = most(|devices| 0.01 + 1e-4 * devices, 0.75);
        assert!((found / 7_400.0 - 1.0).abs() < 1e-3, "{found}");
        assert_eq!(most(|_| 0.8, 0.75), 0.0);
        assert_eq!(most(|_| 0.1, 0.75), f64::INFINITY);
    }
}
