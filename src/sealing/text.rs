//! Text of a sealed object for readers: its recipients, its policy, and the bytes of each layer.

use std::fmt::Write;
use weigh_model::numbers::count;

use weigh_model::visible::visible_line;
use weigh_seal::{Effect, Inspection, PartSizes, Policy, Rule};

/// Returns everything that is visible of an object without a key.
pub fn render(object: &Inspection) -> String {
    let mut text = format!("a sealed object of {} bytes\n", count(object.bytes as u64));
    match (&object.signer, object.signature_bytes) {
        (Some(signer), Some(bytes)) => {
            let _ =
                writeln!(text, "  signature   {bytes} B, named signer {signer}; not checked here");
        }
        _ => text.push_str("  signature   none: any program may have made it\n"),
    }
    for part in &object.parts {
        text.push_str(&render_part(part));
    }
    if let Some(policy) = &object.policy {
        text.push_str(&render_policy(policy));
    }
    text
}

/// Returns words of an object without control sequences, because any program may have made it.
pub fn printable(text: &str) -> String {
    visible_line(text).into_owned()
}

fn render_part(part: &PartSizes) -> String {
    let PartSizes { name, cipher, bytes, content_bytes, .. } = part;
    let rows = [
        ("tag", part.tag_bytes),
        ("recipients", part.recipients_bytes),
        ("policy", part.policy_bytes),
        ("frame", part.frame_bytes),
    ];
    let mut text = format!(
        "part {name:?}: {} B of content in {} B\n",
        count(*content_bytes as u64),
        count(*bytes as u64)
    );
    let _ = writeln!(text, "  cipher      {cipher}");
    let _ = writeln!(text, "  for         {}", part.recipients.join(", "));
    for (name, bytes) in rows {
        let _ = writeln!(text, "  {name:<11} {} B", count(bytes as u64));
    }
    text
}

fn render_policy(policy: &Policy) -> String {
    let mut text = format!("policy {}\n", printable(&policy.object));
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<11} {}", printable(&value));
        }
    };
    line("made", Some(moment(policy.created_s)));
    line("by", policy.issuer.clone());
    line("opens from", policy.not_before_s.map(moment));
    line("expires", policy.expires_s.map(moment));
    line("purpose", policy.purpose.clone());
    line("report to", policy.audit_endpoint.clone());
    line("follows", policy.previous_object_hash.clone());
    for one in &policy.participants {
        let may: Vec<&str> = one.actions.iter().map(|action| action.name()).collect();
        let parts = if one.parts.is_empty() { "every part".into() } else { one.parts.join(", ") };
        line(
            "participant",
            Some(format!("{} as {}: {} {parts}", one.key, one.role, may.join(", "))),
        );
    }
    for rule in &policy.rules {
        line("rule", Some(render_rule(rule)));
    }
    text
}

fn render_rule(rule: &Rule) -> String {
    let effect = match rule.effect {
        Effect::Allow => "allows",
        Effect::Deny => "denies",
    };
    let mut text = format!("{effect} {} to {}", rule.what, rule.who);
    let more = [
        ("from", rule.from_s.map(moment)),
        ("until", rule.until_s.map(moment)),
        ("where", rule.place.clone()),
        ("if it undertakes:", rule.obligation.clone()),
    ];
    for (word, value) in more {
        if let Some(value) = value {
            let _ = write!(text, ", {word} {value}");
        }
    }
    text
}

/// Returns a moment in RFC 3339.
fn moment(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| seconds.to_string(), |time| time.to_string())
}
