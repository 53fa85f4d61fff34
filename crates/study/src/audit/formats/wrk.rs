//! The text of wrk and of wrk2.

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};

/// True if this is the output of wrk or wrk2.
pub(super) fn fits(text: &str) -> bool {
    text.contains("Requests/sec:") && text.contains("threads and")
}

/// Reads it. wrk asks again as soon as it is answered; wrk2 keeps to a rate, which it does not
/// print.
pub(super) fn read(name: &str, text: &str) -> Evidence {
    let mut sheet = Sheet::new(name, "wrk");
    let is_paced = text.contains("HdrHistogram") || text.contains("calibration");
    sheet.fact("pace", if is_paced { "paced" } else { "fastest" });
    let mut requests = 0;
    for (line, text) in (1..).zip(text.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [_, "threads", "and", connections, "connections"] => {
                sheet.fact("clients", connections);
            }
            ["Latency", mean, deviation, most, ..] if mean.starts_with(digit) => {
                let statistics = [Statistic::Mean, Statistic::Deviation, Statistic::Max];
                for (text, statistic) in [mean, deviation, most].into_iter().zip(statistics) {
                    if let Some(printed) = Printed::read(text, "") {
                        sheet.put(line, "Latency", Quantity::Latency, statistic, &printed);
                    }
                }
            }
            [quantile, value] if quantile.ends_with('%') => {
                let quantile = Printed::read(quantile, "").map(|printed| printed.value);
                let quantile = quantile.filter(|quantile| *quantile < 1.0);
                if let Some((quantile, printed)) = quantile.zip(Printed::read(value, "")) {
                    let statistic = Statistic::Quantile(quantile);
                    sheet.put(line, "Latency", Quantity::Latency, statistic, &printed);
                }
            }
            // wrk2 leaves its first ten seconds out of the latencies, and out of this count.
            ["#[Max", .., "Total", "count", "=", count] => {
                let count = count.trim_end_matches(']').parse().unwrap_or(0);
                let count = Printed::count(count);
                sheet.put(line, "Total count", Quantity::Count, Statistic::Plain, &count);
            }
            [count, "requests", "in", ..] => {
                requests = count.parse().unwrap_or(0);
                let count = Printed::count(requests);
                sheet.put(line, "requests", Quantity::Count, Statistic::Plain, &count);
            }
            ["Non-2xx", .., failed] => {
                let failed = Printed::share(failed.parse().unwrap_or(0), requests);
                sheet.put(line, "Non-2xx", Quantity::Failed, Statistic::Plain, &failed);
            }
            ["Requests/sec:", rate] => {
                if let Some(printed) = Printed::read(rate, "1/s") {
                    let series = "Requests/sec";
                    sheet.put(line, series, Quantity::Throughput, Statistic::Plain, &printed);
                }
            }
            _ => {}
        }
    }
    sheet.done()
}

fn digit(c: char) -> bool {
    c.is_ascii_digit()
}
