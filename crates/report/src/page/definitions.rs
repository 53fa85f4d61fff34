//! What every metric is: the definitions of `docs/methodology.md`, next to the figures.

use weigh_stats::Method;

/// What the metric `name` is, in a sentence or two.
pub(crate) fn definition(name: &str) -> String {
    let (quantity, part) = name.split_once('.').unwrap_or((name, ""));
    let exact = WHOLE.iter().find(|(known, _)| *known == name);
    let known = exact.or_else(|| QUANTITIES.iter().find(|(known, _)| *known == quantity));
    let what = known.map_or("Measured by Weighbridge under this name.", |(_, what)| what);
    match statistic(part) {
        Some(how) if exact.is_none() => format!("{what} {how}"),
        _ => what.to_owned(),
    }
}

fn statistic(part: &str) -> Option<String> {
    match part {
        "mean" => Some("Here the arithmetic mean over the messages of a repetition.".to_owned()),
        "max" => Some("Here the largest of a repetition.".to_owned()),
        _ => {
            let digits = part.strip_prefix('p').filter(|digits| digits.parse::<u32>().is_ok())?;
            let percent = match digits.len() {
                0..=2 => digits.to_owned(),
                _ => format!("{}.{}", &digits[..2], &digits[2..]),
            };
            Some(format!(
                "Here the time that {percent} % of the messages of a repetition do not exceed; \
                 lost messages count as infinite."
            ))
        }
    }
}

/// How an interval that the summary names so is made, with its source.
pub(crate) fn method(name: &str) -> &'static str {
    METHODS.iter().find(|(method, _)| method.name() == name).map_or("", |(_, how)| how)
}

/// The methods of intervals over repetitions.
const METHODS: &[(Method, &str)] = &[
    (Method::TOverRuns, "Student's t over the repetitions' values, n - 1 degrees of freedom."),
    (
        Method::SkewnessCorrectedT,
        "Student's t over the repetitions' values, n - 1 degrees of freedom, its side towards the \
         longer tail lengthened for skewness (N. J. Johnson, 1978).",
    ),
];

/// Quantities whose name after the dot is a statistic.
const QUANTITIES: &[(&str, &str)] = &[
    ("response_time_ns", "From the moment a message was due to its confirmation."),
    ("delivery_time_ns", "From the moment a message was due to its delivery to the consumer."),
    ("one_way_time_ns", "From handing a message to the transport to its delivery."),
    (
        "service_time_ns",
        "From handing a message to the transport to its confirmation: without what it waited \
         before, so never called latency.",
    ),
    ("connect_time_ns", "From beginning to connect to being ready to send."),
    (
        "send_lag_ns",
        "From the moment a message was due to handing it to the transport: the generator's own \
         error.",
    ),
    ("error_time_ns", "From the moment a message was due to an answer that is an error."),
    ("target_cpu_percent", "Processor time of the target over the window, in percent of a core."),
    ("generator_cpu_percent", "Processor time of the generator's busiest thread, in percent."),
    ("target_memory_bytes", "Memory that the target holds."),
];

/// Metrics that are what they are.
const WHOLE: &[(&str, &str)] = &[
    ("throughput_in_per_s", "Messages handed to the server, divided by the window."),
    ("throughput_out_per_s", "Different messages delivered, divided by the window."),
    ("goodput_bytes_per_s", "Bytes of the bodies of different deliveries, divided by the window."),
    ("window_s", "The measured window: first to last due time in open loops."),
    ("transfer_time_s", "From the first send to the last completion."),
    ("body_bytes", "Mean size of a body."),
    ("acceptance_ratio", "Delivered in time, divided by sent."),
    ("errors_ratio", "Error answers and failed exchanges, divided by sent."),
    ("ledger_bytes_per_message", "Memory that the ledger took for a message."),
    (
        "target_cpu_us_per_message",
        "Processor time of the target, its kernel time included, divided by delivered messages.",
    ),
    (
        "generator_cpu_us_per_message",
        "Processor time of the generator divided by messages: the instrument's own cost.",
    ),
    (
        "target_memory_bytes_per_connection",
        "What the target's memory grew by, divided by the connections held.",
    ),
    (
        "generator_memory_bytes_per_connection",
        "What the generator's memory grew by, divided by the connections held.",
    ),
    (
        "wire.bytes_per_message",
        "All bytes at the generator's interface from Ethernet up, both directions, divided by \
         messages.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_names_quantity_and_statistic() {
        let text = definition("response_time_ns.p999");
        assert!(text.starts_with("From the moment") && text.contains("99.9 %"), "{text}");
        assert!(definition("send_lag_ns.max").ends_with("Here the largest of a repetition."));
        assert!(definition("throughput_out_per_s").starts_with("Different messages"));
    }
}
