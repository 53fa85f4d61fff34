//! The rules L01 to L21: arithmetic and look-ups that any result, published or of Weighbridge, can
//! be tested against. Each was written because a published comparison broke it;
//! `docs/methodology.md` lists them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::severity::Severity;

/// One of the rules.
///
/// # Examples
///
/// ```
/// use weigh_model::Rule;
///
/// assert_eq!("L01".parse(), Ok(Rule::L01));
/// assert_eq!(Rule::ALL.len(), 21);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Rule {
    /// Little's law in a closed loop.
    L01,
    /// Throughput computed from latencies.
    L02,
    /// A setting called a capacity.
    L03,
    /// One figure for a ramp.
    L04,
    /// Times on a coarse grid.
    L05,
    /// A percentage that no whole count gives.
    L06,
    /// Statistics of one cell that contradict each other.
    L07,
    /// Confirmed against unconfirmed.
    L08,
    /// CPU percent without a rate.
    L09,
    /// Saturation read off a grid.
    L10,
    /// A background load that did not cover the window.
    L11,
    /// Errors inside the latency.
    L12,
    /// Too few repetitions.
    L13,
    /// Fewer header bytes than the segments need.
    L14,
    /// A connection for every message.
    L15,
    /// Unequal messages in flight.
    L16,
    /// A quantile beyond the data.
    L17,
    /// Paths of different length.
    L18,
    /// A generator that was not ruled out.
    L19,
    /// Two clocks without a bound.
    L20,
    /// Confirmations that mean different things on the server.
    L21,
}

impl Rule {
    /// All rules, in their order.
    pub const ALL: [Rule; 21] = [
        Rule::L01,
        Rule::L02,
        Rule::L03,
        Rule::L04,
        Rule::L05,
        Rule::L06,
        Rule::L07,
        Rule::L08,
        Rule::L09,
        Rule::L10,
        Rule::L11,
        Rule::L12,
        Rule::L13,
        Rule::L14,
        Rule::L15,
        Rule::L16,
        Rule::L17,
        Rule::L18,
        Rule::L19,
        Rule::L20,
        Rule::L21,
    ];

    /// `L01` to `L20`.
    pub fn code(self) -> &'static str {
        const CODES: [&str; 21] = [
            "L01", "L02", "L03", "L04", "L05", "L06", "L07", "L08", "L09", "L10", "L11", "L12",
            "L13", "L14", "L15", "L16", "L17", "L18", "L19", "L20", "L21",
        ];
        CODES[self as usize]
    }

    /// Its title, in a few words.
    pub fn title(self) -> &'static str {
        self.entry().0
    }

    /// Returns the meaning of a broken rule for readers of the figure.
    pub fn means(self) -> &'static str {
        self.entry().1
    }

    /// Returns what to do instead.
    pub fn instead(self) -> &'static str {
        self.entry().2
    }

    /// Severity of a violation: a contradiction in the figures themselves makes them invalid, a
    /// design that does not answer the question is a warning.
    pub fn severity(self) -> Severity {
        match self {
            Rule::L02 | Rule::L06 | Rule::L07 | Rule::L14 => Severity::Invalid,
            _ => Severity::Warning,
        }
    }

    /// Returns title, meaning, and what to do instead.
    fn entry(self) -> (&'static str, &'static str, &'static str) {
        ENTRIES[self as usize]
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Reads `L05`, `l5` or `5`.
    fn from_str(text: &str) -> Result<Rule, String> {
        let digits = text.trim_start_matches(['l', 'L']);
        let number = digits.parse::<usize>().ok().filter(|number| (1..=21).contains(number));
        let number = number.ok_or_else(|| {
            format!("unknown rule {text:?}: type L01 to L21, as docs/methodology.md lists them")
        })?;
        Ok(Rule::ALL[number - 1])
    }
}

const ENTRIES: [(&str, &str, &str); 21] = [
    (
        "Little's law does not hold",
        "in a steady closed loop throughput x (latency + think time) is the number in flight; one \
         of the three is misnamed, or the window was not steady",
        "count over the wall time of a steady window, and say clients and think time",
    ),
    (
        "throughput computed from latencies",
        "one over the mean latency is the rate of a single client; with N clients it is N times \
         too small",
        "divide the count by the wall time of the window",
    ),
    (
        "a setting, not a capacity",
        "the rate reached is the rate of the plan: it does not show what the system can do",
        "raise the offered rate until a stated goal of loss or latency breaks",
    ),
    (
        "one figure for a ramp",
        "clients or rate changed during the window: the figure does not describe any one load",
        "hold each level until it is steady and report it separately, or report a curve",
    ),
    (
        "times on a coarse grid",
        "the times come in steps: their last digits are the tool's tick and not the system's",
        "use a tool that reads a clock for each message, or state the step as the resolution",
    ),
    (
        "a percentage that no whole count gives",
        "messages are whole: the denominator, or the percentage, is not the one stated",
        "print the two counts with the percentage",
    ),
    (
        "statistics that contradict each other",
        "a maximum cannot be below the mean of the same cell, nor quantiles out of order: they are \
         from different runs, or misnamed",
        "take all statistics of a cell from the same runs, and name each",
    ),
    (
        "confirmed against unconfirmed",
        "one side waits until its message has arrived and the other only hands it over: their \
         times and rates are of different work",
        "end both sides at the same event, delivered or confirmed, and print the loss",
    ),
    (
        "CPU percent without a rate",
        "a share of a processor is not a cost: a side with more load uses more",
        "give CPU time per delivered message, or print the rate and the window with the percentage",
    ),
    (
        "saturation read off a grid",
        "the answer is anywhere within the last step, or depends on a single trial",
        "search between the bounds with repeated trials and print both bounds",
    ),
    (
        "a background load that may not have covered the window",
        "parts of the measurement without the background dilute its effect",
        "keep the background on for all of the window (99 % at least) and print its share",
    ),
    (
        "errors inside the latency",
        "mean and quantiles that include fast failures are too optimistic",
        "measure successes and errors separately, and print the share of errors",
    ),
    (
        "too few repetitions",
        "differences between runs cannot be distinguished from differences between the sides",
        "repeat every side at least 5 times, interleaved, and compare the intervals",
    ),
    (
        "fewer header bytes than the segments need",
        "each segment on the wire has at least 20 bytes of TCP header: a capture with offloads on \
         sees fewer, larger ones",
        "capture with offloads off, or count the kernel's segments",
    ),
    (
        "a connection for every message",
        "the figure is mostly the cost of setting connections up, and the text does not mention it",
        "let client and server keep connections open (keep-alive), or report connections per \
         second beside messages per second",
    ),
    (
        "unequal messages in flight",
        "a side that waits for each answer needs a round trip for every message, the other one \
         only",
        "keep the number in flight equal on all sides, and print it",
    ),
    (
        "a quantile beyond the data",
        "too few samples are above it: its interval has no upper end",
        "send more messages, or print a lower quantile",
    ),
    (
        "paths of different length",
        "a path through a relay takes another hop, whatever the protocol",
        "put a relay that only copies bytes into the shorter path as a control",
    ),
    (
        "a generator that was not ruled out",
        "the limit may be the machine that generates the load",
        "print the generator's CPU and lag, or show that a second generator changes nothing",
    ),
    (
        "two clocks without a bound",
        "a time from one machine to another is off by the difference of their clocks",
        "bound the offset by two-way exchanges, print it, and refuse effects below it",
    ),
    (
        "confirmations that mean different things",
        "one server confirms what is in its memory and another what is on its disk: the difference \
         is that of the work, not of the protocols or servers",
        "compare at equal durability, and print it; to see what it costs, change nothing else",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_by_its_code() {
        for (index, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule.code(), format!("L{:02}", index + 1));
            assert_eq!(rule.code().parse(), Ok(rule));
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.code());
            assert_eq!(format!("l{}", index + 1).parse(), Ok(rule));
        }
        for text in ["", "L", "L00", "L22", "closed-loop"] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
