//! All built-in protocols, and targets that are never started.

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;
use weigh_plan::Case;
use weigh_plan::world::{PIPELINE, REFERENCE, TargetWord, World};

/// A world without a machine.
pub struct AnyWorld;

impl World for AnyWorld {
    fn protocols(&self) -> &'static [&'static dyn Protocol] {
        weigh_protocols::PROTOCOLS
    }

    fn target(&self, word: &str) -> Result<TargetWord, String> {
        let speaks = match word {
            REFERENCE => None,
            PIPELINE => Some("mqtt http1 grpc"),
            "mosquitto" | "mqtt://127.0.0.1:1883" => Some("mqtt"),
            "nginx" => Some("http1"),
            _ => return Err(format!("{word:?} is not a target: type mosquitto")),
        };
        let speaks = speaks.map(|names| names.split(' ').map(str::to_owned).collect());
        Ok(TargetWord { name: word.to_owned(), speaks })
    }

    fn target_names(&self) -> Vec<String> {
        ["reference", "mosquitto", "nginx"].map(str::to_owned).to_vec()
    }

    fn is_secret(&self, key: &str, _value: &str) -> bool {
        key.ends_with("_password")
    }

    fn check(&self, _case: &Case) -> Result<(), Invalid> {
        Ok(())
    }
}
