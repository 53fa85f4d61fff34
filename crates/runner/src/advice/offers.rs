//! Options with everything that is known of them without a measurement: lanes of protocols and
//! servers, each with kept connections and one for every message, with TLS and without.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weigh_advice::answer::Offer;
use weigh_advice::choice::{AbilityKnown, Choice};
use weigh_advice::session::Session;
use weigh_advice::situation::{Situation, TlsWish};
use weigh_model::protocol::{Protocol, Transport};
use weigh_model::{Endpoint, Nanos, Pattern, quic};
use weigh_probe::abilities::{Abilities, Value};
use weigh_protocols::{self as registry, urls};
use weigh_testbed::catalogue::Catalogue;

use super::dry;
use crate::case::lanes::{Against, Given, Lane, lanes};
use crate::exit::Stop;
use crate::targets::tls::CertificateFiles;
use crate::watcher::Watcher;

/// Options, and the dry trials that show what their connections carry.
pub struct Offers {
    /// The options, in the order in which they were named.
    pub all: Vec<Offer>,
    vault: CertificateFiles,
}

impl Offers {
    /// All options of a situation. Certificates for dry trials are made in `folder`, without their
    /// keys.
    ///
    /// # Errors
    /// Unknown words, URLs whose traffic cannot be computed, and a folder that cannot be written.
    pub fn of(
        situation: &Situation,
        catalogue: &Catalogue,
        folder: PathBuf,
        watcher: &dyn Watcher,
    ) -> Result<Offers, Stop> {
        let words: Vec<String> = match situation.options.is_empty() {
            // What QUIC costs is not computed here.
            true => {
                let known = registry::PROTOCOLS.iter().filter(|own| !quic::is_always(**own));
                known.map(|own| own.name().to_owned()).collect()
            }
            false => situation.options.clone(),
        };
        let mut offers = Offers { all: Vec::new(), vault: CertificateFiles::new(folder) };
        for lane in lanes(&words, catalogue, &Given::default(), watcher)? {
            offers.add(&lane, situation, catalogue)?;
        }
        Ok(offers)
    }

    fn dry(&self, choice: &Choice, size: u64) -> Result<Session, Stop> {
        let protocol = registry::find(&choice.protocol)?;
        let ways = (choice.is_kept || choice.is_datagram, choice.is_tls);
        dry::session(protocol, &choice.settings, ways, size, &self.vault)
    }

    /// Adds the options of a lane.
    fn add(
        &mut self,
        lane: &Lane,
        situation: &Situation,
        catalogue: &Catalogue,
    ) -> Result<(), Stop> {
        let transport = lane.protocol.host(&lane.settings)?.transport;
        if quic::is_on(lane.protocol, &lane.settings) {
            let why = "what QUIC costs is not computed here";
            let fix = "run weigh compare, then weigh size --cells latest";
            return Err(Stop::usage(format!(
                "options: {}: {why}\nhelp: {fix}",
                lane.protocol.name()
            )));
        }
        let is_datagram = transport == Transport::Datagram;
        let is_built = if is_datagram { HAS_DTLS } else { HAS_TLS };
        let has_tls = lane.protocol.has_setting("tls") && is_built;
        let wish = situation.network.tls;
        let mut secured = vec![false];
        if let Against::Foreign(endpoint) = &lane.against {
            check_url(endpoint)?;
            secured = vec![urls::is_secure(endpoint)];
        } else if has_tls {
            secured = match wish {
                TlsWish::On => vec![true],
                TlsWish::Off => vec![false],
                TlsWish::Either => vec![false, true],
            };
        }
        for is_tls in secured {
            let kept: &[bool] = if is_datagram { &[true] } else { &[true, false] };
            for is_kept in kept {
                let choice = choice(lane, catalogue, transport, (*is_kept, is_tls));
                let size = situation.traffic.size.0;
                let session = self.dry(&choice, size).map_err(|stop| impossible(&stop));
                let open_trips = open_trips(lane.protocol, &choice);
                self.all.push(Offer { choice, session, open_trips });
            }
        }
        Ok(())
    }
}

/// Why an option cannot be, in one line: there is nothing to type for it.
fn impossible(stop: &Stop) -> String {
    let text = stop.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("load.pattern: ").to_owned()
}

/// A URL says whether there is TLS; what else it may say, a dry trial does not show.
fn check_url(endpoint: &Endpoint) -> Result<(), Stop> {
    let why = match (endpoint.credentials.is_some(), urls::is_websocket(endpoint)) {
        (true, _) => "a password in a URL is not used here",
        (_, true) => "the bytes of WebSocket are not computed here",
        _ => return Ok(()),
    };
    Err(Stop::usage(format!(
        "options: {endpoint}: {why}\nhelp: run weigh compare with this URL and --observe \
         port:PORT, then weigh size --cells latest"
    )))
}

fn choice(
    lane: &Lane,
    catalogue: &Catalogue,
    transport: Transport,
    (is_kept, is_tls): (bool, bool),
) -> Choice {
    let (protocol, target) = (lane.protocol, lane.against.name());
    let is_datagram = transport == Transport::Datagram;
    let abilities = match &lane.against {
        Against::Reference => Some(BTreeMap::new()),
        _ => known_abilities(catalogue, &target),
    };
    Choice {
        protocol: protocol.name().to_owned(),
        settings: varied(protocol, &lane.given),
        is_kept,
        is_tls,
        resumes: false,
        is_datagram,
        delivers: protocol.patterns().contains(&Pattern::Deliver) && !is_datagram,
        guarantee: protocol.guarantee(&lane.settings),
        durability: lane.durability(catalogue),
        body_max: (protocol.name() == "mqtt").then_some(MQTT_PACKET_MAX),
        silence_max: (protocol.properties().ping_bytes.is_some()).then_some(MQTT_SILENCE_MAX),
        abilities,
        target,
    }
}

/// Settings that make the lanes of a protocol, and no others.
pub fn varied(
    protocol: &dyn Protocol,
    given: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_varied = |key: &str| {
        protocol.lanes().iter().flat_map(|lane| lane.iter()).any(|(own, _)| *own == key)
    };
    let own = given.iter().filter(|(key, _)| is_varied(key));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Round trips to open a connection: TCP one, TLS 1.3 one, and the greeting of the protocol.
fn open_trips(protocol: &dyn Protocol, choice: &Choice) -> f64 {
    if choice.is_datagram {
        return 0.0;
    }
    let tls = if choice.is_tls { 1.0 } else { 0.0 };
    1.0 + tls + f64::from(protocol.properties().greeting_round_trips)
}

/// What a probe found of a server, if it was probed.
fn known_abilities(catalogue: &Catalogue, target: &str) -> Option<BTreeMap<String, AbilityKnown>> {
    let (file, text) = catalogue.abilities(target)?;
    let known = Abilities::read(file, text).ok()?;
    let of = |own: &weigh_probe::abilities::Ability| {
        let number = match own.value {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        };
        let known =
            AbilityKnown { is_there: !own.is_missing(), number, evidence: own.evidence.clone() };
        (own.name.clone(), known)
    };
    Some(known.abilities.iter().map(of).collect())
}

/// MQTT 3.1.1, section 2.2.3: the largest remaining length.
const MQTT_PACKET_MAX: u64 = 268_435_455;

/// MQTT 3.1.1, section 3.1.2.10: the largest keep-alive is 65,535 s.
const MQTT_SILENCE_MAX: Nanos = Nanos::from_secs(65_535);

/// True if this build has TLS.
const HAS_TLS: bool = cfg!(feature = "tls");

/// True if this build has TLS over datagrams.
const HAS_DTLS: bool = cfg!(feature = "dtls");
