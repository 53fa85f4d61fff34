//! Choice whether the counters of an external server are read.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Values of `--sys` and `observe.sys`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SysChoice {
    /// If the server offers them, after trials that they can explain.
    #[default]
    Auto,
    /// After every trial; a server that offers none is an error.
    On,
    /// Never. Those of a real server that Weighbridge starts are read, without being asked for,
    /// after trials that lost messages.
    Off,
}

impl SysChoice {
    /// The words, in the order they are listed to a user.
    pub const NAMES: [&'static str; 3] = ["auto", "on", "off"];

    /// True for the default.
    pub fn is_auto(&self) -> bool {
        *self == SysChoice::Auto
    }
}

impl fmt::Display for SysChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SysChoice::NAMES[*self as usize])
    }
}

impl FromStr for SysChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<SysChoice, String> {
        match text {
            "auto" => Ok(SysChoice::Auto),
            "on" => Ok(SysChoice::On),
            "off" => Ok(SysChoice::Off),
            _ => Err(format!("unknown value {text:?}: type auto, on or off")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_read_as_it_is_written() {
        for name in SysChoice::NAMES {
            let choice: SysChoice = name.parse().unwrap();
            assert_eq!(choice.to_string(), name);
            assert_eq!(serde_json::to_string(&choice).unwrap(), format!("{name:?}"));
        }
        assert!("yes".parse::<SysChoice>().unwrap_err().contains("auto, on or off"));
        assert!(SysChoice::default().is_auto());
    }
}
