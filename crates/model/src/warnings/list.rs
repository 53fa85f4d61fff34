//! Every warning. To add one: an entry here, and what raises it.
//!
//! An entry reads `VARIANT(FIELDS) NAME SEVERITY [WHAT, FIGURES] WHY FIX DOCS;`. The advice of a
//! record is FIX, unless [`Warning::record`] knows better.

use super::entry::Entry;
use crate::binding::{Bound, Pace, large};
use crate::protocol::ErrorWords;
use crate::rule::Rule;
use crate::severity::Severity;
use crate::units::Nanos;

warnings! {
    Bound(pace: Box<Pace>, bound: Bound) "rate-not-reached" Doubt
        ["the load did not reach its rate, or answers set the pace"]
        "the result is that of a lower load; its name says the limit: generator-limited (invalid), \
         round-trip-limited, target-limited or path-limited"
        "raise what was full: connections (-c), generator threads (--shards), cores, or the path's \
         rate; or lower the rate (-R)"
        "methodology.md#5-when-a-result-is-invalid";
    RateNotReached(offered: f64, achieved: f64) "rate-not-reached" Doubt
        ["{:.0}/s offered, {:.0}/s handed over", offered, achieved]
        "the result is that of a lower load than the one asked for"
        "the difference is in the ledger as not_sent or in the send lag"
        "methodology.md#5-when-a-result-is-invalid";
    Backlog(messages: u64, drained: Nanos) "backlog" Doubt
        [
            "{} messages were still under way when the load ended; the last one came {:.1} s later",
            large(*messages), drained.as_secs_f64()
        ]
        "response times hold the wait in a queue that grew while the load lasted"
        "throughput_out is what arrived while the load lasted; lower the rate (-R; in a plan \
         load.rate) to measure response times without the queue"
        "methodology.md#3-rates-cost-and-size";
    GeneratorLag(what: String) "generator-lag" Doubt
        ["the generator sent late, and that is more than half of {}", what]
        "such a response time is the generator's, not the target's: it is withheld"
        "read the times from sending instead (service_time_ns, one_way_time_ns); to get \
         these, stop other programs and repeat, or measure over a path (--path gigabit)"
        "methodology.md#lateness-of-the-generator";
    Unconfirmed "unconfirmed" Doubt
        ["nobody confirmed these messages and nobody received them"]
        "without acknowledgements or a subscriber delivery cannot be observed"
        "use the pattern deliver, or QoS 1, to know what arrived"
        "methodology.md#2-the-ledger";
    IdentityByOrder "identity-by-order" Doubt
        ["bodies are too small for a mark: told apart by connection and order"]
        "damage, duplicates and reordering cannot be seen"
        "use bodies of at least 44 bytes to find damage, duplicates and reordering"
        "methodology.md#2-the-ledger";
    ClosedLoop "closed-loop" Doubt
        ["a closed loop waits for answers, so its latency hides what would have queued"]
        "its quantiles must not be compared with those of an open loop"
        "give a rate (-R 1000/s; in a plan load.rate) to see response time from the \
         intended time"
        "methodology.md#1-the-times-of-a-message";
    SharedCores "shared-cores" Doubt
        ["generator and target shared cores"]
        "each takes processor time from the other, so that neither is measured alone"
        "use a machine with at least two cores"
        "methodology.md#5-when-a-result-is-invalid";
    FewRepetitions(n: u32) "L13" Doubt
        ["{} repetition{}: too few to compare", n, if *n == 1 { "" } else { "s" }]
        "an interval from so few repetitions is wide or absent"
        "repeat at least 5 times (--reps 5; in a plan repeat.at_least)"
        "methodology.md#7-repetition";
    QuantileBeyondData(quantile: &'static str, needed: u64, had: u64) "L17" Doubt
        ["{} needs {} samples, there were {}", quantile, needed, had]
        "a quantile beyond the data is set by a handful of messages"
        "send more messages, or read a lower quantile"
        "methodology.md#6-the-rules-l01-to-l20";
    QuantileInLoss(time: &'static str, quantile: &'static str) "quantile-in-loss" Doubt
        ["{}: {} and all above it fall into the lost share: infinite", time, quantile]
        "percentiles of delivered messages alone would be too optimistic"
        "read the ledger first; latency of what arrived alone would flatter"
        "methodology.md#1-the-times-of-a-message";
    Granted(what: String, asked: u64, granted: u64) "granted-less" Doubt
        ["{}: {} asked, {} granted by the server", what, asked, granted]
        "the server set other terms than the load asked for"
        "compare only with results under the same terms"
        "methodology.md#4-guarantees-are-not-mixed";
    TargetDied(how: String) "target-died" Doubt
        ["the target ended before the trial: {}", how]
        "what was in flight is lost, and nothing after it was served"
        "read the target's log in the run folder"
        "guide/targets.md";
    RelayDied(how: String) "relay-died" Doubt
        ["the relay ended before the trial: {}", how]
        "what was in flight through the relay is lost"
        "read the relay's log in the run folder: what was under way through it is lost"
        "guide/paths.md";
    TargetRestarted(how: String) "target-restarted" Doubt
        ["the kept target had ended ({}) and was started anew for this trial", how]
        "its caches and its memory are those of a fresh target"
        "read the target's log in the run folder, and compare with the trials before"
        "guide/targets.md";
    TargetUnwatched(why: String) "target-unwatched" Doubt
        ["processor time and memory of the target are not known: {}", why]
        "a full target cannot be told from a full generator"
        "see that what --observe names lives as long as the trial, and measure again"
        "guide/observe.md";
    AxisEnded(axis: String, held: String, left_out: usize) "axis-ended" Doubt
        [
            "{} ends here: {}; {} larger value{} not weighed",
            axis, held, left_out, if *left_out == 1 { " was" } else { "s were" }
        ]
        "one trial decided that larger values are left out"
        "it was decided in one trial, the first: see whether the others agree"
        "guide/conditions.md";
    OptionalStopping(looks: u32, is_precise: bool) "optional-stopping" Doubt
        [
            "{}; looks at its figures: {}",
            match is_precise {
                true => "repeated until it was precise",
                false => "not as precise as the plan asks",
            },
            looks
        ]
        "stopping when an interval is narrow makes it a little too narrow"
        "whoever stops when an interval is narrow gets one that is a little too narrow; \
         for a claim repeat a number of times that is fixed before"
        "methodology.md#7-repetition";
    BudgetSpent(done: u32, asked: u32) "budget-spent" Doubt
        ["{} of {} repetitions: the time budget was spent", done, asked]
        "intervals are wider than the plan asked for"
        "raise repeat.budget, or ask for fewer repetitions or cases"
        "guide/when-a-run-ends-early.md";
    ResumedElsewhere(what: String) "resumed-elsewhere" Doubt
        ["the run was resumed with another {}: its trials are not all alike", what]
        "a difference between trials may be one between machines"
        "repeat it as a whole if trials from before and after differ"
        "guide/when-a-run-ends-early.md";
    Interrupted "interrupted" Doubt
        ["the trial was cut short by a signal"]
        "its window is shorter than the plan asked for"
        "repeat it for a full window"
        "guide/when-a-run-ends-early.md";
    ServerCountDiffers(theirs: u64, ours: u64) "server-count-differs" Invalid
        ["the reference server counted {}, the ledger {}", theirs, ours]
        "one of the two counts is wrong, so no figure of the trial can be trusted"
        "this is a fault of Weighbridge: please report it with the run folder"
        "methodology.md#2-the-ledger";
    StoredCountDiffers(rows: u64, told: u64) "stored-count-differs" Invalid
        ["{} rows are stored, and the store wrote down {}", rows, told]
        "what was delivered is not known"
        "see whether a stage ended in the trial or somebody else wrote to the store; else \
         it is a fault of Weighbridge: please report it with the run folder"
        "guide/pipeline.md";
    StoredUncounted "stored-uncounted" Doubt
        [
            "what is stored could not be counted where it is kept: the stage had ended, or was \
             still at work"
        ]
        "the count of the last stage was not checked"
        "delivered is what the last stage wrote down; lower the load, or store in SQLite, \
         and repeat"
        "guide/pipeline.md";
    ConfirmedNotStored(messages: u64) "confirmed-not-stored" Invalid
        ["{} messages were confirmed, and nobody stored them", messages]
        "the pipeline confirmed what it then lost"
        "see whether a stage ended in the trial; else what confirms does so too early"
        "guide/pipeline.md";
    WaysBroken(broken: u64, of: u64, damaged: u64) "ways-broken" Doubt
        [
            "the ways of {} of {} stored messages are not known from end to end ({} damaged \
             records)",
            broken, of, damaged
        ]
        "hop times are those of the other messages"
        "hop times are of the others; a stage that is killed loses what it had written \
         down last, and has messages twice when it is started again"
        "guide/pipeline.md";
    LedgerContradiction(what: String) "ledger-contradiction" Invalid
        ["the ledger does not add up: {}", what]
        "a message is in two places of the ledger or in none"
        "this is a fault of Weighbridge: please report it with the run folder"
        "methodology.md#2-the-ledger";
    ConnectionsLost(lost: u64, of: u64, reason: String) "connections-lost" Doubt
        ["connections failed or were closed {} times ({} were asked for): {}", lost, of, reason]
        "fewer clients than asked for made the load"
        "see the causes in the ledger and the target's log"
        "methodology.md#2-the-ledger";
    ErrorAnswers(errors: u64, sent: u64, first: ErrorWords) "error-answers" Doubt
        ["{} of {} messages were answered with {}", errors, sent, first.name]
        "errors have times of their own (error_time_ns) and are in no response time"
        "check address, path, credentials and limits of the server"
        "methodology.md#2-the-ledger";
    PollsRefused(refused: u64, polls: u64, first: ErrorWords) "polls-refused" Doubt
        [
            "{} of {} requests of consumers were answered with {}",
            refused, polls, first.name
        ]
        "delivery times hold the time until the next request that succeeded"
        "check the path that consumers ask and its credentials; what they did not get \
         they ask for again"
        "guide/polling.md";
    PollsSkipped(skipped: u64, due: u64) "polls-skipped" Doubt
        [
            "{} of {} requests of consumers were not made, because the last one was not answered \
             yet",
            skipped, due
        ]
        "consumers asked less often than the load says"
        "the period in force is longer than the one asked for: make it longer than an \
         answer takes (--period; in a plan load.poll_period)"
        "guide/polling.md";
    NearNullPath(rate: f64, most: f64) "near-null-path" Doubt
        [
            "{:.0}/s: the generator of this machine and build reached {:.0}/s against the built-in \
             server",
            rate, most
        ]
        "the rate may be the generator's limit and not the target's"
        "the generator may be the limit: compare the CPU of both ends, or give the \
         generator more cores (--shards N)"
        "methodology.md#3-rates-cost-and-size";
    Burst(mean: f64) "burst" Doubt
        ["messages left in bursts, {:.1} to a write on average", mean]
        "coalesced messages are cheaper for both ends than one write each"
        "compare only with tools that coalesce alike, or write singly (--single-writes; in \
         a plan load.writes = \"single\")"
        "methodology.md#3-rates-cost-and-size";
    ObjectFile(what: String) "object-file" Doubt
        ["{}", what]
        "the file that was sent could not be read to its end"
        "read no time of this trial: what could not be read was lost by our own side, as \
         producer_dropped"
        "guide/transfers.md";
    LittleResidual(residual: f64) "L01" Doubt
        ["Little's law is off by {:.1} %", residual * 100.0]
        "throughput, response time and messages in flight contradict each other"
        "the window was not steady: measure longer"
        "methodology.md#6-the-rules-l01-to-l20";
    NotSteady(course: &'static str, have: u32, of: u32) "not-steady" Doubt
        ["{} within the measured window, in {} of {} repetitions", course, have, of]
        "a mean over a rate that changes is the mean of different things"
        "warm up longer (--warmup; in a plan load.warmup) or measure longer; look at the \
         rate over time"
        "methodology.md#7-repetition";
    Disturbed(percent: f64) "disturbed" Doubt
        ["others used {:.0} % of a core while this was measured", percent]
        "other programs take processor time from generator and target"
        "end other work on the machine and repeat; until then read ratios, not figures"
        "guide/reading-the-report.md";
    MessagesHeldUp(waited: Nanos) "messages-held-up" Doubt
        ["the generator waited {} for the record of single messages", waited]
        "the record of single messages made the generator late"
        "measure without --keep-messages (in a plan observe.messages), or lower the \
         rate, or keep a core free"
        "guide/exports.md";
    MessagesUnsettled(count: u64) "messages-unsettled" Doubt
        ["what became of {} messages is not in messages.parquet", count]
        "the file of single messages is incomplete"
        "trust the ledger, which has them all; shorten the trial to have them in the file"
        "guide/exports.md";
    CertificatesUnchecked(wrong: Option<String>) "certificates-unchecked" Doubt
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
    PathForbidden(why: String, fix: String) "path-forbidden" Doubt
        ["measured over plain loopback, without path and wire: {}; {}", why, fix]
        "no figure is one across the path that was asked for"
        "read no figure as one across a path: allow the hosts and repeat"
        "guide/paths.md";
    PathBent(what: String) "path-bent" Doubt
        ["the path was not as it says: {}", what]
        "packets were later, or more of them were lost, than the path says"
        "lower the rate, or keep a core free for the forwarder, and repeat"
        "guide/paths.md";
    PathGone(what: String) "path-gone" Invalid
        ["the path ended in the middle of the trial: {}", what]
        "from then on nothing came through"
        "see who else takes interfaces away on this machine, and repeat the trial"
        "guide/paths.md";
    PathDropped(packets: u64) "path-dropped" Doubt
        ["the path dropped {} packets, and messages were lost or not sent", packets]
        "the loss may be the path's and not the target's"
        "what protocols do not repeat is lost with the packet: read the causes in the \
         ledger"
        "guide/paths.md";
    TargetShare(what: String) "target-share" Doubt
        ["the target's share of the machine is not as asked: {}", what]
        "the target had more or less of the machine than the plan says"
        "let weigh make control groups (as root, or with systemd-run --user --scope -p \
         Delegate=yes), and spare as many cores as are asked for"
        "guide/paths.md";
    HostsUntuned(what: String) "hosts-untuned" Doubt
        ["settings of the hosts could not be changed: {}", what]
        "limits of the kernel may be reached before those of the target"
        "high loads may find the limits of the machine first"
        "guide/paths.md";
    Wire(seen: String, advice: &'static str) "wire" Doubt
        ["{}", seen]
        "figures of the wire are doubtful or incomplete"
        "read the text of the warning: it says what was not counted"
        "guide/paths.md#the-wire";
    CaptureLoss(seen: String, advice: &'static str) "capture-loss" Invalid
        ["{}", seen]
        "packets passed the capture by, so the figures of the wire are too small"
        "use a larger ring, or lower the rate, and repeat"
        "guide/paths.md#the-wire";
    Background(code: &'static str, seen: String, advice: &'static str) "background-..." Doubt
        ["{}", seen]
        "the second workload under the trial was not what the plan asked for"
        "read the text of the warning: it names what ended, delayed or slowed the background"
        "guide/interference.md";
    Energy(code: &'static str, seen: String, advice: &'static str) "energy-..." Doubt
        ["{}", seen]
        "a measured energy is doubtful or absent"
        "read the text of the warning: it names the meter and the phase"
        "guide/energy.md";
    Broken(rule: Rule, seen: String) "L02 to L20" Doubt
        ["{}", seen]
        "the result breaks one of the rules for published results; L02, L06, L07 and L14 make it \
         invalid"
        "read the rule's own line in the methodology"
        "methodology.md#6-the-rules-l01-to-l20";
}
