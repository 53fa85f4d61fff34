//! What an option cannot do, before anything is predicted; and what it cannot do by its figures.

use weigh_model::numbers::{bytes, count, rough};
use weigh_model::protocol::Guarantee;

use crate::choice::Choice;
use crate::criterion::Criterion;
use crate::figures::{Figures, keep_alives};
use crate::situation::{ShareWord, Situation, TlsWish};

/// Why an option is out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It cannot do it.
    Out(String),
    /// It is not known whether it can, and this command would show it.
    Unknown(String, String),
}

/// Why the option is out; `None` if nothing is known against it.
pub fn by_abilities(choice: &Choice, situation: &Situation) -> Option<Verdict> {
    let out = |why: String| Some(Verdict::Out(why));
    let network = &situation.network;
    if network.tls == TlsWish::On && !choice.is_tls || network.tls == TlsWish::Off && choice.is_tls
    {
        let is_required = network.tls == TlsWish::On;
        let why = if is_required { "TLS is required" } else { "TLS is not wanted" };
        return out(why.to_owned());
    }
    let guarantee = situation.guarantee();
    if choice.guarantee < guarantee {
        return out(format!("it guarantees {}, and {guarantee} is needed", choice.guarantee));
    }
    if situation.traffic.subscribers > 0 && !choice.delivers {
        return out("it has no subscribers".to_owned());
    }
    let size = situation.traffic.size;
    if let Some(most) = choice.body_max.filter(|most| size.0 > *most) {
        return out(format!("a body of {size} is larger than the {most} B that it can send"));
    }
    durability(choice, situation)
        .or_else(|| sleep(choice, situation))
        .or_else(|| abilities(choice, situation))
}

fn durability(choice: &Choice, situation: &Situation) -> Option<Verdict> {
    let needed = situation.needs.durability?;
    if choice.guarantee == Guarantee::AtMostOnce {
        return Some(Verdict::Out("it confirms nothing, so nothing is known to be kept".into()));
    }
    match choice.durability.is_at_least(needed) {
        Some(true) => None,
        Some(false) => Some(Verdict::Out(format!(
            "a confirmation means {}, and {needed} is needed",
            choice.durability
        ))),
        None => Some(Verdict::Unknown(
            format!("what its confirmation means is {}, not {needed}", choice.durability),
            "state it in the target's file: docs/guide/durability.md".to_owned(),
        )),
    }
}

fn sleep(choice: &Choice, situation: &Situation) -> Option<Verdict> {
    if !situation.network.sleeps || keep_alives(choice, situation) == 0.0 {
        return None;
    }
    Some(Verdict::Out(format!(
        "the device sleeps {} and the connection is forgotten after {} of silence",
        rough(situation.traffic.every.as_secs_f64()),
        rough(situation.network.idle_limit.as_secs_f64())
    )))
}

fn abilities(choice: &Choice, situation: &Situation) -> Option<Verdict> {
    let wanted = &situation.needs.abilities;
    let size = situation.traffic.size.0;
    let probe = format!("weigh probe {} -o FILE", choice.target);
    let Some(known) = &choice.abilities else {
        let why = format!("{} was never probed for {}", choice.target, wanted.join(", "));
        return (!wanted.is_empty()).then_some(Verdict::Unknown(why, probe));
    };
    for name in wanted {
        match known.get(name) {
            None => {
                let why = format!("the probe of {} did not look for {name}", choice.target);
                return Some(Verdict::Unknown(why, probe));
            }
            Some(own) if !own.is_there => {
                return Some(Verdict::Out(format!("it cannot {name}: {}", own.evidence)));
            }
            Some(_) => {}
        }
    }
    let payload = known.get("payload_bytes")?;
    let most = payload.number.filter(|most| size > *most)?;
    Some(Verdict::Out(format!("bodies up to {most} B passed its probe: {}", payload.evidence)))
}

/// Why the option is out by its figures: surely more than there is, not just perhaps.
pub fn by_figures(figures: &Figures, situation: &Situation) -> Option<String> {
    let low = |criterion| figures.get(criterion).map(|own| own.interval()[0]);
    let ShareWord(headroom) = situation.server.headroom;
    let cores = situation.server.cores * headroom;
    if let Some(needed) = low(Criterion::ServerCpu).filter(|needed| *needed > cores) {
        return Some(format!(
            "it needs at least {} cores, and {} may be used",
            weigh_model::numbers::three_digits(needed),
            weigh_model::numbers::three_digits(cores)
        ));
    }
    let memory = situation.server.memory.0 as f64 * headroom;
    if let Some(needed) = low(Criterion::Memory).filter(|needed| *needed > memory) {
        return Some(format!(
            "it needs at least {} of memory, and {} may be used",
            bytes(needed),
            bytes(memory)
        ));
    }
    if figures.exchange_s > situation.traffic.every.as_secs_f64() {
        return Some(format!(
            "a message takes {}, longer than the {} between two",
            rough(figures.exchange_s),
            rough(situation.traffic.every.as_secs_f64())
        ));
    }
    if let Some(limit) = situation.needs.latency {
        let limit = limit.as_secs_f64();
        if let Some(least) = low(Criterion::Latency).filter(|least| *least > limit) {
            return Some(format!("its p99 is at least {}, not {}", rough(least), rough(limit)));
        }
    }
    lifetime(figures, situation)
}

fn lifetime(figures: &Figures, situation: &Situation) -> Option<String> {
    let wanted = situation.device.as_ref()?.lifetime?.as_secs_f64() / 86_400.0;
    let most = figures.days.as_ref()?.interval()[1];
    (most < wanted).then(|| {
        let [most, wanted] = [most, wanted].map(|days| count(days as u64));
        format!("a charge lasts at most {most} days, and {wanted} are needed")
    })
}
