//! Trials that came to nothing because nobody answered: what is said of them, and what to type.

use weigh_engine::job::{Failure, Job};
use weigh_engine::outcome::{Outcome, SILENCE};
use weigh_model::connection::{Outbox, Signal};
use weigh_model::ledger::Cause;
use weigh_model::protocol::{Dial, Role, Seat};
use weigh_model::{Nanos, Pattern, tls};

use crate::case::lanes::Lane;
use crate::exit::{Exit, Stop};

/// Why there is no outcome; where the path has gone, that is why.
pub fn unreached(error: Failure, lane: &Lane, hindrance: Option<&str>) -> Stop {
    match hindrance {
        Some(hindrance) => Stop::new(Exit::Target, format!("{error}: {hindrance}")),
        None => failure(error, lane),
    }
}

/// Why a trial failed, and what to type.
pub fn failure(failure: Failure, lane: &Lane) -> Stop {
    let is_secured = tls::is_on(&lane.settings);
    let (exit, mend) = match &failure {
        // A closed port refuses; a server that resets or hangs up listens, without TLS perhaps.
        Failure::Unreachable { reason, .. } if is_secured && !reason.contains("refused") => {
            (Exit::Target, WITHOUT_TLS)
        }
        Failure::Unreachable { .. } => (Exit::Target, "; start the server, or check host and port"),
        // These have mends of their own.
        Failure::Session { reason, .. }
            if reason.starts_with("TLS: ") || reason.contains("WebSocket") =>
        {
            (Exit::Target, "")
        }
        Failure::Session { .. } => {
            (Exit::Target, "; check protocol, port and credentials (--user NAME, WEIGH_PASSWORD)")
        }
        Failure::Ourselves(_) => (Exit::Internal, ""),
    };
    Stop::new(exit, format!("{failure}{mend}"))
}

/// What to type where a connection that was to be secured ends before it is.
const WITHOUT_TLS: &str = "; something listens there that may not speak TLS: leave TLS out \
                           (mqtt:// for mqtts://, http:// for https://), or check host and port";

/// A server that took messages which it should have answered, and never said anything that the
/// protocol knows, was never ready. (Where sessions have a greeting, this was noticed there.)
///
/// # Errors
/// What it did instead.
pub fn check_answered(outcome: &Outcome, job: &Job) -> Result<(), Failure> {
    let ledger = &outcome.ledger;
    let errors = ledger.causes.get(&Cause::ErrorAnswer).copied().unwrap_or(0);
    let answers = ledger.acknowledged + errors + ledger.delivered.unwrap_or(0) + ledger.late;
    let is_asked = job.dial.confirms && job.load().pattern != Pattern::Hold;
    if outcome.shards.object_fault.is_some() {
        // Nothing whole was asked.
        return Ok(());
    }
    // What a path swallowed says nothing of the target.
    let is_cut_off = job.may_be_cut_off && outcome.shards.bytes.1 == 0;
    let is_idle = outcome.shards.was_interrupted || ledger.scheduled == 0;
    if !is_asked || answers > 0 || is_idle || is_cut_off {
        return Ok(());
    }
    let reason = outcome.shards.first_loss.clone().unwrap_or_default();
    // Whoever greets and then is silent, and keeps the connection, was ready. Without a greeting
    // all that came is the beginning of an answer that was never completed.
    let was_shut = !reason.is_empty() && reason != SILENCE;
    let has_begun = outcome.shards.bytes.1 > 0;
    if has_begun && !was_shut && (job.may_be_cut_off || greets(&job.dial)) {
        return Ok(());
    }
    let spoken = &job.trial.protocol;
    let reason = match reason.as_str() {
        _ if has_begun && !was_shut => format!(
            "never completed an answer: {} bytes came, fewer than it announced",
            outcome.shards.bytes.1
        ),
        "" => format!("took {} {spoken} messages and never answered", ledger.sent),
        _ => format!("never answered {spoken}: {reason}"),
    };
    Err(Failure::Session { address: job.address, reason })
}

/// Whether a session begins with a word of the server.
fn greets(dial: &Dial) -> bool {
    let mut wire = (dial.make)(Seat { index: 0, role: Role::Producer });
    let mut is_ready = false;
    wire.open(Nanos(0), &mut Outbox::default(), &mut |signal| {
        is_ready |= matches!(signal, Signal::Ready { .. });
    });
    !is_ready
}
