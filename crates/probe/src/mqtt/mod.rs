//! What a broker of MQTT can do. Section numbers are those of MQTT 5.0 unless 3.1.1 is named.

mod announced;
mod client;
mod delivery;
mod limits;
mod queues;
mod scene;
mod sessions;

use weigh_protocols::mqtt::codec::{Limits, Packet, Version, decode};

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
    // Whoever does not speak MQTT is not asked again and again.
    if let Err(trouble) = &scene.v311
        && !matches!(trouble, Trouble::Refused(_) | Trouble::Closed(_) | Trouble::Silent(_))
    {
        return Err(trouble.clone());
    }
    scene.v5 = enter(&mut scene, Version::V5);
    scene.version = match (&scene.v311, &scene.v5) {
        (_, Ok(_)) => Version::V5,
        (Ok(_), Err(_)) => Version::V311,
        // What it says to the older version is understood by more people.
        (Err(Trouble::Refused(text)), Err(Trouble::Refused(newer))) if is_version(text) => {
            return Err(Trouble::Refused(newer.clone()));
        }
        (Err(trouble), Err(_)) => return Err(trouble.clone()),
    };
    scene.v31 = enter_31(&mut scene);
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

/// Whether a refusal is about the version alone.
fn is_version(text: &str) -> bool {
    text.contains("protocol version")
}

/// Connects in this version and leaves.
fn enter(scene: &mut Scene, version: Version) -> Result<Granted, Trouble> {
    let client_id = scene.client_id();
    let hello = Hello { keep_alive_s: u16::MAX, ..Hello::new(version, &client_id) };
    // In 3.1.1 a broker can shorten nobody's keep-alive, and may refuse a long one.
    let hello = match version {
        Version::V5 => hello,
        Version::V311 => Hello::new(version, &client_id),
    };
    let client = Client::open(&scene.reach, &hello)?;
    let granted = client.granted.clone();
    client.leave();
    Ok(granted)
}

/// Connects as a client of MQTT 3.1: the protocol's name is MQIsdp, its level 3 (MQTT 3.1, section
/// 3.1); all else is as in 3.1.1.
fn enter_31(scene: &mut Scene) -> Result<(), Trouble> {
    let client_id = scene.client_id();
    let mut body = b"\x00\x06MQIsdp\x03".to_vec();
    let credentials = scene.reach.endpoint.credentials.clone();
    let (user, password) = credentials.map_or((None, None), |own| {
        let password = Some(own.password).filter(|password| !password.is_empty());
        (Some(own.user), password)
    });
    let flags = CLEAN
        | if user.is_some() { USER } else { 0 }
        | if password.is_some() { PASSWORD } else { 0 };
    body.extend([flags, 0, 30]);
    for field in [Some(client_id), user, password].into_iter().flatten() {
        body.extend((field.len() as u16).to_be_bytes());
        body.extend(field.as_bytes());
    }
    let mut connect = vec![0x10];
    let mut rest = body.len();
    while rest > 0x7F {
        connect.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    connect.push(rest as u8);
    connect.extend(body);
    let mut link = scene.reach.open()?;
    let until = scene.reach.until()?;
    link.send(&connect, until)?;
    loop {
        link.read(until)?;
        let decoded = decode(&link.buffer, Version::V311, &Limits::default());
        match decoded.map_err(|fault| Trouble::Foreign(fault.to_string()))? {
            None => {}
            Some((Packet::Connack(connack), _)) if connack.code == 0 => {
                let _ = link.send(&[0xE0, 0], until);
                link.cut();
                return Ok(());
            }
            Some((Packet::Connack(connack), _)) => {
                let words =
                    weigh_protocols::mqtt::codec::connack_words(connack.code, Version::V311);
                return Err(Trouble::Refused(format!("CONNACK {:#04x}, {words}", connack.code)));
            }
            Some(_) => return Err(Trouble::Foreign("no CONNACK came".to_owned())),
        }
    }
}

const CLEAN: u8 = 0x02;
const PASSWORD: u8 = 0x40;
const USER: u8 = 0x80;
