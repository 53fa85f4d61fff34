//! JMeter's samples as XML (`.jtl` with `jmeter.save.saveservice.output_format=xml`).

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::jmeter::{Sample, sum_up};
use crate::audit::figure::Evidence;
use crate::audit::source::Unreadable;

/// Reads samples: every element with the attributes `t` and `ts`, those inside others apart.
pub(super) fn read(name: &str, text: &str) -> Result<Evidence, Unreadable> {
    let mut reader = Reader::from_str(text);
    let mut samples = Vec::new();
    let mut depth = 0usize;
    loop {
        let event = reader.read_event().map_err(|error| {
            let at = (reader.error_position() as usize).min(text.len());
            let line = 1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
            Unreadable::at(name, line as u64, error.to_string(), "export it from JMeter again")
        })?;
        match event {
            Event::Eof => break,
            Event::Empty(element) if depth <= SAMPLE_DEPTH => samples.extend(sample(&element)),
            Event::Start(element) => {
                if depth <= SAMPLE_DEPTH {
                    samples.extend(sample(&element));
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if samples.is_empty() {
        let problem = "it has no sample with the attributes t and ts";
        return Err(Unreadable::new(name, problem, "give the .jtl of a JMeter run"));
    }
    Ok(sum_up(name, &samples))
}

fn sample(element: &BytesStart<'_>) -> Option<Sample> {
    let text = |key: &str| {
        let attribute = element.try_get_attribute(key).ok()??;
        Some(attribute.value.into_owned())
    };
    let number = |key: &str| text(key)?.parse::<u64>().ok();
    Some(Sample {
        start_ms: number("ts")?,
        elapsed_ms: number("t")?,
        label: text("lb").unwrap_or_default(),
        is_good: text("s").is_none_or(|good| good == "true"),
        threads: number("na"),
        connect_ms: number("ct"),
    })
}

/// Samples stand in `testResults`; what is below them are their parts.
const SAMPLE_DEPTH: usize = 1;
