//! From the words of a plan to the second workload beneath a case: its lane, and whether it can be
//! done.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use weigh_model::background::Background;
use weigh_model::body::BodySource;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::{Endpoint, Trial};
use weigh_plan::Case;
use weigh_plan::background::PREFIX;
use weigh_plan::case::{Beneath, setting_text};
use weigh_plan::keys::Keys;
use weigh_plan::kind::Wrong;
use weigh_protocols as registry;
use weigh_stage::catalogue::Catalogue;

use crate::case::known::Known;
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Shelf, composer};
use crate::case::pipeline::Entry;
use crate::case::{Secrets, against};
use crate::exit::Stop;
use crate::trial::measure as trial_run;

/// The second workload beneath a case.
#[derive(Clone)]
pub struct BackgroundCase {
    /// What was asked.
    pub asked: Background,
    /// Its protocol, its settings, and what it goes to; at the measured target that of the case.
    pub lane: Lane,
}

impl BackgroundCase {
    /// Of this background beneath a case of the lane `measured`, whose parties may be hosts.
    ///
    /// # Errors
    /// If it cannot be done; the place is a plan key.
    pub fn of(
        asked: &Background,
        (measured, has_hosts): (&Lane, bool),
        catalogue: &Catalogue,
        secrets: &Secrets,
    ) -> Result<BackgroundCase, Invalid> {
        if has_hosts {
            return Err(Invalid::new(
                "background.target",
                "a background does not cross a path or a wire of ours",
                "leave path, wire and pcap out, or the background",
            ));
        }
        let protocol = registry::find(&asked.protocol)?;
        let against = match asked.is_at_same() {
            true => measured.against.clone(),
            false => against(&asked.target, catalogue, secrets)?,
        };
        if asked.is_at_same() && matches!(against, Against::Pipeline(_)) {
            check_readings(asked)?;
        }
        let own = asked.settings.get(&asked.protocol);
        let given: BTreeMap<String, String> = own
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), setting_text(value)?)))
            .collect();
        let lane = Lane::new(protocol, against, given).map_err(of_background)?;
        let case = BackgroundCase { asked: asked.clone(), lane };
        case.check().map_err(of_background)?;
        Ok(case)
    }

    /// Looks at it as whoever carries it out does, without starting anything.
    fn check(&self) -> Result<(), Invalid> {
        let lane = &self.lane;
        if !lane.is_foreign() && lane.settings.flag("tls_mutual") {
            let place = format!("{}.tls_mutual", lane.protocol.name());
            let problem = "the generator of a background has no certificate of its own";
            return Err(Invalid::new(place, problem, "leave it out"));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let trial = Trial {
            id: String::new(),
            point: Point::new(),
            repetition: 0,
            seed: 0,
            protocol: self.asked.protocol.clone(),
            target: lane.against.name(),
            endpoint: Some(Endpoint::at(lane.protocol.scheme(), address)),
            load: self.asked.load.clone(),
            settings: lane.settings.clone(),
        };
        trial_run::check_protocol(lane, &trial)?;
        let material = Shelf::default().fetch(&trial.load, false)?;
        let made = composer(&trial, &material, 0);
        made.map(|_| ()).map_err(|said| Invalid::new("load.size", said.to_string(), ""))
    }
}

/// What is no reading is thrown away before it comes to a store, and loads nothing behind that.
fn check_readings(asked: &Background) -> Result<(), Invalid> {
    let is_read = Entry::of(&asked.protocol)? != Entry::Store;
    let is_made_here = matches!(asked.load.body, BodySource::Filler | BodySource::Readings);
    if !is_read || !is_made_here {
        return Ok(());
    }
    Err(Invalid::new(
        "background.load.body",
        "the pipeline takes readings only, and the body of this background is none",
        "write one as a template, as in examples/pipeline-under-load.toml",
    ))
}

/// The drafts with the background that the words of `--background` ask for, and without it.
///
/// # Errors
/// What is wrong with the words, as a plan would say it.
pub fn beneath(words: &str, drafts: Vec<Case>, known: &Known<'_>) -> Result<Vec<Case>, Stop> {
    let mut all = Vec::new();
    for draft in drafts {
        let asked = of_words(words, &draft, known)
            .map_err(|said| Stop::usage(format!("--background {words:?}: {said}")))?;
        all.push(Case { background: Beneath::Off, ..draft.clone() });
        all.push(Case { background: Beneath::On(Box::new(asked)), ..draft });
    }
    Ok(all)
}

/// A background in the words of a plan: its protocol, and `key=value` as often as there are more.
fn of_words(words: &str, draft: &Case, known: &Known<'_>) -> Result<Background, String> {
    let language = Keys::new(registry::PROTOCOLS);
    let mut words = words.split_whitespace();
    let protocol = words.next().ok_or("name a protocol, such as mqtt")?;
    let mut text = format!(
        "protocol = {:?}\ntarget = {:?}\n\"background.protocol\" = {protocol:?}\n",
        draft.protocol, draft.target
    );
    for word in words {
        let wrong = |wrong: Wrong| format!("{word}: {}; {}", wrong.text, wrong.mend);
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word}: type KEY=VALUE, such as rate=1000/s"))?;
        let own = language.find(&format!("{PREFIX}{key}"));
        let key = own.or_else(|_| language.find(&format!("{PREFIX}load.{key}"))).map_err(wrong)?;
        let value = key.kind.read_word(value).map_err(wrong)?;
        text += &format!("{:?} = {value}\n", key.name);
    }
    let resolved = weigh_plan::read(&text, known).and_then(|plan| plan.resolve("background"));
    let plan = resolved.map_err(|problems| {
        let said = problems.iter().map(|one| format!("{}; {}", one.text, one.mend));
        said.collect::<Vec<_>>().join("; ")
    });
    plan?.plan.background.ok_or_else(|| "it says of none".to_owned())
}

/// What is wrong with a load or a protocol, told of the background.
fn of_background(invalid: Invalid) -> Invalid {
    Invalid { place: format!("{PREFIX}{}", invalid.place), ..invalid }
}
