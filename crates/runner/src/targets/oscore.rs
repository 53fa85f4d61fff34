//! IDs of OSCORE that no other trial has: a server takes no number of a sender twice (RFC 8613,
//! section 7.4), and it may have seen another trial, or another run.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use weigh_model::oscore;
use weigh_model::trial::Trial;

/// Returns the trial with IDs of its own, if it uses OSCORE and leaves them open.
pub fn with_own_ids(trial: &Trial) -> Cow<'_, Trial> {
    // The first one is at random: another run at the same server has others.
    static NEXT: LazyLock<AtomicU32> =
        LazyLock::new(|| AtomicU32::new(RandomState::new().hash_one(0) as u32));
    let is_open = matches!(trial.settings.text(oscore::FIRST_ID), "" | "0");
    if !oscore::is_on(&trial.settings) || !is_open {
        return Cow::Borrowed(trial);
    }
    let count = trial.load.connections + trial.load.subscribers;
    let first = NEXT.fetch_add(count, Ordering::Relaxed) % IDS;
    let mut own = trial.clone();
    own.settings.0.insert(oscore::FIRST_ID.to_owned(), first.to_string());
    Cow::Owned(own)
}

/// Number of IDs of three bytes.
const IDS: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use weigh_model::trial::Settings;
    use weigh_model::{Load, Pattern};

    use super::*;

    fn trial(given: &[(&str, &str)]) -> Trial {
        let coap = weigh_protocols::find("coap").expect("it is there");
        let given = given.iter().copied();
        Trial {
            id: String::new(),
            point: Default::default(),
            repetition: 0,
            seed: 1,
            protocol: "coap".to_owned(),
            target: "reference".to_owned(),
            endpoint: None,
            load: Load { subscribers: 3, ..Load::closed(Pattern::Deliver, 2) },
            settings: Settings::new("coap", coap.settings(), given).expect("known keys"),
        }
    }

    #[test]
    fn no_two_trials_have_the_same_ids() {
        let first = |trial: &Trial| with_own_ids(trial).settings.integer(oscore::FIRST_ID) as u32;
        let on = trial(&[("oscore", "on")]);
        let (one, two) = (first(&on), first(&on));
        assert_eq!(two.wrapping_sub(one) % IDS, 5);
        assert_eq!(first(&trial(&[("oscore", "on"), ("oscore_first_id", "7")])), 7);
        assert!(matches!(with_own_ids(&trial(&[])), Cow::Borrowed(_)));
    }
}
