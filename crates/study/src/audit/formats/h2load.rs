//! The text of h2load.

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};

/// True if this is the output of h2load.
pub(super) fn fits(text: &str) -> bool {
    text.contains("finished in ") && text.contains("status codes:")
}

/// Reads it. How many streams a client has, and whether it keeps to a rate, it does not print.
pub(super) fn read(name: &str, text: &str) -> Evidence {
    let mut sheet = Sheet::new(name, "h2load");
    // A run by count goes as fast as it can; a timed one may keep to --rps, which is not printed.
    let is_timed = text.contains("Main benchmark duration");
    sheet.fact("pace", if is_timed { "paced" } else { "fastest" });
    for (line, text) in (1..).zip(text.lines()) {
        if let Some((_, rest)) = text.split_once(": ").filter(|_| text.starts_with("spawning")) {
            let clients = rest.split_whitespace().next().unwrap_or_default();
            if text.contains("thread #0:") {
                sheet.fact("clients", clients);
            }
        }
        if let Some(rest) = text.strip_prefix("finished in ") {
            let rate = rest.split(", ").nth(1).and_then(|rate| rate.strip_suffix(" req/s"));
            if let Some(printed) = rate.and_then(|rate| Printed::read(rate, "1/s")) {
                sheet.put(line, "req/s", Quantity::Throughput, Statistic::Plain, &printed);
            }
        }
        if let Some(rest) = text.strip_prefix("requests: ") {
            let of = |word: &str| {
                let part = rest.split(", ").find_map(|part| part.strip_suffix(word));
                part.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
            };
            let done = of("done");
            let count = Printed::count(done);
            sheet.put(line, "requests", Quantity::Count, Statistic::Plain, &count);
            let failed = Printed::share(of("failed").saturating_sub(of("errored")), done);
            sheet.put(line, "failed", Quantity::Failed, Statistic::Plain, &failed);
        }
        if let Some(rest) = text.strip_prefix("time for request:") {
            let columns = [Statistic::Min, Statistic::Max, Statistic::Mean, Statistic::Deviation];
            for (text, statistic) in rest.split_whitespace().zip(columns) {
                if let Some(printed) = Printed::read(text, "") {
                    let series = "time for request";
                    sheet.put(line, series, Quantity::Latency, statistic, &printed);
                }
            }
        }
    }
    sheet.done()
}
