//! Every warning. To add one: an entry here, and what raises it.
//!
//! An entry reads `VARIANT(FIELDS) NAME SEVERITY [WHAT, FIGURES] WHY FIX DOCS;`. The advice of a
//! record is FIX, unless [`Warning::record`] knows better.

use super::entry::Entry;
use crate::binding::{Bound, Pace, large};
use crate::metrics::{QUANTILES, quantile_word};
use crate::numbers::{count, exact, percent, three_digits};
use crate::protocol::ErrorWords;
use crate::rule::Rule;
use crate::severity::Severity;
use crate::units::Nanos;

warnings! {
    Bound(pace: Box<Pace>, bound: Bound) "rate-not-reached" Warning
        ["the load did not reach its rate, or answers set the pace"]
        "the result is that of a lower load; the limit is in its name: generator-limited \
         (invalid), round-trip-limited, target-limited or path-limited"
        "raise what was full: connections (-c), generator threads (--shards), cores, or the path's \
         rate; or lower the rate (-R)"
        "methodology.md#5-when-a-result-is-invalid";
    RateNotReached(offered: f64, achieved: f64) "rate-not-reached" Warning
        ["{}/s offered, {}/s handed over", exact(*offered), exact(*achieved)]
        "the result is that of a lower load than the one asked for"
        "the difference was never sent (see messages) or sent late (send lag, with --wide); for \
         the full rate use more connections (-c) or generator threads (--shards)"
        "methodology.md#5-when-a-result-is-invalid";
    Backlog(messages: u64, drained: Nanos) "backlog" Warning
        [
            "{} messages were in flight when the load ended; the last one arrived {} later",
            large(*messages), drained
        ]
        "response times include the wait in a queue that grew during the load"
        "throughput_out counts arrivals during the load; lower the rate (-R; in a plan load.rate) \
         to measure response times without the queue"
        "methodology.md#3-rates-cost-and-size";
    GeneratorLag(what: String) "generator-lag" Warning
        ["the generator sent late: its lag is more than half of {}", what]
        "such a response time is mostly the generator's, not the target's: it is not reported"
        "use the times that start at sending (service_time_ns, one_way_time_ns); for response \
         times, stop other programs, lower the rate or use a slower link (--path gigabit), and \
         repeat"
        "methodology.md#lateness-of-the-generator";
    Unconfirmed "unconfirmed" Warning
        ["these messages were neither confirmed nor received by a subscriber"]
        "without acknowledgements or a subscriber, delivery cannot be observed"
        "use the pattern deliver (--pattern deliver), or QoS 1, to count arrivals"
        "methodology.md#2-the-ledger";
    IdentityByOrder "identity-by-order" Warning
        ["bodies are too small for a mark: messages are identified by connection and order"]
        "damage, duplicates and reordering cannot be seen"
        "use bodies of at least 44 bytes (-s 44B; in a plan load.size)"
        "methodology.md#2-the-ledger";
    ClosedLoop "closed-loop" Warning
        ["each client waits for its answer, so queueing delay is not visible"]
        "these percentiles must not be compared with those of an open loop"
        "give a rate (-R 1000/s; in a plan load.rate) to measure response times from the due time"
        "methodology.md#1-the-times-of-a-message";
    SharedCores "shared-cores" Warning
        ["generator and target shared cores"]
        "each takes processor time from the other, so that neither is measured alone"
        "use a machine with at least two cores; with a fleet, run the agents on other machines \
         than the target"
        "methodology.md#5-when-a-result-is-invalid";
    FewRepetitions(n: u32) "L13" Warning
        ["{} repetition{}: too few for narrow intervals", n, if *n == 1 { "" } else { "s" }]
        "differences that matter may stay too close to call"
        "repeat more often (--reps N; in a plan repeat.at_least)"
        "methodology.md#7-repetition";
    QuantileBeyondData(quantile: &'static str, needed: u64, had: u64) "L17" Warning
        [
            "{} is not reliable: it needs {} messages per repetition, there were {}{}",
            quantile_word(&format!(".{quantile}")).unwrap_or_default(),
            count(*needed),
            count(*had),
            lower_ones(quantile)
        ]
        "a quantile beyond the data depends on a few messages"
        "send more messages: a longer -d or a larger -n (in a plan load.duration, load.messages)"
        "methodology.md#6-the-rules-l01-to-l21";
    BelowClockBound(what: String) "L20" Warning
        ["{}", what]
        "such a time is mostly the difference of the clocks of two hosts: it is not reported"
        "keep each message on one host (--topology pairs, -y as many as -c), or use figures of one \
         clock: response and service time"
        "methodology.md#6-the-rules-l01-to-l21";
    LateHost(what: String) "late-host" Warning
        ["{}", what]
        "the quantiles of all hosts together hide it: what that host adds to them is mostly its \
         own lateness"
        "stop other programs on that host, give it fewer shards, or leave it out (--agents)"
        "guide/fleet.md";
    UnevenHosts(shared: f64, all: f64) "uneven-hosts" Warning
        ["all hosts were busy together in {} s of {} s", three_digits(*shared), three_digits(*all)]
        "the rate is that of all the time, so it is lower than that of all hosts together"
        "give a duration (-d) or a rate (-R) in place of a number of messages, or use equal hosts"
        "guide/fleet.md";
    NearTimeLimit(messages: u64, bound: Nanos, limit: Nanos) "near-time-limit" Warning
        [
            "up to {} messages arrived within {} of the time limit of {}, which is the clock error \
             between two hosts",
            count(*messages), bound, limit
        ]
        "for these messages it is not known whether they were late"
        "set another time limit (--timeout), or keep each message on one host (--topology pairs, \
         -y as many as -c)"
        "guide/fleet.md";
    TakenOver(agents: u64) "taken-over" Warning
        [
            "the program that ran this trial was killed, and {} agent{} finished it",
            agents,
            if *agents == 1 { "" } else { "s" }
        ]
        "processor time and memory of the target were not observed, intervals of the rest of the \
         trial are missing, and times from one host to another are not reported"
        "read the ledger and the times of one clock; for the rest start a new run"
        "guide/fleet.md";
    QuantileInLoss(time: &'static str, quantile: &'static str) "quantile-in-loss" Warning
        [
            "{}: {} and above are infinite, because that many messages were lost or never sent",
            time,
            quantile
        ]
        "percentiles of delivered messages alone would be too optimistic"
        "read lost and not sent in the ledger first, then the times"
        "methodology.md#1-the-times-of-a-message";
    Granted(what: String, asked: u64, granted: u64) "granted-less" Warning
        ["{}: {} asked, {} granted by the server", what, count(*asked), count(*granted)]
        "the server granted other terms than the load asked for"
        "compare only with results under the same terms"
        "methodology.md#4-guarantees-are-not-mixed";
    TargetDied(how: String) "target-died" Warning
        ["the target exited before the trial ended: {}", how]
        "messages in flight are lost, and later ones were not served"
        "read the target's log in the run folder"
        "guide/targets.md";
    RelayDied(how: String) "relay-died" Warning
        ["the relay exited before the trial ended: {}", how]
        "what was in flight through the relay is lost"
        "read the relay's log in the run folder"
        "guide/paths.md";
    TargetRestarted(how: String) "target-restarted" Warning
        ["the kept target had exited ({}) and was restarted for this trial", how]
        "its caches and its memory are those of a fresh target"
        "read the target's log in the run folder, and compare with the trials before"
        "guide/targets.md";
    TargetUnwatched(why: String) "target-unwatched" Warning
        ["processor time and memory of the target are unknown: {}", why]
        "a saturated target cannot be distinguished from a saturated generator"
        "check that what --observe names runs as long as the trial, and repeat"
        "guide/observe.md";
    AxisEnded(axis: String, held: String, left_out: usize) "axis-ended" Warning
        [
            "{} ends here: {}; {} larger value{} not measured",
            axis, held, left_out, if *left_out == 1 { " was" } else { "s were" }
        ]
        "one trial decided that larger values are left out"
        "check that the other repetitions agree; remove the stop rule to measure the larger values"
        "guide/conditions.md";
    OptionalStopping(looks: u32, is_precise: bool) "optional-stopping" Warning
        [
            "{}; number of checks: {}",
            match is_precise {
                true => "repeated until it was precise",
                false => "not as precise as the plan asks",
            },
            looks
        ]
        "stopping when an interval is narrow biases it: it is a little too narrow"
        "for published results use a fixed number of repetitions (--reps 10; in a plan \
         repeat.at_least)"
        "methodology.md#7-repetition";
    BudgetSpent(done: u32, asked: u32) "budget-spent" Warning
        ["{} of {} repetitions: the time budget was used up", done, asked]
        "intervals are wider than the plan asks for"
        "raise repeat.budget, or ask for fewer repetitions or cases"
        "guide/when-a-run-ends-early.md";
    ResumedElsewhere(what: String) "resumed-elsewhere" Warning
        ["the run was resumed with another {}: its trials are not comparable without a check", what]
        "a difference between trials may be a difference between machines"
        "compare trials from before and after; if they differ, repeat the run"
        "guide/when-a-run-ends-early.md";
    Interrupted "interrupted" Warning
        ["a signal interrupted the trial"]
        "its window is shorter than the plan asks for"
        "repeat it for a full window (weigh run --resume RUN)"
        "guide/when-a-run-ends-early.md";
    ServerCountDiffers(theirs: u64, ours: u64) "server-count-differs" Invalid
        ["the reference server counted {}, the ledger {}", count(*theirs), count(*ours)]
        "one of the two counts is wrong, so figures of the trial are not reliable"
        "this is a fault of Weighbridge: please report it with the run folder"
        "methodology.md#2-the-ledger";
    StoredCountDiffers(rows: u64, told: u64) "stored-count-differs" Invalid
        ["{} rows are stored, and the store reported {}", count(*rows), count(*told)]
        "the number of delivered messages is unknown"
        "check whether a stage exited in the trial or another process wrote to the store; else it \
         is a fault of Weighbridge: please report it with the run folder"
        "guide/pipeline.md";
    StoredUncounted "stored-uncounted" Warning
        [
            "stored messages could not be counted in the store: the stage had exited, or was still \
             busy"
        ]
        "the count of the last stage was not verified"
        "delivered is the count of the last stage; lower the load, or store in SQLite, and repeat"
        "guide/pipeline.md";
    ConfirmedNotStored(messages: u64) "confirmed-not-stored" Invalid
        ["{} messages were confirmed and not stored", count(*messages)]
        "the pipeline confirmed messages that it then lost"
        "check whether a stage exited in the trial; else the stage that confirms does so too early"
        "guide/pipeline.md";
    WaysBroken(broken: u64, of: u64, damaged: u64) "ways-broken" Warning
        [
            "the routes of {} of {} stored messages are not known from end to end ({} damaged \
             records)",
            count(*broken), count(*of), count(*damaged)
        ]
        "hop times are those of the other messages only"
        "check whether a stage was killed: it loses its last records, and repeats messages after a \
         restart"
        "guide/pipeline.md";
    LedgerContradiction(what: String) "ledger-contradiction" Invalid
        ["the ledger does not add up: {}", what]
        "a message was counted twice in the ledger or not at all"
        "this is a fault of Weighbridge: please report it with the run folder"
        "methodology.md#2-the-ledger";
    ConnectionsLost(lost: u64, of: u64, reason: String) "connections-lost" Warning
        [
            "connections failed or were closed {} times ({} were asked for): {}",
            count(*lost), count(*of), reason
        ]
        "the load came from fewer clients than the plan asks for"
        "see the causes in the ledger and the target's log"
        "methodology.md#2-the-ledger";
    Rebalanced(times: u64, pause: Nanos) "rebalanced" Warning
        [
            "consumers of a group were assigned their messages anew {} times during the load; the \
             longest pause was {}",
            count(*times), pause
        ]
        "a consumer reads nothing meanwhile, and then what was not committed a second time: it is \
         a duplicate in the ledger"
        "find the cause: a consumer that was silent for longer than its session timeout, another \
         program in the group, or a broker that restarted"
        "guide/kafka.md#groups";
    EndpointsReplaced(replaced: u64, of: u64) "endpoints-replaced" Warning
        [
            "{} connections had used all their message identifiers and were replaced ({} were \
             asked for)",
            count(*replaced), count(*of)
        ]
        "the protocol limits the messages of one client in a time; the load is that of more \
         clients, one after the other, than the plan asks for"
        "give the load as many connections as there are devices (-c), or a lower rate (-R)"
        "guide/coap.md#read-this-before-you-compare";
    ErrorAnswers(errors: u64, sent: u64, first: ErrorWords) "error-answers" Warning
        [
            "{} of {} messages in a repetition were answered with {}",
            count(*errors), count(*sent), first.name
        ]
        "errors are not in response times; they have their own times (error_time_ns)"
        "check address, path, credentials and limits of the server"
        "methodology.md#2-the-ledger";
    PollsRefused(refused: u64, polls: u64, first: ErrorWords) "polls-refused" Warning
        [
            "{} of {} requests of consumers were answered with {}",
            count(*refused), count(*polls), first.name
        ]
        "delivery times include the time until the next successful request"
        "check the path that consumers request and its credentials; messages they did not get are \
         requested again"
        "guide/polling.md";
    PollsSkipped(skipped: u64, due: u64) "polls-skipped" Warning
        [
            "{} of {} requests of consumers were not made, because the previous one was not \
             answered yet",
            count(*skipped), count(*due)
        ]
        "consumers polled less often than the load says"
        "use a period longer than an answer takes (--period; in a plan load.poll_period)"
        "guide/polling.md";
    NearBaseline(reached: f64, most: f64) "near-null-path" Warning
        [
            "{}/s: the baseline of this machine and build is {}/s, reached against the built-in \
             server",
            exact(*reached), exact(*most)
        ]
        "the rate may be the generator's limit and not the target's"
        "compare the CPU of both ends, or give the generator more cores (--shards N)"
        "methodology.md#3-rates-cost-and-size";
    Burst(mean: f64) "burst" Warning
        ["messages left in bursts, {} to a write on average", three_digits(*mean)]
        "coalesced messages are cheaper for both ends than one write each"
        "compare only with tools that coalesce too, or write separately (--single-writes; in a \
         plan load.writes = \"single\")"
        "methodology.md#3-rates-cost-and-size";
    ObjectFile(what: String) "object-file" Warning
        ["{}", what]
        "the file that was sent could not be read to its end"
        "ignore the times of this trial: what could not be read was lost by the generator, as \
         producer_dropped"
        "guide/transfers.md";
    LittleResidual(residual: f64) "L01" Warning
        ["Little's law is off by {}", percent(residual * 100.0)]
        "throughput, response time and messages in flight contradict each other"
        "measure longer (-d; in a plan load.duration): the window was not steady"
        "methodology.md#6-the-rules-l01-to-l21";
    NotSteady(course: &'static str, have: u32, of: u32, from: f64, to: f64) "not-steady" Warning
        [
            "the rate of arriving messages changed during the measurement, in {} of {} \
             repetitions{}",
            have, of, course_in_words(course, *from, *to)
        ]
        "the mean of a changing rate does not describe any one state"
        "warm up longer (--warmup; in a plan load.warmup) or measure longer; report.html shows the \
         rate over time"
        "methodology.md#7-repetition";
    Disturbed(used: f64) "disturbed" Warning
        ["other programs used {} of a core during the measurement", percent(*used)]
        "they take processor time from generator and target"
        "stop other programs and repeat; until then do not quote these figures (ratios suffer less)"
        "guide/reading-the-report.md";
    MessagesHeldUp(waited: Nanos) "messages-held-up" Warning
        ["the generator waited {} for the record of single messages", waited]
        "the record of single messages made the generator late"
        "measure without --keep-messages (in a plan observe.messages), or lower the \
         rate, or keep a core free"
        "guide/exports.md";
    MessagesUnsettled(messages: u64) "messages-unsettled" Warning
        ["the fate of {} messages is not in messages.parquet", count(*messages)]
        "the file of single messages is incomplete"
        "use the ledger, which is complete; shorten the trial to have all messages in the file"
        "guide/exports.md";
    CertificatesUnchecked(wrong: Option<String>) "certificates-unchecked" Warning
        [
            "certificates were not checked (--insecure){}",
            match wrong {
                Some(wrong) => format!(": {wrong}"),
                None => "; they are valid".to_owned(),
            }
        ]
        "another server may have answered"
        "give the authority of the server (--cacert FILE) instead of --insecure"
        "guide/tls.md";
    Uncut(sockets: u64) "segmentation-refused" Warning
        [
            "the kernel refused to cut datagrams at {} socket{}: they left one by one",
            count(*sockets),
            if *sockets == 1 { "" } else { "s" }
        ]
        "processor time is that of segmentation = \"off\" at these sockets; messages and bytes are \
         not affected"
        "set datagram_bytes to what fits the MTU (28 B less over IPv4), or leave out segmentation; \
         an interface without checksums needs Linux 6.11"
        "guide/quic.md#segmentation-by-the-kernel";
    PathForbidden(why: String, fix: String) "path-forbidden" Warning
        ["measured over loopback, without path and capture: {}; {}", why, fix]
        "figures do not include the path that the plan asks for"
        "use no figure as one over a path: do what the text of the warning says, and repeat"
        "guide/paths.md";
    PathBent(what: String) "path-bent" Warning
        ["the path did not keep its settings: {}", what]
        "packets were later, or more of them were lost, than the path's settings say"
        "keep a core free for the process that emulates the path, or send less, and repeat"
        "guide/paths.md";
    PathGone(what: String) "path-gone" Invalid
        ["the path ended during the trial: {}", what]
        "after that no packet passed"
        "check which process removes interfaces on this machine, and repeat the trial"
        "guide/paths.md";
    PathDropped(packets: u64) "path-dropped" Warning
        ["the path dropped {} packets, and messages were lost or not sent", count(*packets)]
        "the loss may be the path's and not the target's"
        "read the causes in the ledger: what a protocol does not repeat is lost with the packet"
        "guide/paths.md";
    TargetShare(what: String) "target-share" Warning
        ["the target's share of the machine is not what the plan asks for: {}", what]
        "the target had more or less of the machine than the plan says"
        "let weigh create control groups (as root, or with systemd-run --user --scope -p \
         Delegate=yes), and have at least the cores that the plan asks for"
        "guide/paths.md";
    HostsUntuned(what: String) "hosts-untuned" Warning
        ["settings of the hosts could not be changed: {}", what]
        "limits of the kernel may be reached before those of the target"
        "lower the load if limits of the machine are reached first"
        "guide/paths.md";
    Wire(seen: String, advice: &'static str) "wire" Warning
        ["{}", seen]
        "figures of the wire are questionable or incomplete"
        "read the text of the warning: it says what was not counted"
        "guide/paths.md#the-wire";
    CaptureLoss(seen: String, advice: &'static str) "capture-loss" Invalid
        ["{}", seen]
        "the capture missed packets, so the figures of the wire are too small"
        "use a larger ring, or lower the rate, and repeat"
        "guide/paths.md#the-wire";
    Background(code: &'static str, seen: String, advice: &'static str) "background-..." Warning
        ["{}", seen]
        "the background was not what the plan asks for"
        "read the text of the warning: it names what ended, delayed or slowed the background"
        "guide/interference.md";
    Energy(code: &'static str, seen: String, advice: &'static str) "energy-..." Warning
        ["{}", seen]
        "the measured energy is questionable or absent"
        "read the text of the warning: it names the meter and the phase"
        "guide/energy.md";
    Broken(rule: Rule, seen: String) "L02 to L21" Warning
        ["{}", seen]
        "the result breaks one of the rules for published results; L02, L06, L07 and L14 make it \
         invalid"
        "read the rule's own line in the methodology"
        "methodology.md#6-the-rules-l01-to-l21";
}

/// The kept percentiles below `quantile`, which have enough messages; empty if there are none.
fn lower_ones(quantile: &str) -> String {
    let below: Vec<&str> =
        QUANTILES.iter().map(|(part, _)| *part).take_while(|part| *part != quantile).collect();
    match &below[..] {
        [] => String::new(),
        [only] => format!("; {only} is not affected"),
        [first, .., last] => format!("; {first} to {last} are not affected"),
    }
}

/// How the rate changed, by the most frequent course of the repetitions: from one level to another,
/// or between the lowest and the highest mean of a tenth of the measurement.
fn course_in_words(course: &str, from: f64, to: f64) -> String {
    let (first, last) = (three_digits(from) + "/s", three_digits(to) + "/s");
    let by = match from > 0.0 {
        true => format!(", {}", percent((to / from - 1.0).abs() * 100.0)),
        false => String::new(),
    };
    match course {
        "warm-up" => format!(" (most often it rose from about {first} to {last}{by}, and stayed)"),
        "slow-down" => {
            format!(" (most often it fell from about {first} to {last}{by}, and stayed)")
        }
        _ => format!(" (most often its tenths were between about {first} and {last}{by})"),
    }
}
