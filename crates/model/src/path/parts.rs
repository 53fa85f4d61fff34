//! The numbers of a path between two hosts: what each direction does to a packet.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use super::quantity::{BitRate, Share, parse_bit_rate, parse_share};
use crate::units::{Bytes, Nanos};

/// A path between one host and all others.
///
/// # Examples
///
/// 20 ms each way, and 1 % of the packets lost:
///
/// ```
/// use weigh_model::Nanos;
/// use weigh_model::path::Path;
///
/// let words = [("path.delay", "20ms"), ("path.loss", "1%")];
/// let path = Path::of_words(None, words)?.expect("the words name a path");
/// assert_eq!(path.up.delay, Nanos::from_millis(20));
/// # Ok::<(), weigh_model::path::PathError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Its short name, as in `--path NAME`: letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Title in tables.
    pub title: String,
    /// Its purpose, in a sentence.
    pub about: String,
    /// Largest IP packet in bytes, 576 to 1500.
    pub mtu: u16,
    /// From the host that has the path.
    pub up: Direction,
    /// To the host that has the path.
    pub down: Direction,
    /// Its link layer in words, if it is not Ethernet: what `overhead` consists of.
    pub link: Option<String>,
    /// Changes during the run, in the order of time.
    pub steps: Vec<Step>,
    /// Source of each number: `up.delay` and so on, and the source or "chosen: why".
    pub sources: BTreeMap<String, String>,
}

/// One direction of a path. A packet passes these in order: queue, transmission, loss,
/// duplication, delay with jitter, reordering.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// The constant part of the delay, without transmission time.
    pub delay: Nanos,
    /// The random part.
    pub jitter: Jitter,
    /// Packets that vanish in transit. They still use their share of the rate.
    pub loss: Loss,
    /// Share of packets that arrive twice; the copy follows the original.
    pub duplicate: Share,
    /// Packets that later ones overtake.
    pub reorder: Option<Reorder>,
    /// Rate of the link, headers and [`Direction::overhead`] included; `None` for no limit.
    pub rate: Option<BitRate>,
    /// Bytes that may wait for transmission, the packet in transmission included; what does not
    /// fit is dropped at the tail. Present exactly if there is a rate.
    pub queue: Option<Bytes>,
    /// Bytes of the link layer that each IP packet adds to rate and queue.
    pub overhead: Bytes,
}

/// The random part of a delay. The order of packets is kept: a packet never leaves before the one
/// it followed, so at high rates a late packet holds up those after it, as a queue does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Jitter {
    /// No random part.
    #[default]
    None,
    /// Uniform in 0..`width`, added to the delay.
    Uniform {
        /// The largest addition.
        width: Nanos,
    },
    /// Normal around the delay; a sum below 0 becomes 0.
    Normal {
        /// The standard deviation.
        deviation: Nanos,
    },
    /// Exponential, added to the delay.
    Exponential {
        /// The mean addition.
        mean: Nanos,
    },
    /// Pareto of the second kind (Lomax), added to the delay: its quantile q is
    /// `scale` * ((1 - q)^(-1/`shape`) - 1), cut at `most`.
    Pareto {
        /// The scale.
        scale: Nanos,
        /// The tail's exponent, above 0; at 1 and below the uncut mean is infinite.
        shape: f64,
        /// No addition is longer.
        most: Nanos,
    },
}

impl Jitter {
    /// The mean addition to the delay of the distribution itself: without the effects of keeping
    /// packets in order and of cutting sums below 0.
    pub fn mean(self) -> Nanos {
        match self {
            Jitter::None | Jitter::Normal { .. } => Nanos(0),
            Jitter::Uniform { width } => Nanos(width.0 / 2),
            Jitter::Exponential { mean } => mean,
            // The integral of its tail, (1 + x / scale)^-shape, from 0 to the cut.
            Jitter::Pareto { scale, shape, most } => {
                let (scale, most) = (scale.as_secs_f64(), most.as_secs_f64());
                let longest = (1.0 + most / scale).ln();
                let rest = 1.0 - shape;
                let times = if rest == 0.0 { longest } else { (rest * longest).exp_m1() / rest };
                Nanos::from_secs_f64(scale * times)
            }
        }
    }
}

/// Loss of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each packet independently with this probability.
    Independent(Share),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

/// Gilbert and Elliott's channel of two states (Elliott, "Estimates of Error Rates for Codes on
/// Burst-Noise Channels", Bell System Technical Journal 42:5, 1963), stepped once per packet: first
/// the state changes, then the packet is lost with the probability of the state.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    model: GilbertElliottName,
    /// Probability of changing from the good state to the bad one.
    pub to_bad: Share,
    /// Probability of changing from the bad state to the good one; its inverse is the mean number
    /// of packets in the bad state.
    pub to_good: Share,
    /// Loss in the bad state.
    pub in_bad: Share,
    /// Loss in the good state.
    pub in_good: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) enum GilbertElliottName {
    #[serde(rename = "gilbert-elliott")]
    GilbertElliott,
}

/// Packets that are overtaken.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of packets that are held back.
    pub share: Share,
    /// Additional delay. Packets that follow are not held up.
    pub by: Nanos,
}

/// Change at a moment, which stays until the next step that names it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Since the path began, on the trial's clock.
    pub at: Nanos,
    /// Changes of the direction up.
    #[serde(default)]
    pub up: Change,
    /// Changes of the direction down.
    #[serde(default)]
    pub down: Change,
}

/// Numbers of a direction that change; the others stay.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    pub(super) delay: Option<Nanos>,
    pub(super) jitter: Option<Jitter>,
    pub(super) loss: Option<Loss>,
    pub(super) duplicate: Option<Share>,
    pub(super) reorder: Option<Reorder>,
    pub(super) rate: Option<RateOrNone>,
    pub(super) queue: Option<Bytes>,
    pub(super) overhead: Option<Bytes>,
}

/// `"10Mbit/s"`, or `"unlimited"` to end a limit in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateOrNone(pub(crate) Option<BitRate>);

/// Direction of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the host that has the path.
    Up,
    /// To the host that has the path.
    Down,
}

impl Direction {
    /// A direction that does nothing. Its overhead is that of an Ethernet header, as the kernel's
    /// own shapers count (14 bytes, IEEE 802.3 without preamble, check sequence and gap).
    pub fn free() -> Direction {
        Direction {
            delay: Nanos(0),
            jitter: Jitter::None,
            loss: Loss::Independent(Share::ZERO),
            duplicate: Share::ZERO,
            reorder: None,
            rate: None,
            queue: None,
            overhead: Bytes(14),
        }
    }

    /// True if it changes no packet.
    pub fn is_free(&self) -> bool {
        Direction { overhead: Direction::free().overhead, ..self.clone() } == Direction::free()
    }

    /// Returns this direction with the numbers of `change`.
    pub fn with(&self, change: &Change) -> Direction {
        let rate = change.rate.map_or(self.rate, |rate| rate.0);
        Direction {
            delay: change.delay.unwrap_or(self.delay),
            jitter: change.jitter.unwrap_or(self.jitter),
            loss: change.loss.unwrap_or(self.loss),
            duplicate: change.duplicate.unwrap_or(self.duplicate),
            reorder: change.reorder.or(self.reorder),
            rate,
            queue: change.queue.or(self.queue).filter(|_| rate.is_some() || change.queue.is_some()),
            overhead: change.overhead.unwrap_or(self.overhead),
        }
    }
}

impl Loss {
    /// Share of packets lost in the long run. With two states it is that of their stationary
    /// distribution: bad with `to_bad / (to_bad + to_good)`.
    pub fn long_run(&self) -> f64 {
        match self {
            Loss::Independent(share) => share.0,
            Loss::GilbertElliott(two) => {
                let (to_bad, to_good) = (two.to_bad.0, two.to_good.0);
                // A channel that never leaves its state starts, and stays, in the good one.
                let bad = if to_bad == 0.0 { 0.0 } else { to_bad / (to_bad + to_good) };
                bad * two.in_bad.0 + (1.0 - bad) * two.in_good.0
            }
        }
    }
}

impl GilbertElliott {
    /// A channel from its four probabilities.
    pub fn new(to_bad: Share, to_good: Share, in_bad: Share, in_good: Share) -> GilbertElliott {
        let model = GilbertElliottName::GilbertElliott;
        GilbertElliott { model, to_bad, to_good, in_bad, in_good }
    }
}

impl fmt::Display for Direction {
    /// The label of a figure: `29.6 ms + uniform 14 ms, loss 1 %, 10 Mbit/s (queue 64,000 B)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.delay, self.jitter)?;
        match self.loss {
            Loss::Independent(share) if share == Share::ZERO => {}
            Loss::Independent(share) => write!(f, ", loss {}", spaced(&share))?,
            Loss::GilbertElliott(_) => {
                write!(f, ", loss {} in bursts", spaced(&Share(self.loss.long_run())))?;
            }
        }
        if self.duplicate != Share::ZERO {
            write!(f, ", {} twice", spaced(&self.duplicate))?;
        }
        if let Some(reorder) = self.reorder.filter(|reorder| reorder.share != Share::ZERO) {
            write!(f, ", {} held back {}", spaced(&reorder.share), reorder.by)?;
        }
        if let (Some(rate), Some(queue)) = (self.rate, self.queue) {
            write!(f, ", {} (queue {queue})", spaced(&rate))?;
        }
        Ok(())
    }
}

/// A quantity as it is typed, with a blank before its unit.
fn spaced(quantity: &impl fmt::Display) -> String {
    let text = quantity.to_string();
    let unit = text.find(|c: char| c.is_alphabetic() || c == '%').unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Jitter::None => Ok(()),
            Jitter::Uniform { width } => write!(f, " + uniform {width}"),
            Jitter::Normal { deviation } => write!(f, " ± normal {deviation}"),
            Jitter::Exponential { mean } => write!(f, " + exponential {mean}"),
            Jitter::Pareto { scale, shape, most } => {
                write!(f, " + pareto {scale}, {shape}, at most {most}")
            }
        }
    }
}

impl<'de> Deserialize<'de> for RateOrNone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RateOrNone, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "unlimited" {
            return Ok(RateOrNone(None));
        }
        parse_bit_rate(&text).map(|rate| RateOrNone(Some(rate))).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Loss, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Loss;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"1%\" or { model = \"gilbert-elliott\", to_bad = \"1%\", ... }")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Loss, E> {
                parse_share(text).map(Loss::Independent).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loss, A::Error> {
                let two = GilbertElliott::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Loss::GilbertElliott(two))
            }
        }
        deserializer.deserialize_any(Either)
    }
}
