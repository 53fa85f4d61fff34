//! The interview: one question a line, each with its default and the reason why it matters.

use weigh_model::units::Bytes;

use crate::criterion::Criterion;
use crate::refusal::Wrong;
use crate::situation::{Device, ShareWord, Situation, TlsWish};

/// A question of the interview.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The key that it sets: `traffic.devices`.
    pub key: &'static str,
    /// The question.
    pub text: &'static str,
    /// Why it matters.
    pub why: &'static str,
}

/// All questions, in their order.
pub const QUESTIONS: &[Question] = &[
    Question {
        key: "traffic.devices",
        text: "How many devices?",
        why: "a server pays for each connection and each message",
    },
    Question {
        key: "traffic.every",
        text: "Time between two messages of a device?",
        why: "kept connections pay off if it is short",
    },
    Question {
        key: "traffic.size",
        text: "Size of a message?",
        why: "headers weigh more on small ones",
    },
    Question {
        key: "traffic.subscribers",
        text: "Subscribers that get each message?",
        why: "0 if only the server stores it; else a broker is needed",
    },
    Question {
        key: "network.path",
        text: "Network between devices and server (none for local)?",
        why: "round trips and loss decide latency: a name of paths/, or delay=30ms,loss=5%",
    },
    Question {
        key: "network.tls",
        text: "TLS (on, off, either)?",
        why: "a handshake costs more than the message",
    },
    Question {
        key: "network.sleeps",
        text: "Does the device sleep between messages (yes, no)?",
        why: "a sleeping device cannot keep a connection open",
    },
    Question {
        key: "needs.loss",
        text: "Share of messages that may be lost?",
        why: "0% demands a confirmation of each",
    },
    Question {
        key: "needs.latency",
        text: "Longest time to a confirmation (p99; none for any)?",
        why: "opening a connection takes several round trips",
    },
    Question {
        key: "device.radio",
        text: "Radio of the device, for energy (none to leave energy out)?",
        why: "a radio pays for waking up, not only for bytes: see radios/",
    },
    Question {
        key: "server.cores",
        text: "Cores of the server?",
        why: "three quarters of them are used at most",
    },
    Question {
        key: "server.memory",
        text: "Memory of the server?",
        why: "kept connections take memory while nothing is sent",
    },
    Question {
        key: "matters",
        text: "What matters, the most important first?",
        why: "server-cpu, memory, bytes, energy, latency",
    },
];

impl Question {
    /// The default, as it is typed.
    pub fn default(&self, situation: &Situation) -> String {
        let traffic = &situation.traffic;
        match self.key {
            "traffic.devices" => traffic.devices.to_string(),
            "traffic.every" => traffic.every.typed(),
            "traffic.size" => traffic.size.typed(),
            "traffic.subscribers" => traffic.subscribers.to_string(),
            "network.path" => situation.network.path.clone().unwrap_or_else(none),
            "network.tls" => match situation.network.tls {
                TlsWish::On => "on".to_owned(),
                TlsWish::Off => "off".to_owned(),
                TlsWish::Either => "either".to_owned(),
            },
            "network.sleeps" => if situation.network.sleeps { "yes" } else { "no" }.to_owned(),
            "needs.loss" => {
                let share = situation.needs.loss.map_or(0.0, |own| own.0);
                format!("{}%", weigh_model::numbers::exact(share * 100.0))
            }
            "needs.latency" => situation.needs.latency.map_or_else(none, |own| own.typed()),
            "device.radio" => situation.device.as_ref().map_or_else(none, |own| own.radio.clone()),
            "server.cores" => weigh_model::numbers::exact(situation.server.cores),
            "server.memory" => match situation.server.memory {
                Bytes(own) if own % GIB == 0 => format!("{}GiB", own / GIB),
                own => own.typed(),
            },
            _ => {
                let all: Vec<&str> = situation.matters.iter().map(|own| own.name()).collect();
                all.join(", ")
            }
        }
    }

    /// Puts an answer into a situation. An empty one keeps the default.
    ///
    /// # Errors
    /// What is wrong with the answer.
    pub fn put(&self, situation: &mut Situation, answer: &str) -> Result<(), Wrong> {
        let answer = answer.trim();
        if answer.is_empty() {
            return Ok(());
        }
        self.read(situation, answer).map_err(|problem| {
            Wrong::new(self.key, problem, format!("type for example {}", self.default(situation)))
        })
    }

    fn read(&self, situation: &mut Situation, answer: &str) -> Result<(), String> {
        let is_none = answer == "none";
        let (traffic, network) = (&mut situation.traffic, &mut situation.network);
        match self.key {
            "traffic.devices" => traffic.devices = weigh_model::units::parse_whole(answer)?,
            "traffic.every" => traffic.every = weigh_model::units::parse_duration(answer)?,
            "traffic.size" => {
                traffic.size = Bytes(weigh_model::units::parse_size(answer)?);
            }
            "traffic.subscribers" => traffic.subscribers = weigh_model::units::parse_whole(answer)?,
            "network.path" => network.path = (!is_none).then(|| answer.to_owned()),
            "network.tls" => {
                network.tls = match answer {
                    "on" => TlsWish::On,
                    "off" => TlsWish::Off,
                    "either" => TlsWish::Either,
                    _ => return Err(format!("{answer:?} is not on, off or either")),
                }
            }
            "network.sleeps" => {
                network.sleeps = match answer {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(format!("{answer:?} is neither yes nor no")),
                }
            }
            "needs.loss" => {
                let share: ShareWord = answer.parse()?;
                situation.needs.loss = Some(share);
                // What may be lost needs no confirmation.
                situation.needs.guarantee = match share.0 == 0.0 {
                    true => weigh_model::Guarantee::AtLeastOnce,
                    false => weigh_model::Guarantee::AtMostOnce,
                };
            }
            "needs.latency" => {
                let time = || weigh_model::units::parse_duration(answer);
                situation.needs.latency = if is_none { None } else { Some(time()?) };
            }
            "device.radio" => situation.device = device(situation.device.take(), answer),
            "server.cores" => {
                let cores = answer.parse::<f64>();
                situation.server.cores =
                    cores.map_err(|_| format!("{answer:?} is not a number of cores"))?;
            }
            "server.memory" => {
                situation.server.memory = Bytes(weigh_model::units::parse_size(answer)?);
            }
            _ => situation.matters = matters(answer)?,
        }
        Ok(())
    }
}

/// Reads `server-cpu, bytes`.
///
/// # Errors
/// A name that is not a criterion.
pub fn matters(text: &str) -> Result<Vec<Criterion>, String> {
    text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::parse).collect()
}

/// The device of a radio: its module where the radio is one, a board otherwise.
fn device(known: Option<Device>, radio: &str) -> Option<Device> {
    if radio == "none" {
        return None;
    }
    let model = if radio.starts_with("nb-iot") { "nrf9160" } else { "pi-zero" };
    let usual =
        Device { model: model.to_owned(), radio: String::new(), battery: None, lifetime: None };
    Some(Device { radio: radio.to_owned(), ..known.unwrap_or(usual) })
}

fn none() -> String {
    "none".to_owned()
}

const GIB: u64 = 1 << 30;
