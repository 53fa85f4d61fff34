//! Errors of trials without an answer of the target, and what to type.

use weigh_engine::job::{Failure, Job};
use weigh_engine::outcome::{NO_BYTE, Outcome, SILENCE};
use weigh_model::connection::{Outbox, Signal};
use weigh_model::ledger::Cause;
use weigh_model::numbers::count;
use weigh_model::protocol::{Dial, Role, Seat};
use weigh_model::{Nanos, Pattern, tls};

use crate::case::lanes::Lane;
use crate::exit::{Exit, Stop};

/// Returns why there is no outcome; a failed path takes precedence.
pub fn unreached(error: Failure, lane: &Lane, hindrance: Option<&str>) -> Stop {
    match hindrance {
        Some(hindrance) => Stop::new(Exit::Target, format!("{error}: {hindrance}")),
        None => failure(error, lane),
    }
}

/// Returns why a trial failed, and what to type.
pub fn failure(failure: Failure, lane: &Lane) -> Stop {
    if let Failure::Lost(_) = &failure {
        return Stop::generator_lost(failure);
    }
    let is_secured = tls::is_on(&lane.settings);
    let (exit, fix) = match &failure {
        // A closed port refuses; a server that resets or closes the connection listens, perhaps
        // without TLS.
        Failure::Unreachable { reason, .. } if is_secured && !reason.contains("refused") => {
            (Exit::Target, WITHOUT_TLS)
        }
        Failure::Unreachable { .. } => (Exit::Target, "; start the server, or check host and port"),
        // These errors have a fix in their text.
        Failure::Session { reason, .. }
            if reason.starts_with("TLS: ") || reason.contains("WebSocket") =>
        {
            (Exit::Target, "")
        }
        Failure::Session { .. } => {
            (Exit::Target, "; check protocol, port and credentials (--user NAME, WEIGH_PASSWORD)")
        }
        Failure::Ourselves(_) | Failure::Lost(_) => (Exit::Internal, ""),
    };
    // The server may wait for a greeting of another protocol.
    let why = match &failure {
        Failure::Session { reason, .. }
            if reason.contains("within the time limit")
                || reason.contains(NO_BYTE)
                || reason.starts_with(NO_ANSWER) =>
        {
            format!(": the server does not answer and may not speak {}", lane.protocol.name())
        }
        _ => String::new(),
    };
    let stop = Stop::new(exit, format!("{failure}{why}{fix}"));
    let is_refusal = matches!(failure, Failure::Session { .. }) || fix == WITHOUT_TLS;
    if is_refusal { stop.refusing() } else { stop }
}

/// Begin of the reason if no message was answered.
const NO_ANSWER: &str = "never answered";

/// Help text if a connection ends before TLS is set up.
const WITHOUT_TLS: &str = "; something listens there that may not speak TLS: leave TLS out \
                           (mqtt:// for mqtts://, http:// for https://), or check host and port";

/// Detects a server that accepted messages which it should have answered, and never sent a valid
/// response: it was never ready. (With a greeting, this is detected earlier.)
///
/// # Errors
/// The behaviour of such a server.
pub fn check_answered(outcome: &Outcome, job: &Job) -> Result<(), Failure> {
    let ledger = &outcome.ledger;
    let errors = ledger.causes.get(&Cause::ErrorAnswer).copied().unwrap_or(0);
    // Under overload the answers within the window may all be to messages of the warm-up.
    let window = &outcome.shards.recorder.window;
    let of_warmup = window.confirmed_since + window.delivered_since;
    let answers =
        ledger.acknowledged + errors + ledger.delivered.unwrap_or(0) + ledger.late + of_warmup;
    let is_asked = job.dial.confirms && job.load().pattern != Pattern::Hold;
    if outcome.shards.object_fault.is_some() {
        // No complete request was sent.
        return Ok(());
    }
    // Bytes that a path dropped are no evidence about the target.
    let is_cut_off = job.may_be_cut_off && outcome.shards.bytes.1 == 0;
    let is_idle = outcome.shards.was_interrupted || ledger.scheduled == 0;
    if !is_asked || answers > 0 || is_idle || is_cut_off {
        return Ok(());
    }
    let reason = outcome.shards.first_loss.clone().unwrap_or_default();
    // A server that greets and stays connected was ready. Without a greeting, all bytes are the
    // start of an incomplete response.
    let was_shut = !reason.is_empty() && reason != SILENCE;
    let has_begun = outcome.shards.bytes.1 > 0;
    if has_begun && !was_shut && (job.may_be_cut_off || greets(&job.dial)) {
        return Ok(());
    }
    let spoken = &job.trial.protocol;
    let reason = match reason.as_str() {
        _ if has_begun && !was_shut => format!(
            "never completed an answer: {} bytes came, fewer than it announced",
            count(outcome.shards.bytes.1)
        ),
        "" => format!("took {} {spoken} messages and never answered", count(ledger.sent)),
        _ => format!("{NO_ANSWER} in {spoken}: {reason}"),
    };
    Err(Failure::Session { address: job.address, reason })
}

/// True if sessions start with a greeting of the server.
fn greets(dial: &Dial) -> bool {
    let mut wire = (dial.make)(Seat { index: 0, role: Role::Producer });
    let mut is_ready = false;
    wire.open(Nanos(0), &mut Outbox::default(), &mut |signal| {
        is_ready |= matches!(signal, Signal::Ready { .. });
    });
    !is_ready
}
