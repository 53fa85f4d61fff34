//! Reads policies from TOML. Errors have line and column.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::{Spanned, Value};

use crate::error::SealError;
use crate::policy::{Effect, Flaw, Participant, Policy, Rule, VERSION};

impl Policy {
    /// Reads a policy file. Times are RFC 3339; `version`, `object` and `created` may be left out.
    /// `now_s` is the time of sealing, seconds since 1970.
    ///
    /// # Errors
    /// Unknown keys, and contradictions, with line and column.
    pub fn from_toml(text: &str, now_s: i64) -> Result<Policy, SealError> {
        let file = PolicyFile { text };
        let words: PolicyWords = toml::from_str(text).map_err(|error| {
            let fix = match error.message().contains("unknown field") {
                true => "write one of these, or remove it",
                false => "see the complete policy in the guide to sealed payloads",
            };
            file.wrong(error.span(), error.message(), fix)
        })?;
        let plain = Policy::plain(now_s)?;
        let policy = Policy {
            version: words.version.as_ref().map_or(VERSION, |own| *own.get_ref()),
            object: words.object.as_ref().map_or(plain.object, |own| own.get_ref().clone()),
            issuer: words.issuer.clone(),
            created_s: file.seconds(words.created.as_ref(), "created")?.unwrap_or(now_s),
            not_before_s: file.seconds(words.not_before.as_ref(), "not_before")?,
            expires_s: file.seconds(words.expires.as_ref(), "expires")?,
            participants: words.participants.iter().map(|one| one.get_ref().clone()).collect(),
            rules: words
                .rules
                .iter()
                .map(|one| file.rule(one.get_ref()))
                .collect::<Result<_, _>>()?,
            purpose: words.purpose.clone(),
            audit_endpoint: words.audit_endpoint.as_ref().map(|own| own.get_ref().clone()),
            previous_object_hash: words
                .previous_object_hash
                .as_ref()
                .map(|own| own.get_ref().clone()),
        };
        policy.check().map_err(|flaw| file.flaw(&flaw, &words))?;
        Ok(policy)
    }
}

/// The text that places are places of.
struct PolicyFile<'t> {
    text: &'t str,
}

impl PolicyFile<'_> {
    fn wrong(&self, place: Option<Range<usize>>, problem: &str, fix: &str) -> SealError {
        let at = place.map(|place| {
            let before = &self.text[..place.start.min(self.text.len())];
            let line_start = before.rfind('\n').map_or(0, |end| end + 1);
            (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
        });
        SealError::Policy { at, problem: problem.trim_end().to_owned(), fix: fix.to_owned() }
    }

    fn flaw(&self, flaw: &Flaw, words: &PolicyWords) -> SealError {
        let place = words.places().remove(&(flaw.key, flaw.index));
        self.wrong(place, &flaw.problem, flaw.fix)
    }

    /// A time: RFC 3339, in quotation marks or as TOML has it.
    fn seconds(&self, given: Option<&Spanned<Value>>, key: &str) -> Result<Option<i64>, SealError> {
        let Some(given) = given else { return Ok(None) };
        let value = given.get_ref();
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Some(time.as_second())),
            Err(_) => {
                let problem = format!("{key} = {text} is not a time");
                let fix = "write it with a time zone: 2027-01-31T12:00:00Z";
                Err(self.wrong(Some(given.span()), &problem, fix))
            }
        }
    }

    fn rule(&self, words: &RuleWords) -> Result<Rule, SealError> {
        Ok(Rule {
            effect: words.effect,
            who: words.who.clone(),
            what: words.what.clone(),
            from_s: self.seconds(words.from.as_ref(), "from")?,
            until_s: self.seconds(words.until.as_ref(), "until")?,
            place: words.place.clone(),
            obligation: words.obligation.clone(),
        })
    }
}

/// A policy as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyWords {
    version: Option<Spanned<u32>>,
    object: Option<Spanned<String>>,
    issuer: Option<String>,
    created: Option<Spanned<Value>>,
    not_before: Option<Spanned<Value>>,
    expires: Option<Spanned<Value>>,
    #[serde(default)]
    participants: Vec<Spanned<Participant>>,
    #[serde(default)]
    rules: Vec<Spanned<RuleWords>>,
    purpose: Option<String>,
    audit_endpoint: Option<Spanned<String>>,
    previous_object_hash: Option<Spanned<String>>,
}

impl PolicyWords {
    /// Where what can be wrong in itself stands.
    fn places(&self) -> BTreeMap<(&'static str, usize), Range<usize>> {
        let single = [
            ("version", self.version.as_ref().map(Spanned::span)),
            ("object", self.object.as_ref().map(Spanned::span)),
            ("expires", self.expires.as_ref().map(Spanned::span)),
            ("audit_endpoint", self.audit_endpoint.as_ref().map(Spanned::span)),
            ("previous_object_hash", self.previous_object_hash.as_ref().map(Spanned::span)),
        ];
        let single = single.into_iter().filter_map(|(key, place)| Some(((key, 0), place?)));
        let participants = self.participants.iter().map(Spanned::span).enumerate();
        let rules = self.rules.iter().map(Spanned::span).enumerate();
        single
            .chain(participants.map(|(index, place)| (("participants", index), place)))
            .chain(rules.map(|(index, place)| (("rules", index), place)))
            .collect()
    }
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleWords {
    effect: Effect,
    #[serde(default = "everything")]
    who: String,
    #[serde(default = "everything")]
    what: String,
    from: Option<Spanned<Value>>,
    until: Option<Spanned<Value>>,
    #[serde(rename = "where")]
    place: Option<String>,
    obligation: Option<String>,
}

fn everything() -> String {
    "*".to_owned()
}
