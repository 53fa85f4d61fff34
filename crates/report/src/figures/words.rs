//! Names of metrics for people.

/// The metric in words.
pub(crate) fn spoken(metric: &str) -> String {
    let (quantity, part) = metric.split_once('.').unwrap_or((metric, ""));
    let quantity = match quantity {
        "target_cpu_us_per_message" => "target CPU time of a message".to_owned(),
        "throughput_out_per_s" => "messages delivered per second".to_owned(),
        "wire" if part == "bytes_per_message" => {
            return "bytes of a message on the wire".to_owned();
        }
        "wire" if part == "bytes_per_session" => {
            return "bytes of a session on the wire".to_owned();
        }
        _ => quantity.trim_end_matches("_ns").replace('_', " "),
    };
    let part = match part {
        "" => String::new(),
        "p50" => "median ".to_owned(),
        "p999" => "99.9th percentile of ".to_owned(),
        _ => match part.strip_prefix('p').and_then(|digits| digits.parse::<u32>().ok()) {
            Some(digits) => format!("{digits}th percentile of "),
            None => format!("{part} of "),
        },
    };
    format!("{part}{quantity}")
}

/// The method of an interval with this name in the summary, in words.
pub(crate) fn method_words(name: &str) -> String {
    name.replace("t over runs", "Student's t over the repetitions")
}

/// The metric in words at the beginning of a title.
pub(crate) fn capital(metric: &str) -> String {
    let spoken = spoken(metric);
    let mut letters = spoken.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_spoken() {
        assert_eq!(spoken("response_time_ns.p99"), "99th percentile of response time");
        assert_eq!(spoken("delivery_time_ns.p50"), "median delivery time");
        assert_eq!(spoken("target_cpu_us_per_message"), "target CPU time of a message");
        assert_eq!(spoken("wire.bytes_per_message"), "bytes of a message on the wire");
    }
}
