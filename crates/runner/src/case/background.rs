//! Resolves the background of a plan to a lane, and checks that it can run.

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
use crate::case::grpc;
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Shelf, composer};
use crate::case::pipeline::Entry;
use crate::case::secrets::{Secrets, against};

/// The second load of a case, which runs during its trials.
#[derive(Clone)]
pub struct BackgroundCase {
    /// The background as the plan gives it.
    pub asked: Background,
    /// Its protocol, settings and target; the case's own target unless another one is given.
    pub lane: Lane,
}

impl BackgroundCase {
    /// Resolves the background of a case whose lane is `measured`; targets may be hosts.
    ///
    /// # Errors
    /// A background that cannot run; the place is a plan key.
    pub fn of(
        asked: &Background,
        (measured, has_hosts): (&Lane, bool),
        catalogue: &Catalogue,
        secrets: &Secrets,
    ) -> Result<BackgroundCase, Invalid> {
        if has_hosts {
            return Err(Invalid::new(
                "background.target",
                "a background cannot use an emulated path, a wire or a capture",
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
        let mut lane = Lane::new(protocol, against, given).map_err(of_background)?;
        lane.check_can(catalogue).map_err(of_background)?;
        grpc::compile(&mut lane).map_err(of_background)?;
        let case = BackgroundCase { asked: asked.clone(), lane };
        case.check().map_err(of_background)?;
        Ok(case)
    }

    /// Checks the background as its generator would, without a start.
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

/// A body that is not a reading is rejected at the entry and would put no load on the store.
fn check_readings(asked: &Background) -> Result<(), Invalid> {
    let is_read = Entry::of(&asked.protocol)? != Entry::Store;
    let is_made_here = matches!(asked.load.body, BodySource::Filler | BodySource::Readings);
    if !is_read || !is_made_here {
        return Ok(());
    }
    Err(Invalid::new(
        "background.load.body",
        "the pipeline accepts only readings, and the body of this background is not one",
        "write one as a template, as in examples/pipeline-under-load.toml",
    ))
}

/// Moves an error of the load or the protocol to the key of the background.
fn of_background(invalid: Invalid) -> Invalid {
    Invalid { place: format!("{PREFIX}{}", invalid.place), ..invalid }
}
