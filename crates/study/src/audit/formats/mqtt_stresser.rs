//! The text of mqtt-stresser. Its clients publish all they have as fast as the socket takes it;
//! the rates it prints are those of single clients.

use super::sheet::{Printed, Sheet};
use crate::audit::figure::{Evidence, Quantity, Statistic};

/// True if this is the output of mqtt-stresser.
pub(super) fn fits(text: &str) -> bool {
    text.contains("Concurrent Clients:") && text.contains("Published Messages:")
}

/// Reads it.
pub(super) fn read(name: &str, text: &str) -> Evidence {
    let mut sheet = Sheet::new(name, "mqtt-stresser");
    sheet.fact("pace", "fastest");
    let (mut published, mut clients) = (0, 0);
    for (line, text) in (1..).zip(text.lines()) {
        // "Receiving Througput" is how the tool spells it.
        if text.contains("Publishing Throug") {
            sheet.cell(&[("phase", "publishing"), ("complete", "handed over")]);
        } else if text.contains("Receiving Throug") {
            sheet.cell(&[("phase", "receiving"), ("complete", "received")]);
        }
        let Some((what, rest)) = text.split_once(':') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(number) = words.first() else { continue };
        let count = number.parse::<u64>().unwrap_or(0);
        match what.trim() {
            "Concurrent Clients" => {
                clients = count;
                sheet.fact("clients", *number);
            }
            "Published Messages" => {
                published = count;
                let printed = Printed::count(count);
                sheet.put(line, what, Quantity::Expected, Statistic::Plain, &printed);
            }
            "Received Messages" => {
                let printed = Printed::count(count);
                sheet.put(line, what, Quantity::Received, Statistic::Plain, &printed);
                let percent = words.get(1).map(|word| word.trim_matches(['(', ')']));
                if let Some(printed) = percent.and_then(|percent| Printed::read(percent, "")) {
                    sheet.put(line, what, Quantity::Accepted, Statistic::Plain, &printed);
                }
            }
            "Errors" if clients > 0 && published > 0 => {
                let failed = Printed::share(count, clients);
                sheet.put(line, what, Quantity::Failed, Statistic::Plain, &failed);
            }
            "Fastest" | "Slowest" | "Median" => {
                let statistic = match what.trim() {
                    "Fastest" => Statistic::Max,
                    "Slowest" => Statistic::Min,
                    _ => Statistic::Quantile(0.5),
                };
                if let Some(printed) = Printed::read(number, "1/s") {
                    sheet.put(line, what, Quantity::Throughput, statistic, &printed);
                }
            }
            _ => {}
        }
    }
    sheet.done()
}
