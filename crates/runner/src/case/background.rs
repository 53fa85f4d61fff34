//! From the words of a plan to the second workload beneath a case: its lane, and whether it can be
//! done.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use weigh_model::background::Background;
use weigh_model::body::BodySource;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::{Endpoint, Trial};
use weigh_plan::background::PREFIX;
use weigh_plan::case::setting_text;
use weigh_protocols as registry;
use weigh_testbed::catalogue::Catalogue;

use crate::case::check::check_protocol;
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Shelf, composer};
use crate::case::pipeline::Entry;
use crate::case::secrets::{Secrets, against};

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
        check_protocol(lane, &trial)?;
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

/// What is wrong with a load or a protocol, told of the background.
fn of_background(invalid: Invalid) -> Invalid {
    Invalid { place: format!("{PREFIX}{}", invalid.place), ..invalid }
}
