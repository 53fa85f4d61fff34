//! Kinds of values, and how they are parsed: every spelling becomes one canonical form.

use toml::Value;
use toml::de::DeValue;
use weigh_model::battery::Battery;
use weigh_model::body::BodySource;
use weigh_model::lookout::Lookout;
pub use weigh_model::nearest::nearest;
use weigh_model::path::{
    self, parse_bit_rate, parse_jitter, parse_loss, parse_reorder, parse_share, parse_steps,
};
use weigh_model::plan::{Precision, TargetLife};
use weigh_model::protocol::SettingKind;
use weigh_model::units::{Bytes, parse_duration, parse_rate, parse_size, parse_whole};
use weigh_model::{Arrival, Durability, Join, MeterChoice, Nanos, Pattern, Rate, Split, Topology};

use crate::metrics;
pub use crate::wrong::Wrong;

/// The kind of a key's values.
///
/// # Examples
///
/// ```
/// use weigh_plan::kind::Kind;
///
/// assert_eq!(Kind::Size.read_word("1KiB"), Ok("1024B".into()));
/// assert!(Kind::Flag.read_word("perhaps").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number between the two, both included.
    Count(u64, u64),
    /// A size in bytes, with its unit.
    Size,
    /// A duration, with its unit.
    Duration,
    /// A rate, with its unit.
    Rate,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// What `load.pattern` takes.
    Pattern,
    /// What `load.topology` takes.
    Topology,
    /// What `load.split` takes.
    Split,
    /// What `load.arrival` takes.
    Arrival,
    /// What `load.join` takes.
    Join,
    /// What `load.body` takes.
    Body,
    /// A sentence about a figure.
    Condition,
    /// A figure and how precise it must be.
    Precision,
    /// What `repeat.target` takes.
    TargetLife,
    /// What `target.durability` takes.
    Durability,
    /// The name of a path: a preset, or a file ending in `.toml`.
    Path,
    /// A share of packets, in percent.
    Share,
    /// A share of lost packets, independent or in bursts.
    Loss,
    /// A random part of a delay.
    Jitter,
    /// The share of reordered packets, and their delay.
    Reorder,
    /// Changes of a path over time.
    Steps,
    /// The rate of a link, in bits per second.
    BitRate,
    /// A meter of energy.
    Meter,
    /// The charge of a battery, and its voltage.
    Battery,
    /// What to observe of an external target.
    Lookout,
    /// Any text.
    Text,
}

impl From<SettingKind> for Kind {
    fn from(kind: SettingKind) -> Kind {
        match kind {
            SettingKind::Flag => Kind::Flag,
            SettingKind::Integer(low, high) => Kind::Count(low, high),
            SettingKind::Choice(words) => Kind::Choice(words),
            SettingKind::Text => Kind::Text,
            SettingKind::Duration => Kind::Duration,
        }
    }
}

impl Kind {
    /// Parses a value to its canonical form.
    ///
    /// # Errors
    /// An invalid value.
    pub fn read(self, value: &DeValue<'_>) -> Result<Value, Wrong> {
        match self {
            Kind::Count(low, high) => count(value, low, high),
            Kind::Flag => match value {
                DeValue::Boolean(flag) => Ok(Value::Boolean(*flag)),
                other => Err(unfit(other, "true or false")),
            },
            Kind::Choice(words) => choice(value, words),
            _ => self.read_text(&text(value, self.wanted())?).map(Value::String),
        }
    }

    /// Parses a word of the command line, which has no quotation marks.
    ///
    /// # Errors
    /// An invalid value.
    pub fn read_word(self, word: &str) -> Result<Value, Wrong> {
        let is_bare = matches!(self, Kind::Count(..) | Kind::Flag | Kind::Choice(_));
        // `10k` is a number on a command line, and not in TOML.
        if let (Kind::Count(..), Ok(number)) = (self, parse_whole(word))
            && let Ok(whole) = DeValue::parse(&number.to_string())
        {
            return self.read(whole.get_ref());
        }
        match DeValue::parse(word) {
            Ok(bare) if is_bare => self.read(bare.get_ref()),
            _ => self.read(&DeValue::String(word.into())),
        }
    }

    /// Parses a value written as text.
    ///
    /// # Errors
    /// An invalid value.
    pub fn read_text(self, text: &str) -> Result<String, Wrong> {
        let said = |error: String| Wrong::split(&error);
        match self {
            Kind::Size => parse_size(text).map(|size| Bytes(size).typed()).map_err(said),
            Kind::Duration => parse_duration(text).map(Nanos::recorded).map_err(said),
            Kind::Rate => parse_rate(text).map(Rate::typed).map_err(said),
            Kind::Pattern => text.parse().map(|word: Pattern| word.to_string()).map_err(said),
            Kind::Arrival => text.parse().map(|word: Arrival| word.to_string()).map_err(said),
            Kind::Join => text.parse().map(|word: Join| word.to_string()).map_err(said),
            Kind::Body => text.parse().map(|word: BodySource| word.to_string()).map_err(said),
            Kind::Topology => text.parse::<Topology>().map(|_| text.to_owned()).map_err(said),
            Kind::Split => text.parse::<Split>().map(|_| text.to_owned()).map_err(said),
            Kind::Condition => metrics::condition(text).map(|condition| condition.to_string()),
            Kind::Precision => match text.parse::<Precision>() {
                Ok(precision) => Ok(precision.to_string()),
                Err(error) => Err(metrics::misnamed(text).unwrap_or_else(|| said(error))),
            },
            Kind::TargetLife => target_life(text),
            Kind::Durability => text.parse().map(|own: Durability| own.to_string()).map_err(said),
            Kind::Path if text.ends_with(".toml") => Ok(text.to_owned()),
            Kind::Path => match path::preset(text) {
                Ok(_) => Ok(text.to_owned()),
                Err(error) => Err(no_path(text, &error.error)),
            },
            Kind::Share => parse_share(text).map(|share| share.to_string()).map_err(said),
            Kind::Loss => match parse_loss(text).map_err(said)? {
                path::Loss::Independent(share) => Ok(share.to_string()),
                path::Loss::GilbertElliott(_) => Ok(text.trim().to_owned()),
            },
            Kind::Jitter => match parse_jitter(text).map_err(said)? {
                path::Jitter::Uniform { width } => Ok(width.recorded()),
                _ => Ok(text.trim().to_owned()),
            },
            Kind::Reorder => parse_reorder(text).map(|_| text.trim().to_owned()).map_err(said),
            Kind::Steps => parse_steps(text).map(|_| text.trim().to_owned()).map_err(said),
            Kind::BitRate => parse_bit_rate(text).map(|rate| rate.to_string()).map_err(said),
            Kind::Meter => text.parse().map(|own: MeterChoice| own.to_string()).map_err(said),
            Kind::Battery => text.parse().map(|own: Battery| own.to_string()).map_err(said),
            // Kept as written, because an agent's token has no other form.
            Kind::Lookout => text.parse::<Lookout>().map(|_| text.to_owned()).map_err(said),
            Kind::Text | Kind::Count(..) | Kind::Flag | Kind::Choice(_) => Ok(text.to_owned()),
        }
    }

    /// The size of a value, comparable within its kind; `None` for kinds without an order.
    pub fn quantity(self, value: &Value) -> Option<f64> {
        let text = || value.as_str().unwrap_or_default();
        match self {
            Kind::Count(..) => value.as_integer().map(|number| number as f64),
            Kind::Size => parse_size(text()).ok().map(|bytes| bytes as f64),
            Kind::Duration => parse_duration(text()).ok().map(|time| time.0 as f64),
            Kind::Rate => parse_rate(text()).ok().map(|rate| rate.per_second),
            Kind::Share | Kind::Loss => parse_share(text()).ok().map(|share| share.0),
            Kind::Jitter => parse_duration(text()).ok().map(|width| width.0 as f64),
            Kind::BitRate => parse_bit_rate(text()).ok().map(|rate| rate.0 as f64),
            _ => None,
        }
    }

    /// Name of the value in the help of a flag.
    pub fn value_name(self) -> &'static str {
        match self {
            Kind::Count(..) => "N",
            Kind::Size => "SIZE",
            Kind::Duration => "TIME",
            Kind::Rate => "RATE",
            Kind::Pattern => "PATTERN",
            Kind::Topology => "TOPOLOGY",
            Kind::Split => "SPLIT",
            Kind::Arrival => "ARRIVAL",
            Kind::Body => "BODY",
            _ => "WORD",
        }
    }

    /// True for quantities, whose values can be stepped through.
    pub fn is_ordered(self) -> bool {
        matches!(self, Kind::Count(..) | Kind::Size | Kind::Duration | Kind::Rate)
    }

    /// What to type instead of a value of another type.
    fn wanted(self) -> &'static str {
        match self {
            Kind::Size => "a size such as \"64B\" or \"1KiB\"",
            Kind::Duration => "a duration such as \"10s\" or \"500ms\"",
            Kind::Rate => "a rate such as \"1000/s\" or \"1/s/client\"",
            Kind::Condition => "a condition such as \"response_time p(95) < 500ms\"",
            Kind::Share | Kind::Loss => "a share such as \"1%\"",
            Kind::Jitter => "a jitter such as \"14ms\" or \"normal:2ms\"",
            Kind::BitRate => "a rate such as \"10Mbit/s\"",
            Kind::Battery => "a battery such as \"2000mAh@5V\"",
            Kind::Precision => "a precision such as \"p99 within 5 %\"",
            _ => "a text in quotation marks",
        }
    }
}

/// Reads a value as text. A number without its unit is accepted too: the parser of the kind names
/// the possible units.
fn text(value: &DeValue<'_>, wanted: &str) -> Result<String, Wrong> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if !wanted.starts_with("a text") => Ok(number.as_str().to_owned()),
        DeValue::Float(number) if !wanted.starts_with("a text") => Ok(number.as_str().to_owned()),
        other => Err(unfit(other, wanted)),
    }
}

fn count(value: &DeValue<'_>, low: u64, high: u64) -> Result<Value, Wrong> {
    let wanted = || match high {
        MANY.. => format!("type a whole number, at least {low}"),
        _ => format!("type a whole number from {low} to {high}"),
    };
    // `10k` is in quotation marks in TOML; a number that needs none may be a mistake.
    let written = match value {
        DeValue::Float(number) => Some(number.as_str()),
        DeValue::String(text) if text.parse::<u64>().is_err() => Some(&**text),
        _ => None,
    };
    if let Some(whole) = written.and_then(|text| i64::try_from(parse_whole(text).ok()?).ok())
        && (low..=high).contains(&(whole as u64))
    {
        return Ok(Value::Integer(whole));
    }
    let DeValue::Integer(number) = value else {
        let found = match value {
            DeValue::String(text) if text.parse::<u64>().is_ok() => {
                return Err(Wrong::new(
                    format!("expected a number, found the string {text:?}"),
                    format!("remove the quotation marks: type {text}"),
                ));
            }
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Float(number) => {
                let is_above = |value: f64| value.fract() == 0.0 && value > high as f64;
                if number.as_str().parse().is_ok_and(is_above) {
                    return Err(Wrong::new(format!("{} is too large", number.as_str()), wanted()));
                }
                number.as_str().to_owned()
            }
            other => format!("a value of the type {}", other.type_str()),
        };
        return Err(Wrong::new(format!("{found} is not a whole number"), wanted()));
    };
    let read = i128::from_str_radix(number.as_str(), number.radix()).ok();
    let fits = read.filter(|read| (i128::from(low)..=i128::from(high)).contains(read));
    match fits.and_then(|read| i64::try_from(read).ok()) {
        Some(read) => Ok(Value::Integer(read)),
        None => Err(Wrong::new(format!("{} is out of range", number.as_str()), wanted())),
    }
}

fn choice(value: &DeValue<'_>, words: &[&str]) -> Result<Value, Wrong> {
    let wanted = format!("type one of {}", words.join(", "));
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        other => {
            let text = format!("a value of the type {} is not accepted", other.type_str());
            return Err(Wrong::new(text, wanted));
        }
    };
    if !words.contains(&text.as_str()) {
        let fix = nearest(&text, words.iter().copied())
            .map_or(wanted.clone(), |near| format!("did you mean {near}? Otherwise {wanted}"));
        return Err(Wrong::new(format!("unknown value {text:?}"), fix));
    }
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    Ok(number.map_or(Value::String(text), Value::Integer))
}

fn target_life(text: &str) -> Result<String, Wrong> {
    let known = Value::String(text.to_owned()).try_into::<TargetLife>();
    known.map(|_| text.to_owned()).map_err(|_| {
        let fix = "type \"fresh\" (a process for every trial) or \"kept\" (one for the run)";
        Wrong::new(format!("unknown value {text:?}"), fix)
    })
}

fn no_path(text: &str, said: &str) -> Wrong {
    let near = nearest(text, path::PRESETS.iter().map(|(name, _)| *name));
    let near = near.map_or(String::new(), |near| format!("did you mean {near}? Otherwise "));
    let fix = said.split_once(": ").map_or(said, |(_, fix)| fix);
    Wrong::new(format!("{text:?} is not a known path"), format!("{near}{fix}"))
}

fn unfit(value: &DeValue<'_>, wanted: &str) -> Wrong {
    let found = match value {
        DeValue::Array(_) => "a list is not a single value".to_owned(),
        DeValue::Table(_) => "a table is not a single value".to_owned(),
        other => format!("a value of the type {} is not accepted", other.type_str()),
    };
    Wrong::new(found, format!("type {wanted}"))
}

/// From here on a limit is only that of the type.
const MANY: u64 = 1 << 31;
