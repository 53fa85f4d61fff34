//! Probes a broker of MQTT. Section numbers are those of MQTT 5.0 unless 3.1.1 is named.

mod announced;
mod client;
mod delivery;
mod limits;
mod queues;
mod scene;
mod sessions;

use weigh_protocols::mqtt::codec::Version;

pub use scene::Bounds;

use crate::abilities::Ability;
use crate::finding::{ask_all, question};
use crate::reach::{Reach, Trouble};
use client::{Client, Granted, Hello};
use scene::Scene;

/// Asks everything. `tell` hears of every ability as soon as it is known.
///
/// # Errors
/// If the broker lets us in in no version.
pub fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene::new(reach.clone(), bounds);
    scene.v311 = enter(&mut scene, Version::V311);
    // A server that does not support MQTT is not asked repeatedly.
    if let Err(trouble) = &scene.v311
        && !matches!(trouble, Trouble::Refused(_) | Trouble::Closed(_) | Trouble::Silent(_))
    {
        return Err(trouble.clone());
    }
    scene.v5 = enter(&mut scene, Version::V5);
    scene.version = match (&scene.v311, &scene.v5) {
        (_, Ok(_)) => Version::V5,
        (Ok(_), Err(_)) => Version::V311,
        // Its words for the older version are understood by more people.
        (Err(Trouble::Refused(text)), Err(Trouble::Refused(newer))) if is_version(text) => {
            return Err(Trouble::Refused(newer.clone()));
        }
        (Err(trouble), Err(_)) => return Err(trouble.clone()),
    };
    scene.v31 = enter_31(&mut scene);
    #[cfg(feature = "quic")]
    if weigh_protocols::urls::is_quic(&scene.reach.endpoint) {
        ask_all(&mut scene, announced::OF_QUIC, tell);
    }
    for questions in [
        announced::QUESTIONS,
        delivery::QUESTIONS,
        limits::QUESTIONS,
        sessions::QUESTIONS,
        queues::QUESTIONS,
        announced::OTHER_QUESTIONS,
        limits::OF_NAMES,
    ] {
        ask_all(&mut scene, questions, tell);
    }
    scene.tidy();
    Ok(scene.found)
}

/// Returns true if a refusal is about the version alone.
fn is_version(text: &str) -> bool {
    text.contains("protocol version")
}

/// Connects in this version and leaves.
fn enter(scene: &mut Scene, version: Version) -> Result<Granted, Trouble> {
    let client_id = scene.client_id();
    let hello = Hello { keep_alive_s: u16::MAX, ..Hello::new(version, &client_id) };
    // In 3.1.1 a broker cannot shorten a keep-alive, and may refuse a long one.
    let hello = match version {
        Version::V5 => hello,
        Version::V311 => Hello::new(version, &client_id),
    };
    let client = Client::open(&scene.reach, &hello)?;
    let granted = client.granted.clone();
    client.leave();
    Ok(granted)
}

/// Connects as a client of MQTT 3.1 and leaves.
fn enter_31(scene: &mut Scene) -> Result<(), Trouble> {
    let (version, client_id) = (Version::V311, scene.client_id());
    let connect = of_31(&Hello::new(version, &client_id).connect(&scene.reach));
    Client::open_with(&scene.reach, version, &connect).map(Client::leave)
}

/// A CONNECT of 3.1, made of one of 3.1.1, for which the product has no codec: the protocol's name
/// is MQIsdp, its level 3 (MQTT 3.1, section 3.1); all else is as in 3.1.1.
fn of_31(connect: &[u8]) -> Vec<u8> {
    let name = connect.windows(NAME_311.len()).position(|own| own == NAME_311);
    let rest = &connect[name.map_or(connect.len(), |at| at + NAME_311.len())..];
    let mut bytes = vec![connect[0]];
    let mut length = NAME_31.len() + rest.len();
    while length > 0x7F {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    [&bytes[..], NAME_31, rest].concat()
}

/// The protocol's name and level in a CONNECT (MQTT 3.1.1, section 3.1.2).
const NAME_311: &[u8] = b"\x00\x04MQTT\x04";
const NAME_31: &[u8] = b"\x00\x06MQIsdp\x03";
