//! The closed list of everything that makes a result doubtful, each with advice. Codes `L01` to
//! `L20` are the rules of `docs/methodology.md`.

use serde::{Deserialize, Serialize};

use crate::rule::Rule;
use crate::units::Nanos;

/// How much a doubt takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The result stands, with this said beside it.
    Doubt,
    /// Times from the due time must not be used; rates, losses, service times and costs stand.
    InvalidTimes,
    /// The result must not be used.
    Invalid,
}

impl Severity {
    /// The words before the text of a doubt: empty for one that takes nothing away.
    pub fn prefix(self) -> &'static str {
        match self {
            Severity::Doubt => "",
            Severity::InvalidTimes => "RESPONSE TIMES INVALID ",
            Severity::Invalid => "INVALID ",
        }
    }
}

/// A doubt as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubtRecord {
    /// The rule's code or a kebab-case name.
    pub code: String,
    /// How much it takes away.
    pub severity: Severity,
    /// What was seen.
    pub text: String,
    /// What to do about it.
    pub advice: String,
}

impl DoubtRecord {
    /// The rule that it is about, if it is one of L01 to L20.
    pub fn rule(&self) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.code() == self.code)
    }
}

/// Everything that may make a result doubtful.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// The generator was the bottleneck; its busiest thread used this percentage of a core.
    GeneratorLimited(f64),
    /// The 99.9 % quantile of send lag is too large for this mean response time.
    LagGate(Nanos, Nanos),
    /// Nobody confirmed and nobody received: delivery is unknown.
    Unconfirmed,
    /// Bodies are too small for a mark.
    IdentityByOrder,
    /// A closed loop: latency hides what waited.
    ClosedLoop,
    /// Generator and target shared cores.
    SharedCores,
    /// This many repetitions.
    FewRepetitions(u32),
    /// This quantile needs this many samples, and there were so many.
    QuantileBeyondData(&'static str, u64, u64),
    /// This quantile falls into the lost share, and all above it.
    QuantileInLoss(&'static str, &'static str),
    /// The server granted less than was asked: what, asked, granted.
    Granted(String, u64, u64),
    /// Offered and achieved rate, messages per second.
    RateNotReached(f64, f64),
    /// The target ended before the trial did.
    TargetDied(String),
    /// A kept target had ended before the trial, like this, and was started anew for it.
    TargetRestarted(String),
    /// A stop rule of this axis held here, and larger values were not weighed: which axis, what
    /// held, and how many values.
    AxisEnded(String, String, usize),
    /// How many repetitions there are was decided by the figures themselves, which were looked at
    /// so often; whether they became as precise as the plan asks.
    OptionalStopping(u32, bool),
    /// The time budget of the plan was spent after so many repetitions of so many.
    BudgetSpent(u32, u32),
    /// The run was interrupted and resumed under other conditions: which.
    ResumedElsewhere(String),
    /// The trial was cut short by a signal.
    Interrupted,
    /// The reference server counted this many where the ledger has that many.
    ServerCountDiffers(u64, u64),
    /// A ledger identity does not hold.
    LedgerContradiction(String),
    /// So many connections could not be made or were lost, of so many, and the first reason.
    ConnectionsLost(u64, u64, String),
    /// So many messages, of so many sent, were answered with an error; the status or reason of
    /// the first.
    ErrorAnswers(u64, u64, u16),
    /// X (R + Z) / N of a closed loop differs from 1 by this much.
    LittleResidual(f64),
    /// The rate was not steady within the window, in so many of so many repetitions: its course.
    NotSteady(&'static str, u32, u32),
    /// Others used this percentage of a core.
    Disturbed(f64),
    /// The generator waited this long for the record of single messages to be written.
    MessagesHeldUp(Nanos),
    /// What became of so many messages is not in the record of single messages.
    MessagesUnsettled(u64),
    /// One of the rules is broken, and what was seen. L01, L13 and L17 have entries of their own.
    Broken(Rule, String),
}

impl Doubt {
    /// The doubt as it is recorded.
    pub fn record(&self) -> DoubtRecord {
        let severity = match self {
            Doubt::LagGate(..) => Severity::InvalidTimes,
            Doubt::GeneratorLimited(_)
            | Doubt::ServerCountDiffers(..)
            | Doubt::LedgerContradiction(_) => Severity::Invalid,
            Doubt::Broken(rule, _) => rule.severity(),
            _ => Severity::Doubt,
        };
        let (code, text, advice) = self.words();
        DoubtRecord { code: code.to_owned(), severity, text, advice: advice.to_owned() }
    }

    fn words(&self) -> (&'static str, String, &'static str) {
        match self {
            Doubt::GeneratorLimited(percent) => (
                "generator-limited",
                format!("the generator used {percent:.0} % of its core: it was the limit"),
                "lower the rate or the number of connections, or give the generator more cores",
            ),
            Doubt::LagGate(lag, mean) => (
                "lag-gate",
                format!("send lag p99.9 is {lag}, against a mean response time of {mean}"),
                "read service times, or repeat on a quieter machine: times from the due time below \
                 a hundred times the lag say more of the generator",
            ),
            Doubt::Unconfirmed => (
                "unconfirmed",
                "nobody confirmed these messages and nobody received them".to_owned(),
                "use the pattern deliver, or QoS 1, to know what arrived",
            ),
            Doubt::IdentityByOrder => (
                "identity-by-order",
                "bodies are too small for a mark: told apart by connection and order".to_owned(),
                "use bodies of at least 44 bytes to find damage, duplicates and reordering",
            ),
            Doubt::ClosedLoop => (
                "closed-loop",
                "a closed loop waits for answers, so its latency hides what would have queued"
                    .to_owned(),
                "give a rate (-R 1000/s; in a plan load.rate) to see response time from the \
                 intended time",
            ),
            Doubt::SharedCores => (
                "shared-cores",
                "generator and target shared cores".to_owned(),
                "use a machine with at least two cores",
            ),
            Doubt::FewRepetitions(n) => (
                Rule::L13.code(),
                format!("{n} repetition{}: too few to compare", if *n == 1 { "" } else { "s" }),
                "repeat at least 5 times (--reps 5; in a plan repeat.at_least)",
            ),
            Doubt::QuantileBeyondData(quantile, needed, had) => (
                Rule::L17.code(),
                format!("{quantile} needs {needed} samples, there were {had}"),
                "send more messages, or read a lower quantile",
            ),
            Doubt::QuantileInLoss(time, quantile) => (
                "quantile-in-loss",
                format!("{time}: {quantile} and all above it fall into the lost share: infinite"),
                "read the ledger first; latency of what arrived alone would flatter",
            ),
            Doubt::Granted(what, asked, granted) => (
                "granted-less",
                format!("{what}: {asked} asked, {granted} granted by the server"),
                "compare only with results under the same terms",
            ),
            Doubt::RateNotReached(offered, achieved) => (
                "rate-not-reached",
                format!("{offered:.0}/s offered, {achieved:.0}/s handed over"),
                "the difference is in the ledger as not_sent or in the send lag",
            ),
            Doubt::TargetDied(how) => (
                "target-died",
                format!("the target ended before the trial: {how}"),
                "read the target's log in the run folder",
            ),
            Doubt::TargetRestarted(how) => (
                "target-restarted",
                format!("the kept target had ended ({how}) and was started anew for this trial"),
                "read the target's log in the run folder, and compare with the trials before",
            ),
            Doubt::AxisEnded(axis, held, left_out) => (
                "axis-ended",
                match left_out {
                    1 => format!("{axis} ends here: {held}; 1 larger value was not weighed"),
                    _ => format!(
                        "{axis} ends here: {held}; {left_out} larger values were not weighed"
                    ),
                },
                "it was decided in one trial, the first: see whether the others agree",
            ),
            Doubt::OptionalStopping(looks, is_precise) => (
                "optional-stopping",
                format!(
                    "{}; looks at its figures: {looks}",
                    if *is_precise {
                        "repeated until it was precise"
                    } else {
                        "not as precise as the plan asks"
                    }
                ),
                "whoever stops when an interval is narrow gets one that is a little too narrow; \
                 for a claim repeat a number of times that is fixed before",
            ),
            Doubt::BudgetSpent(done, asked) => (
                "budget-spent",
                format!("{done} of {asked} repetitions: the time budget was spent"),
                "raise repeat.budget, or ask for fewer repetitions or cases",
            ),
            Doubt::ResumedElsewhere(what) => (
                "resumed-elsewhere",
                format!("the run was resumed with another {what}: its trials are not all alike"),
                "repeat it as a whole if trials from before and after differ",
            ),
            Doubt::Interrupted => (
                "interrupted",
                "the trial was cut short by a signal".to_owned(),
                "repeat it for a full window",
            ),
            Doubt::ServerCountDiffers(theirs, ours) => (
                "server-count-differs",
                format!("the reference server counted {theirs}, the ledger {ours}"),
                "this is a fault of Weighbridge: please report it with the run folder",
            ),
            Doubt::LedgerContradiction(what) => (
                "ledger-contradiction",
                format!("the ledger does not add up: {what}"),
                "this is a fault of Weighbridge: please report it with the run folder",
            ),
            Doubt::ConnectionsLost(lost, of, reason) => (
                "connections-lost",
                format!("of {of} connections, one failed or was closed {lost} times: {reason}"),
                "see the causes in the ledger and the target's log",
            ),
            Doubt::ErrorAnswers(errors, sent, first) => (
                "error-answers",
                format!("{errors} of {sent} messages were answered with {}", error_name(*first)),
                "check address, path and credentials; errors are in no response time, they have \
                 times of their own (error_time_ns)",
            ),
            Doubt::LittleResidual(residual) => (
                Rule::L01.code(),
                format!("Little's law is off by {:.1} %", residual * 100.0),
                "the window was not steady: measure longer",
            ),
            Doubt::NotSteady(course, have, of) => (
                "not-steady",
                format!("{course} within the measured window, in {have} of {of} repetitions"),
                "warm up longer (--warmup; in a plan load.warmup) or measure longer; look at the \
                 rate over time",
            ),
            Doubt::Disturbed(percent) => (
                "disturbed",
                format!("others used {percent:.0} % of a core while this was measured"),
                "end other work on the machine and repeat; until then read ratios, not figures",
            ),
            Doubt::MessagesHeldUp(waited) => (
                "messages-held-up",
                format!("the generator waited {waited} for the record of single messages"),
                "measure without --keep-messages (in a plan observe.messages), or lower the \
                 rate, or keep a core free",
            ),
            Doubt::MessagesUnsettled(count) => (
                "messages-unsettled",
                format!("what became of {count} messages is not in messages.parquet"),
                "trust the ledger, which has them all; shorten the trial to have them in the file",
            ),
            Doubt::Broken(rule, seen) => (rule.code(), seen.clone(), rule.instead()),
        }
    }
}

/// HTTP statuses begin at 100 and errors at 400 (RFC 9110, section 15); MQTT 5 has reasons of one
/// byte, errors from 0x80 on (section 2.4).
fn error_name(code: u16) -> String {
    if code < 256 { format!("reason {code:#04x}") } else { format!("status {code}") }
}
