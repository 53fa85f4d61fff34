//! The keys of OSCORE in the settings of a trial, or of a server.

use weigh_model::oscore;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;

use super::header::KID_CONTEXT_BYTES_MAX;
use super::id::{ID_BYTES_MAX, Id};
use super::security::Secrets;
use crate::coap::settings;

/// What both ends of all security contexts of a trial know.
#[derive(Clone, Debug)]
pub(in crate::coap) struct Keys {
    pub(super) secrets: Secrets,
    /// The IDs of the first endpoint and of the server towards it, if they are given.
    pub(super) first: Option<Pair>,
    /// Number of the first ID of three bytes, if they are not.
    pub(super) first_id: u32,
    /// The first sequence number of endpoints.
    pub(super) sequence: u64,
    /// Numbers that replay windows remember.
    pub(super) window: u32,
}

/// The IDs of an endpoint and of the server towards it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) endpoint: Id,
    pub(super) server: Id,
}

impl Keys {
    /// Reads the settings; `None` without OSCORE.
    ///
    /// # Errors
    /// A value that is not a key or an ID, and keys without OSCORE.
    pub(in crate::coap) fn read(settings: &Settings) -> Result<Option<Keys>, Invalid> {
        if !oscore::is_on(settings) {
            return match settings::oscore_given(settings) {
                Some(key) => {
                    let fix = "leave it out, or type --set coap.oscore=on";
                    Err(Invalid::new(format!("coap.{key}"), "there is no OSCORE", fix))
                }
                None => Ok(None),
            };
        }
        let secret = match settings.text(oscore::SECRET) {
            "" => TEST_SECRET.to_vec(),
            _ => bytes(settings, oscore::SECRET)?,
        };
        if secret.is_empty() {
            let (problem, fix) = ("OSCORE needs a master secret", "type text, or hex: and digits");
            return Err(Invalid::new("coap.oscore_secret", problem, fix));
        }
        let id_context = bytes(settings, "oscore_id_context")?;
        if id_context.len() > KID_CONTEXT_BYTES_MAX {
            let problem = format!("an ID context of {} bytes", id_context.len());
            let fix = format!("type one of at most {KID_CONTEXT_BYTES_MAX} bytes");
            return Err(Invalid::new("coap.oscore_id_context", problem, fix));
        }
        let id_context = Some(id_context).filter(|own| !own.is_empty());
        Ok(Some(Keys {
            secrets: Secrets { secret, salt: bytes(settings, "oscore_salt")?, id_context },
            first: first(settings)?,
            first_id: settings.integer(oscore::FIRST_ID) as u32,
            sequence: settings.integer("oscore_sequence"),
            window: settings.integer("oscore_window").clamp(1, u32::MAX.into()) as u32,
        }))
    }

    /// The IDs of an endpoint, by its number; `None` if there are fewer IDs of that length.
    pub(super) fn pair(&self, number: u32) -> Option<Pair> {
        let Some(first) = self.first else {
            let number = self.first_id.wrapping_add(number);
            let endpoint = Id::of(&number.to_be_bytes()[1..])?;
            return Some(Pair { endpoint, server: server_of_new(endpoint)? });
        };
        let endpoint = first.endpoint.plus(number.into())?;
        Some(Pair { endpoint, server: first.server.plus(number.into())? })
    }

    /// The ID of the server towards the endpoint with this ID; `None` if there is no such endpoint.
    pub(super) fn server_of(&self, endpoint: Id) -> Option<Id> {
        match self.first {
            Some(first) => first.server.plus(endpoint.since(first.endpoint)?),
            None => server_of_new(endpoint),
        }
    }
}

/// The ID of the server towards an endpoint whose ID was not given: no two ends that share a secret
/// may have the same ID (RFC 8613, section 3.3).
fn server_of_new(endpoint: Id) -> Option<Id> {
    Id::of(&[&[SERVER][..], endpoint.bytes()].concat())
}

fn first(settings: &Settings) -> Result<Option<Pair>, Invalid> {
    let given = |key: &str| !settings.text(key).is_empty();
    let (endpoint, server) = ("oscore_sender_id", "oscore_recipient_id");
    if given(endpoint) != given(server) {
        let missing = if given(endpoint) { server } else { endpoint };
        let problem = "the IDs of endpoints and server belong together";
        let fix = "type --set coap.oscore_sender_id=hex:01 --set coap.oscore_recipient_id=hex:81";
        return Err(Invalid::new(format!("coap.{missing}"), problem, fix));
    }
    if !given(endpoint) {
        return Ok(None);
    }
    let id = |key: &'static str| {
        Id::of(&bytes(settings, key)?).ok_or_else(|| {
            let problem = format!("an ID has at most {ID_BYTES_MAX} bytes");
            Invalid::new(format!("coap.{key}"), problem, "type such as hex:01")
        })
    };
    let pair = Pair { endpoint: id(endpoint)?, server: id(server)? };
    if pair.endpoint == pair.server {
        let problem = "both ends would have the same ID, and so the same key";
        return Err(Invalid::new("coap.oscore_recipient_id", problem, "type another one"));
    }
    Ok(Some(pair))
}

/// The bytes of a setting: text, or `hex:` and pairs of digits.
fn bytes(settings: &Settings, key: &str) -> Result<Vec<u8>, Invalid> {
    let text = settings.text(key);
    let Some(digits) = text.strip_prefix("hex:") else { return Ok(text.as_bytes().to_vec()) };
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|own| own as u8);
    let pairs = digits.as_bytes().chunks(2);
    let read = pairs.map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?));
    read.collect::<Option<Vec<u8>>>().ok_or_else(|| {
        let problem = "hex: is followed by pairs of hexadecimal digits";
        Invalid::new(format!("coap.{key}"), problem, "type such as hex:00ff, or text")
    })
}

/// The master secret of appendix C.1, which everybody knows.
const TEST_SECRET: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// First byte of the IDs of the server ("S").
const SERVER: u8 = 0x53;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<Option<Keys>, Invalid> {
        let known = settings::SETTINGS;
        Keys::read(&Settings::new("coap", known, given.iter().copied()).unwrap())
    }

    fn place(given: &[(&str, &str)]) -> Option<String> {
        read(&[&[("oscore", "on")], given].concat()).err().map(|invalid| invalid.place)
    }

    #[test]
    fn the_defaults_are_those_of_the_test_vectors() {
        assert!(read(&[]).unwrap().is_none());
        let keys = read(&[("oscore", "on")]).unwrap().unwrap();
        assert_eq!(keys.secrets.secret, (1..=16).collect::<Vec<u8>>());
        assert_eq!(keys.secrets.salt, [0x9e, 0x7c, 0xa9, 0x22, 0x23, 0x78, 0x63, 0x40]);
        assert_eq!((keys.secrets.id_context.as_ref(), keys.window, keys.sequence), (None, 32, 0));
        let shown = format!("{keys:?}");
        assert!(!shown.contains("9e") && shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn every_endpoint_has_an_id_and_the_server_another_towards_each() {
        let ids = [("oscore_sender_id", "hex:01"), ("oscore_recipient_id", "hex:81")];
        let keys = read(&[&[("oscore", "on")], &ids[..]].concat()).unwrap().unwrap();
        let id = |byte: u8| Id::of(&[byte]).unwrap();
        assert_eq!(keys.pair(3), Some(Pair { endpoint: id(4), server: id(0x84) }));
        assert_eq!((keys.pair(126).is_some(), keys.pair(127)), (true, None));
        assert_eq!((keys.server_of(id(4)), keys.server_of(id(0))), (Some(id(0x84)), None));
        let keys = read(&[("oscore", "on")]).unwrap().unwrap();
        let server = keys.server_of(Id::of(b"abc").unwrap()).unwrap();
        assert_eq!(server.bytes(), b"Sabc");
        assert_eq!(keys.server_of(Id::of(&[0; 7]).unwrap()), None);
        let keys = read(&[("oscore", "on"), ("oscore_first_id", "16777215")]).unwrap().unwrap();
        let ids = [0, 1].map(|number| keys.pair(number).unwrap().endpoint);
        assert_eq!(ids.map(|id| id.bytes().to_vec()), [[0xff; 3], [0; 3]]);
    }

    #[test]
    fn what_is_no_key_is_named() {
        let named = |key: &str| Some(format!("coap.{key}"));
        assert_eq!(place(&[]), None);
        assert_eq!(place(&[("oscore_secret", "hex:0")]), named("oscore_secret"));
        assert_eq!(place(&[("oscore_secret", "hex:")]), named("oscore_secret"));
        assert_eq!(place(&[("oscore_salt", "hex:zz")]), named("oscore_salt"));
        assert_eq!(place(&[("oscore_sender_id", "hex:01")]), named("oscore_recipient_id"));
        assert_eq!(place(&[("oscore_recipient_id", "a")]), named("oscore_sender_id"));
        let both = |endpoint, server| {
            place(&[("oscore_sender_id", endpoint), ("oscore_recipient_id", server)])
        };
        assert_eq!(both("hex:0102030405060708", "b"), named("oscore_sender_id"));
        assert_eq!(both("a", "a"), named("oscore_recipient_id"));
        assert_eq!(both("hex:", "a"), None);
        let long = "x".repeat(33);
        assert_eq!(place(&[("oscore_id_context", &long)]), named("oscore_id_context"));
        let off = read(&[("oscore_secret", "s")]).unwrap_err();
        assert!(off.to_string().contains("coap.oscore=on"), "{off}");
    }
}
