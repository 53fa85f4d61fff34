//! The policy of an object: who may do what with which part, when, and for what purpose.
//! Declarative
//! data in the protected header of every part, so that a changed policy breaks
//! decryption. A reader with a key must be trusted to follow it; it cannot be enforced.

use std::collections::BTreeSet;

use coset::cbor::Value;
use serde::{Deserialize, Serialize};

use crate::content::fill_random;
use crate::error::SealError;
use crate::keys::KeyId;

/// Who may do what, when and for what purpose. [`Policy::from_toml`] reads one from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Version of the form: 1.
    pub version: u32,
    /// ID of the object: 32 random hexadecimal digits, unless the file gives others.
    pub object: String,
    /// Who made the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// When it was made: seconds since 1970-01-01T00:00:00Z, as all times here.
    pub created_s: i64,
    /// The object cannot be opened before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_s: Option<i64>,
    /// The object cannot be opened from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_s: Option<i64>,
    /// Participants. If there are none, every recipient may open every part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<Participant>,
    /// Rules that allow and forbid in addition. If there are any, one must allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// Purpose of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Where openings are to be reported. Nothing is reported here; the reader is informed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_endpoint: Option<String>,
    /// SHA-256 of the object that this one follows, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_object_hash: Option<String>,
}

/// A key and what its owner may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Participant {
    /// The key's name ([`KeyId`]), 16 hexadecimal digits.
    pub key: String,
    /// Role of the participant.
    pub role: String,
    /// What the participant may do with it.
    pub actions: Vec<Action>,
    /// Names of parts; empty for all parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
}

/// What can be done with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Read the content.
    Open,
    /// Pass the object on unchanged.
    Forward,
    /// Seal the content again for others.
    Share,
}

impl Action {
    /// The word in a policy.
    pub fn name(self) -> &'static str {
        match self {
            Action::Open => "open",
            Action::Forward => "forward",
            Action::Share => "share",
        }
    }
}

/// One rule. Rules that deny take precedence over those that allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Allow or deny.
    pub effect: Effect,
    /// A role, a key's name, or `*`.
    pub who: String,
    /// A part's name, or `*`.
    pub what: String,
    /// Time from which it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_s: Option<i64>,
    /// Time until which it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<i64>,
    /// Place where it applies, in words. A program cannot see where it is: a rule with a place
    /// never
    /// allows, and always denies.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "where")]
    pub place: Option<String>,
    /// Obligation of the reader who opens; printed when the object is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obligation: Option<String>,
}

/// Whether a rule allows or forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Allows.
    Allow,
    /// Forbids.
    Deny,
}

impl Policy {
    /// A policy with only an ID and a time.
    ///
    /// # Errors
    /// If there are no random bytes for the ID.
    pub fn plain(now_s: i64) -> Result<Policy, SealError> {
        let mut name = [0; 16];
        fill_random(&mut name)?;
        Ok(Policy {
            version: VERSION,
            object: name.iter().map(|byte| format!("{byte:02x}")).collect(),
            issuer: None,
            created_s: now_s,
            not_before_s: None,
            expires_s: None,
            participants: Vec::new(),
            rules: Vec::new(),
            purpose: None,
            audit_endpoint: None,
            previous_object_hash: None,
        })
    }

    pub(crate) fn to_cbor(&self) -> Value {
        Value::serialized(self).expect("a policy is plain CBOR")
    }

    pub(crate) fn from_cbor(value: &Value) -> Result<Policy, SealError> {
        let policy: Policy =
            value.deserialized().map_err(|error| SealError::Format(format!("policy: {error}")))?;
        if policy.version != VERSION {
            return Err(SealError::Unsupported(format!("a policy of version {}", policy.version)));
        }
        policy.check().map_err(|flaw| SealError::Format(format!("policy: {}", flaw.problem)))?;
        Ok(policy)
    }

    /// Whether the owner of `key` may be given `part`. If no rule decides, the list of participants
    /// does.
    pub(crate) fn gives(&self, key: KeyId, part: &str) -> bool {
        self.participants.is_empty()
            || self.participant(key).is_some_and(|participant| participant.may_open_part(part))
    }

    /// Checks that `key` may open `part` at `now_s`. Returns the obligations of the reader.
    pub(crate) fn admit(
        &self,
        key: KeyId,
        part: &str,
        now_s: i64,
    ) -> Result<Vec<String>, SealError> {
        let forbidden = |why: String| Err(SealError::Forbidden(why));
        if let Some(start) = self.not_before_s.filter(|start| now_s < *start) {
            return forbidden(format!("it cannot be opened before {}", time(start)));
        }
        if let Some(end) = self.expires_s.filter(|end| now_s >= *end) {
            return forbidden(format!("it expired at {}", time(end)));
        }
        if !self.gives(key, part) {
            return forbidden(format!("{key} may not open {part:?}"));
        }
        if self.rules.is_empty() {
            return Ok(Vec::new());
        }
        let role = self.participant(key).map(|participant| participant.role.as_str());
        let names = |rule: &&Rule| {
            let key = key.to_string();
            (rule.who == "*" || rule.who == key || Some(rule.who.as_str()) == role)
                && (rule.what == "*" || rule.what == part)
                && rule.from_s.is_none_or(|from| now_s >= from)
                && rule.until_s.is_none_or(|until| now_s < until)
        };
        let (denies, allows): (Vec<&Rule>, Vec<&Rule>) =
            self.rules.iter().filter(names).partition(|rule| rule.effect == Effect::Deny);
        if let Some(rule) = denies.first() {
            return forbidden(format!("a rule denies {:?} to {}", rule.what, rule.who));
        }
        let allows: Vec<&Rule> = allows.into_iter().filter(|rule| rule.place.is_none()).collect();
        if allows.is_empty() {
            return forbidden(format!("no rule allows {part:?} to {key} at this time and place"));
        }
        Ok(allows.iter().filter_map(|rule| rule.obligation.clone()).collect())
    }

    /// Checks that it does not contradict itself.
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        let wrong = |key, index, problem: String, fix| Err(Flaw { key, index, problem, fix });
        if self.version != VERSION {
            let problem = format!("unknown version {}", self.version);
            return wrong("version", 0, problem, "write version = 1");
        }
        if !is_hexadecimal(&self.object, 32) {
            let problem = format!("{:?} is not the ID of an object", self.object);
            return wrong("object", 0, problem, "write 32 hexadecimal digits, or remove it");
        }
        if let (Some(start), Some(end)) = (self.not_before_s, self.expires_s)
            && end <= start
        {
            let problem = "it expires before it opens".to_owned();
            return wrong("expires", 0, problem, "give expires a later time than not_before");
        }
        let hash = self.previous_object_hash.as_ref();
        if let Some(hash) = hash.filter(|hash| !is_hexadecimal(hash, 64)) {
            let problem = format!("{hash:?} is not a SHA-256 digest");
            return wrong("previous_object_hash", 0, problem, "write what sha256sum prints");
        }
        let endpoint = self.audit_endpoint.as_ref();
        if let Some(endpoint) = endpoint.filter(|endpoint| !endpoint.contains("://")) {
            let problem = format!("{endpoint:?} is not a URL");
            return wrong("audit_endpoint", 0, problem, "write a URL: https://HOST/PATH");
        }
        self.check_participants()?;
        for (index, rule) in self.rules.iter().enumerate() {
            let is_one = |one: &Participant| one.role == rule.who || one.key == rule.who;
            if rule.who != "*" && !self.participants.iter().any(is_one) {
                let problem = format!("a rule names {:?}, which is not a participant", rule.who);
                return wrong(
                    "rules",
                    index,
                    problem,
                    "name a role or a key of the participants, or *",
                );
            }
            if rule.from_s.zip(rule.until_s).is_some_and(|(from, until)| until <= from) {
                let problem = "a rule ends before it begins".to_owned();
                return wrong("rules", index, problem, "give until a later time than from");
            }
        }
        Ok(())
    }

    fn check_participants(&self) -> Result<(), Flaw> {
        let mut seen = BTreeSet::new();
        for (index, participant) in self.participants.iter().enumerate() {
            let wrong = |problem, fix| Err(Flaw { key: "participants", index, problem, fix });
            let key = &participant.key;
            if KeyId::parse(key).is_none_or(|id| id.to_string() != *key) {
                let fix = "write the 16 digits that weigh seal inspect --key FILE prints";
                return wrong(format!("{key:?} is not the ID of a key"), fix);
            }
            if !seen.insert(key) {
                return wrong(format!("the key {key} is given twice"), "give it once");
            }
            if participant.actions.is_empty() {
                let fix = "write actions = [\"open\"], or remove the participant";
                return wrong(format!("the participant {key} has no actions"), fix);
            }
        }
        Ok(())
    }

    fn participant(&self, key: KeyId) -> Option<&Participant> {
        let key = key.to_string();
        self.participants.iter().find(|participant| participant.key == key)
    }
}

/// What is wrong with a policy, and where.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// The key, or the table where there may be several.
    pub(crate) key: &'static str,
    /// Which of them.
    pub(crate) index: usize,
    pub(crate) problem: String,
    pub(crate) fix: &'static str,
}

impl Flaw {
    /// Error of a policy that was not read from a file.
    pub(crate) fn unplaced(self) -> SealError {
        SealError::Policy { at: None, problem: self.problem, fix: self.fix.to_owned() }
    }
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Participant {
    /// Whether there is a part that the owner of the key may open.
    pub(crate) fn may_open(&self) -> bool {
        self.actions.contains(&Action::Open)
    }

    fn may_open_part(&self, part: &str) -> bool {
        self.may_open() && (self.parts.is_empty() || self.parts.iter().any(|name| name == part))
    }
}

/// A time as it is printed.
pub(crate) fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| format!("{seconds} s"), |time| time.to_string())
}

/// The only form of policies so far.
pub(crate) const VERSION: u32 = 1;
