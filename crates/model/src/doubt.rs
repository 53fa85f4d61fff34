//! The closed list of everything that makes a result doubtful, each with advice. Codes `L01` to
//! `L20` are the rules of `docs/methodology.md`.

use serde::{Deserialize, Serialize};

use crate::binding::{Bound, Pace, grouped};
pub use crate::binding::{GENERATOR_FULL_PERCENT, TARGET_FULL_PERCENT};
use crate::connection::STREAM_ERROR;
use crate::rule::Rule;
pub use crate::severity::Severity;
use crate::units::Nanos;

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
    /// What kept a load from its rate, and how it went.
    Bound(Box<Pace>, Bound),
    /// So many messages were still under way when the load ended, and the last of them came so much
    /// later.
    Backlog(u64, Nanos),
    /// Figures of which more than half is the generator's own lateness: which, and how much.
    GeneratorLag(String),
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
    /// The relay ended, or fell silent, before the trial did: how.
    RelayDied(String),
    /// A kept target had ended before the trial, like this, and was started anew for it.
    TargetRestarted(String),
    /// The target was to be watched, and what it used is not known: why.
    TargetUnwatched(String),
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
    /// So many rows are kept where the stage that keeps them wrote down that many.
    StoredCountDiffers(u64, u64),
    /// What is stored could not be counted where it is kept.
    StoredUncounted,
    /// The entry of a pipeline confirmed so many messages that its last stage does not have.
    ConfirmedNotStored(u64),
    /// The ways of so many stored messages, of so many, are not known from end to end, and so many
    /// records of stages were damaged.
    WaysBroken(u64, u64, u64),
    /// A ledger identity does not hold.
    LedgerContradiction(String),
    /// So many connections could not be made or were lost, of so many, and the first reason.
    ConnectionsLost(u64, u64, String),
    /// So many messages, of so many sent, were answered with an error; the status or reason of
    /// the first.
    ErrorAnswers(u64, u64, u16),
    /// So many requests of consumers, of so many, were answered with an error; the status of the
    /// first.
    PollsRefused(u64, u64, u16),
    /// So many requests of consumers, of so many that were due, were not made because the last one
    /// was not answered yet.
    PollsSkipped(u64, u64),
    /// The rate was as high as what this machine and this build reached over the null path, or
    /// nearly: both, messages per second.
    NearNullPath(f64, f64),
    /// Messages left in bursts: so many to a write, on average.
    Burst(f64),
    /// The file that was sent could not be read to its end: what happened, and the mend.
    ObjectFile(String),
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
    /// Certificates were not checked, and what would have been wrong with one.
    CertificatesUnchecked(Option<String>),
    /// There were no hosts, so that the path was not there: why, and the mend.
    PathForbidden(String, String),
    /// The forwarder did not do what the path says: what it could not do.
    PathBent(String),
    /// The path ended before the trial did: what happened to it.
    PathGone(String),
    /// The path dropped so many packets while messages were lost.
    PathDropped(u64),
    /// The target's share of the machine could not be enforced as asked: what.
    TargetShare(String),
    /// The hosts could not be tuned: what.
    HostsUntuned(String),
    /// What makes the figures of the wire doubtful, and what to do.
    Wire(String, &'static str),
    /// Packets or bytes passed the capture by, so that the figures of the wire are too small: what.
    CaptureLoss(String, &'static str),
    /// What makes the second workload beneath a trial doubtful: code, what was seen, what to do.
    Background(&'static str, String, &'static str),
    /// What makes a measured energy doubtful or absent: its code, what was seen, what to do.
    Energy(&'static str, String, &'static str),
    /// One of the rules is broken, and what was seen. L01, L13 and L17 have entries of their own.
    Broken(Rule, String),
}

impl Doubt {
    /// The generator was the limit: its busiest thread used this percentage of a core.
    pub fn generator_limited(percent: f64) -> Doubt {
        Doubt::Bound(Box::default(), Bound::Generator(percent))
    }

    /// The doubt as it is recorded.
    pub fn record(&self) -> DoubtRecord {
        let severity = match self {
            Doubt::Bound(_, Bound::Generator(_))
            | Doubt::PathGone(_)
            | Doubt::ServerCountDiffers(..)
            | Doubt::StoredCountDiffers(..)
            | Doubt::ConfirmedNotStored(_)
            | Doubt::CaptureLoss(..)
            | Doubt::LedgerContradiction(_) => Severity::Invalid,
            Doubt::Broken(rule, _) => rule.severity(),
            _ => Severity::Doubt,
        };
        if let Doubt::Bound(pace, bound) = self {
            let (code, text, advice) = pace.words(bound);
            return DoubtRecord { code: code.to_owned(), severity, text, advice };
        }
        let (code, text, advice) = self.words();
        DoubtRecord { code: code.to_owned(), severity, text, advice: advice.to_owned() }
    }

    fn words(&self) -> (&'static str, String, &'static str) {
        match self {
            Doubt::Backlog(messages, drained) => (
                "backlog",
                format!(
                    "{} messages were still under way when the load ended; the last one came \
                     {:.1} s later",
                    large(*messages),
                    drained.as_secs_f64()
                ),
                "throughput_out is what arrived while the load lasted; lower the rate (-R; in a \
                 plan load.rate) to measure response times without the queue",
            ),
            Doubt::GeneratorLag(what) => (
                "generator-lag",
                format!("the generator sent late, and that is more than half of {what}"),
                "read the times from sending instead (service_time_ns, one_way_time_ns); to get \
                 these, stop other programs and repeat, or measure over a path (--path gigabit)",
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
            Doubt::RelayDied(how) => (
                "relay-died",
                format!("the relay ended before the trial: {how}"),
                "read the relay's log in the run folder: what was under way through it is lost",
            ),
            Doubt::TargetRestarted(how) => (
                "target-restarted",
                format!("the kept target had ended ({how}) and was started anew for this trial"),
                "read the target's log in the run folder, and compare with the trials before",
            ),
            Doubt::TargetUnwatched(why) => (
                "target-unwatched",
                format!("processor time and memory of the target are not known: {why}"),
                "see that what --observe names lives as long as the trial, and measure again",
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
            Doubt::StoredCountDiffers(..)
            | Doubt::StoredUncounted
            | Doubt::ConfirmedNotStored(_)
            | Doubt::WaysBroken(..) => self.words_of_the_pipeline(),
            Doubt::LedgerContradiction(what) => (
                "ledger-contradiction",
                format!("the ledger does not add up: {what}"),
                "this is a fault of Weighbridge: please report it with the run folder",
            ),
            Doubt::ConnectionsLost(lost, of, reason) => (
                "connections-lost",
                format!(
                    "connections failed or were closed {lost} times ({of} were asked for): {reason}"
                ),
                "see the causes in the ledger and the target's log",
            ),
            Doubt::ErrorAnswers(errors, sent, first) => (
                "error-answers",
                format!("{errors} of {sent} messages were answered with {}", error_name(*first)),
                error_advice(*first),
            ),
            Doubt::Bound(..) | Doubt::Burst(_) | Doubt::NearNullPath(..) => {
                self.words_of_the_instrument()
            }
            Doubt::ObjectFile(what) => (
                "object-file",
                what.clone(),
                "read no time of this trial: what could not be read was lost by our own side, as \
                 producer_dropped",
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
            Doubt::CertificatesUnchecked(wrong) => (
                "certificates-unchecked",
                match wrong {
                    Some(wrong) => format!("certificates were not checked (--insecure): {wrong}"),
                    None => "certificates were not checked (--insecure); they are valid".to_owned(),
                },
                "give the authority of the server (--cacert FILE) instead of --insecure",
            ),
            Doubt::Background(code, seen, advice) | Doubt::Energy(code, seen, advice) => {
                (code, seen.clone(), advice)
            }
            Doubt::Broken(rule, seen) => (rule.code(), seen.clone(), rule.instead()),
            Doubt::PathForbidden(..)
            | Doubt::PathBent(_)
            | Doubt::PathGone(_)
            | Doubt::PathDropped(_)
            | Doubt::TargetShare(_)
            | Doubt::HostsUntuned(_)
            | Doubt::CaptureLoss(..)
            | Doubt::Wire(..) => self.words_of_the_wire(),
            Doubt::PollsRefused(refused, polls, status) => (
                "polls-refused",
                format!(
                    "{refused} of {polls} requests of consumers were answered with {}",
                    error_name(*status)
                ),
                "check the path that consumers ask and its credentials; what they did not get \
                 they ask for again",
            ),
            Doubt::PollsSkipped(..) => self.words_of_the_instrument(),
        }
    }

    /// The words of doubts about what the instrument does by itself.
    fn words_of_the_instrument(&self) -> (&'static str, String, &'static str) {
        match self {
            Doubt::PollsSkipped(skipped, due) => (
                "polls-skipped",
                format!(
                    "{skipped} of {due} requests of consumers were not made, because the last one \
                     was not answered yet"
                ),
                "the period in force is longer than the one asked for: make it longer than an \
                 answer takes (--period; in a plan load.poll_period)",
            ),
            Doubt::Burst(mean) => (
                "burst",
                format!("messages left in bursts, {mean:.1} to a write on average"),
                "compare only with tools that coalesce alike, or write singly (--single-writes; in \
                 a plan load.writes = \"single\")",
            ),
            Doubt::NearNullPath(rate, most) => (
                "near-null-path",
                format!(
                    "{rate:.0}/s: the generator of this machine and build reached {most:.0}/s \
                     against the built-in server"
                ),
                "the generator may be the limit: compare the CPU of both ends, or give the \
                 generator more cores (--shards N)",
            ),
            _ => ("", String::new(), ""),
        }
    }

    /// The words of doubts about stages that messages go through.
    fn words_of_the_pipeline(&self) -> (&'static str, String, &'static str) {
        match self {
            Doubt::StoredCountDiffers(rows, told) => (
                "stored-count-differs",
                format!("{rows} rows are stored, and the store wrote down {told}"),
                "see whether a stage ended in the trial or somebody else wrote to the store; else \
                 it is a fault of Weighbridge: please report it with the run folder",
            ),
            Doubt::StoredUncounted => (
                "stored-uncounted",
                "what is stored could not be counted where it is kept: the stage had ended, or was \
                 still at work"
                    .to_owned(),
                "delivered is what the last stage wrote down; lower the load, or store in SQLite, \
                 and repeat",
            ),
            Doubt::ConfirmedNotStored(messages) => (
                "confirmed-not-stored",
                format!("{messages} messages were confirmed, and nobody stored them"),
                "see whether a stage ended in the trial; else what confirms does so too early",
            ),
            Doubt::WaysBroken(broken, of, damaged) => (
                "ways-broken",
                format!(
                    "the ways of {broken} of {of} stored messages are not known from end to end \
                     ({damaged} damaged records)"
                ),
                "hop times are of the others; a stage that is killed loses what it had written \
                 down last, and has messages twice when it is started again",
            ),
            _ => ("", String::new(), ""),
        }
    }

    /// The words of doubts about hosts, paths and wires.
    fn words_of_the_wire(&self) -> (&'static str, String, &'static str) {
        match self {
            Doubt::PathForbidden(why, mend) => (
                "path-forbidden",
                format!("measured over plain loopback, without path and wire: {why}; {mend}"),
                "read no figure as one across a path: allow the hosts and repeat",
            ),
            Doubt::PathBent(what) => (
                "path-bent",
                format!("the path was not as it says: {what}"),
                "lower the rate, or keep a core free for the forwarder, and repeat",
            ),
            Doubt::PathGone(what) => (
                "path-gone",
                format!("the path ended in the middle of the trial: {what}"),
                "see who else takes interfaces away on this machine, and repeat the trial",
            ),
            Doubt::PathDropped(packets) => (
                "path-dropped",
                format!("the path dropped {packets} packets, and messages were lost or not sent"),
                "what protocols do not repeat is lost with the packet: read the causes in the \
                 ledger",
            ),
            Doubt::TargetShare(what) => (
                "target-share",
                format!("the target's share of the machine is not as asked: {what}"),
                "let weigh make control groups (as root, or with systemd-run --user --scope -p \
                 Delegate=yes), and spare as many cores as are asked for",
            ),
            Doubt::HostsUntuned(what) => (
                "hosts-untuned",
                format!("settings of the hosts could not be changed: {what}"),
                "high loads may find the limits of the machine first",
            ),
            Doubt::Wire(seen, advice) => ("wire", seen.clone(), advice),
            Doubt::CaptureLoss(seen, advice) => ("capture-loss", seen.clone(), advice),
            _ => ("", String::new(), ""),
        }
    }
}

/// HTTP statuses begin at 100 and errors at 400 (RFC 9110, section 15); MQTT 5 has reasons of one
/// byte, errors from 0x80 on (section 2.4); gRPC has statuses up to 16. So the ranges lie apart.
/// What to type where answers have this code.
fn error_advice(code: u16) -> &'static str {
    match code {
        301 | 302 | 303 | 307 | 308 => {
            "redirects are not followed: type the URL that the server names (curl -i shows it)"
        }
        401 | 403 | 407 => {
            "the server wants other credentials: type --user NAME with WEIGH_PASSWORD, or a header \
             with -H"
        }
        404 | 410 => "there is nothing at this path: check the URL",
        405 | 501 => {
            "the server does not take this method: type --method GET, or the one that it takes"
        }
        413 => "the body is too large for the server: type a smaller -s",
        415 => "the server does not take this kind of body: type -H \"content-type: ...\"",
        429 | 503 => {
            "the server refuses load: lower -R or -c, or raise its limit; errors have times of \
             their own (error_time_ns)"
        }
        500..=599 => {
            "the server failed: see its log; errors are in no response time, they have times of \
             their own (error_time_ns)"
        }
        _ => {
            "check address, path and credentials; errors are in no response time, they have times \
             of their own (error_time_ns)"
        }
    }
}

fn error_name(code: u16) -> String {
    match code {
        ..STREAM_ERROR => format!("gRPC status {code}"),
        STREAM_ERROR..0x80 => {
            format!("a reset of the stream (HTTP/2 error {:#x})", code - STREAM_ERROR)
        }
        0x80..=0xff => format!("reason {code:#04x}"),
        _ => format!("status {code}"),
    }
}

/// A number that a reader takes in at once: `950`, `12,400`, `3.1 million`.
fn large(number: u64) -> String {
    match number {
        0..1_000_000 => grouped(number as f64),
        _ => format!("{:.1} million", number as f64 / 1e6),
    }
}
