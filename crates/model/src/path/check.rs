//! Finds contradictions in a path file; each error names the key and the fix.

use super::{Change, Direction, Jitter, Path};
use crate::units::{Bytes, Nanos};

/// Finds the first contradiction. `up` and `down` are the tables as written.
pub(super) fn check(path: &Path, up: &Change, down: &Change) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if path.name.is_empty() || !path.name.chars().all(plain) {
        return Err(format!("the name {:?} may hold letters, digits, - _ . only", path.name));
    }
    if !(MTU_MIN..=MTU_MAX).contains(&path.mtu) {
        return Err(format!(
            "mtu = {}: type {MTU_MIN} (what every IPv4 host accepts) to {MTU_MAX} (Ethernet)",
            path.mtu
        ));
    }
    direction("up", &path.up, path.mtu)?;
    direction("down", &path.down, path.mtu)?;
    let mut last = Nanos(0);
    for (index, step) in path.steps.iter().enumerate() {
        let name = format!("step {}", index + 1);
        if step.at <= last {
            return Err(format!(
                "{name}: at = \"{}\" is not after \"{}\": steps follow each other, the first later \
                 than 0",
                step.at.typed(),
                last.typed()
            ));
        }
        if step.up == Change::default() && step.down == Change::default() {
            return Err(format!("{name} changes nothing: give it up = {{ ... }} or down"));
        }
        last = step.at;
    }
    for (way, name) in [(super::Way::Up, "up"), (super::Way::Down, "down")] {
        for (at, changed) in path.over_time(way).iter().skip(1) {
            direction(&format!("step at {at}: {name}"), changed, path.mtu)?;
        }
    }
    sources(path, up, down)
}

/// A link layer that a file names needs its bytes, in both directions. Numbers of a plan over a
/// preset keep those of the preset.
pub(super) fn link(path: &Path, up: &Change, down: &Change) -> Result<(), String> {
    let is_told = up.overhead.is_some() && down.overhead.is_some();
    match &path.link {
        Some(link) if link.trim().is_empty() || !is_told => {
            Err("link: say what it is made of, such as \"MAC 26, LLC 8\", and type up.overhead \
                 and down.overhead, the bytes of a packet"
                .to_owned())
        }
        _ => Ok(()),
    }
}

fn direction(name: &str, direction: &Direction, mtu: u16) -> Result<(), String> {
    match (direction.rate, direction.queue) {
        (Some(_), None) => {
            return Err(format!(
                "{name}.rate has no {name}.queue: say how many bytes may wait, e.g. \"64KB\""
            ));
        }
        (None, Some(_)) => {
            return Err(format!("{name}.queue has no {name}.rate: nothing waits without a rate"));
        }
        (Some(_), Some(Bytes(queue))) => {
            let packet = u64::from(mtu) + direction.overhead.0;
            if queue < packet {
                return Err(format!(
                    "{name}.queue = {queue}B holds no whole packet of {packet}B: type more"
                ));
            }
        }
        (None, None) => {}
    }
    if direction.overhead.0 > OVERHEAD_MAX {
        return Err(format!("{name}.overhead is above {OVERHEAD_MAX}B: it is counted per packet"));
    }
    if direction.delay > DELAY_MAX {
        return Err(format!("{name}.delay is above {DELAY_MAX}: type less"));
    }
    match direction.jitter {
        Jitter::Pareto { shape, .. } if !(shape > 0.0 && shape.is_finite()) => {
            Err(format!("{name}.jitter.shape = {shape}: type a number above 0, e.g. 1.5"))
        }
        Jitter::Pareto { scale, most, .. } if scale > DELAY_MAX || most > DELAY_MAX => {
            Err(format!("{name}.jitter is above {DELAY_MAX}: type less"))
        }
        Jitter::Uniform { width: long }
        | Jitter::Normal { deviation: long }
        | Jitter::Exponential { mean: long }
            if long > DELAY_MAX =>
        {
            Err(format!("{name}.jitter is above {DELAY_MAX}: type less"))
        }
        _ => match direction.reorder {
            Some(reorder) if reorder.by > DELAY_MAX => {
                Err(format!("{name}.reorder.by is above {DELAY_MAX}: type less"))
            }
            _ => Ok(()),
        },
    }
}

/// A source must belong to a number that is given.
fn sources(path: &Path, up: &Change, down: &Change) -> Result<(), String> {
    let given = given_keys(up, down);
    match path.sources.iter().find(|(key, text)| !given.contains(key) || text.trim().is_empty()) {
        Some((key, _)) if given.contains(key) => Err(format!("sources: \"{key}\" is empty")),
        Some((key, _)) => Err(format!(
            "sources: \"{key}\" is not a number of this file: there are {}",
            given.join(", ")
        )),
        None => Ok(()),
    }
}

/// The keys of all numbers that a file gives: `mtu`, `up.delay` and so on.
fn given_keys(up: &Change, down: &Change) -> Vec<String> {
    let mut keys = vec!["mtu".to_owned(), "steps".to_owned()];
    for (name, change) in [("up", up), ("down", down)] {
        let given = [
            ("delay", change.delay.is_some()),
            ("jitter", change.jitter.is_some()),
            ("loss", change.loss.is_some()),
            ("duplicate", change.duplicate.is_some()),
            ("reorder", change.reorder.is_some()),
            ("rate", change.rate.is_some()),
            ("queue", change.queue.is_some()),
            ("overhead", change.overhead.is_some()),
        ];
        keys.extend(given.iter().filter(|(_, is)| *is).map(|(key, _)| format!("{name}.{key}")));
    }
    keys
}

/// The numbers of a file without a source.
#[cfg(test)]
pub(super) fn without_source(path: &Path, up: &Change, down: &Change) -> Vec<String> {
    let keys = given_keys(up, down).into_iter();
    let keys = keys.filter(|key| key != "steps" || !path.steps.is_empty());
    keys.filter(|key| !path.sources.contains_key(key)).collect()
}

/// RFC 791, section 3.2: every host must accept datagrams of 576 octets.
const MTU_MIN: u16 = 576;
/// The payload of an Ethernet frame (IEEE 802.3); the forwarder's buffers hold no more.
const MTU_MAX: u16 = 1500;
/// More is probably a mistake.
const OVERHEAD_MAX: u64 = 1000;
/// Longer delays than this end TCP connections.
const DELAY_MAX: Nanos = Nanos::from_secs(120);
