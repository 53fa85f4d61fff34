//! CONNECT and CONNACK (sections 3.1 and 3.2).

use super::cursor::{Cursor, put_binary, put_header, put_two};
use super::{Fault, Properties, Qos, Version, reason};
use crate::mqtt::topic;

/// A client asks for a session (section 3.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connect<'a> {
    /// Protocol version of the client.
    pub version: Version,
    /// Clean session in 3.1.1, clean start in 5 (section 3.1.2.4).
    pub clean: bool,
    /// Longest silence of the client in seconds; 0 switches the check off.
    pub keep_alive_s: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// Empty asks the server for one.
    pub client_id: &'a str,
    /// Message that the server publishes when the client is gone.
    pub will: Option<Will<'a>>,
    /// User name.
    pub user: Option<&'a str>,
    /// Password.
    pub password: Option<&'a [u8]>,
}

/// Message that the server publishes when the client is gone (section 3.1.3.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Will<'a> {
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// Topic of the will.
    pub topic: &'a str,
    /// Body of the will.
    pub body: &'a [u8],
    /// QoS of the will.
    pub qos: Qos,
    /// Whether it is retained.
    pub retain: bool,
}

impl<'a> Connect<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Connect<'a>, Fault> {
        let version = read_version(cursor)?;
        let flags = cursor.byte()?;
        if flags & RESERVED != 0 {
            return Err(Fault::malformed("the reserved connect flag is set", "3.1.2.3"));
        }
        if flags & USER == 0 && flags & PASSWORD != 0 && version == Version::V311 {
            return Err(Fault::malformed("a password without a user name", "3.1.2.9 of 3.1.1"));
        }
        let keep_alive_s = cursor.two()?;
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => Properties::read(cursor, super::CONNECT)?,
        };
        let client_id = cursor.text()?;
        let will = Will::read(flags, cursor, version)?;
        let user = if flags & USER != 0 { Some(cursor.text()?) } else { None };
        let password = if flags & PASSWORD != 0 { Some(cursor.binary()?) } else { None };
        let clean = flags & CLEAN != 0;
        Ok(Connect { version, clean, keep_alive_s, properties, client_id, will, user, password })
    }

    /// Appends the packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let field = |bytes: &[u8]| 2 + bytes.len();
        let remaining = 10
            + self.properties.size(self.version)
            + field(self.client_id.as_bytes())
            + self.will.map_or(0, |will| {
                will.properties.size(self.version) + field(will.topic.as_bytes()) + field(will.body)
            })
            + self.user.map_or(0, |user| field(user.as_bytes()))
            + self.password.map_or(0, field);
        put_header(out, super::CONNECT << 4, remaining);
        put_binary(out, b"MQTT");
        out.push(match self.version {
            Version::V311 => 4,
            Version::V5 => 5,
        });
        out.push(self.flags());
        put_two(out, self.keep_alive_s);
        self.properties.put(self.version, out);
        put_binary(out, self.client_id.as_bytes());
        if let Some(will) = &self.will {
            will.properties.put(self.version, out);
            put_binary(out, will.topic.as_bytes());
            put_binary(out, will.body);
        }
        if let Some(user) = self.user {
            put_binary(out, user.as_bytes());
        }
        if let Some(password) = self.password {
            put_binary(out, password);
        }
    }

    fn flags(&self) -> u8 {
        let will = self.will.map_or(0, |will| {
            WILL | (will.qos as u8) << 3 | if will.retain { WILL_RETAIN } else { 0 }
        });
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        will | bit(self.clean, CLEAN)
            | bit(self.user.is_some(), USER)
            | bit(self.password.is_some(), PASSWORD)
    }
}

impl<'a> Will<'a> {
    fn read(
        flags: u8,
        cursor: &mut Cursor<'a>,
        version: Version,
    ) -> Result<Option<Will<'a>>, Fault> {
        let qos = Qos::from_bits(flags >> 3 & 3)
            .ok_or(Fault::malformed("the will has QoS 3", "3.1.2.6"))?;
        let retain = flags & WILL_RETAIN != 0;
        if flags & WILL == 0 {
            return match qos == Qos::AtMostOnce && !retain {
                true => Ok(None),
                false => Err(Fault::malformed("will flags without a will", "3.1.2.5")),
            };
        }
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => Properties::read(cursor, 0)?,
        };
        let topic = cursor.text()?;
        if !topic::is_name(topic) {
            return Err(Fault {
                reason: 0x90,
                what: "the will's topic is empty or has wildcards",
                section: "3.1.3.3",
            });
        }
        Ok(Some(Will { properties, topic, body: cursor.binary()?, qos, retain }))
    }
}

/// Protocol name and level (sections 3.1.2.1 and 3.1.2.2).
fn read_version(cursor: &mut Cursor<'_>) -> Result<Version, Fault> {
    let name = cursor.text()?;
    let level = cursor.byte()?;
    match (name, level) {
        ("MQTT", 4) => Ok(Version::V311),
        ("MQTT", 5) => Ok(Version::V5),
        ("MQTT" | "MQIsdp", _) => Err(Fault {
            reason: UNSUPPORTED_VERSION,
            what: "the protocol level is neither 4 (3.1.1) nor 5",
            section: "3.1.2.2",
        }),
        _ => Err(Fault::malformed("the protocol name is not MQTT", "3.1.2.1")),
    }
}

/// The server grants or refuses a session (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connack<'a> {
    /// True if the server has a session of this client and continues it.
    pub session_present: bool,
    /// Return code (3.1.1) or reason code (5); 0 is success.
    pub code: u8,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
}

impl<'a> Connack<'a> {
    pub(super) fn read(cursor: &mut Cursor<'a>, version: Version) -> Result<Connack<'a>, Fault> {
        let flags = cursor.byte()?;
        if flags > 1 {
            return Err(Fault::malformed("a reserved acknowledge flag is set", "3.2.2.1"));
        }
        let code = cursor.byte()?;
        let is_known = match version {
            Version::V311 => code <= 5,
            Version::V5 => reason::CONNACK.contains(&code),
        };
        if !is_known {
            return Err(Fault::malformed("unknown connect reason code", "3.2.2.2"));
        }
        if flags == 1 && code != 0 {
            return Err(Fault::protocol("a refusal with a session present", "3.2.2.1.1"));
        }
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => Properties::read(cursor, super::CONNACK)?,
        };
        Ok(Connack { session_present: flags == 1, code, properties })
    }

    /// Appends the packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        put_header(out, super::CONNACK << 4, 2 + self.properties.size(version));
        out.push(u8::from(self.session_present));
        out.push(self.code);
        self.properties.put(version, out);
    }
}

/// The reason code for a version that is not spoken (section 3.2.2.2).
const UNSUPPORTED_VERSION: u8 = 0x84;

const RESERVED: u8 = 0x01;
const CLEAN: u8 = 0x02;
const WILL: u8 = 0x04;
const WILL_RETAIN: u8 = 0x20;
const PASSWORD: u8 = 0x40;
const USER: u8 = 0x80;
