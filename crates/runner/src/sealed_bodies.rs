//! Seals the bodies of a load, and reports the cost.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use weigh_model::Load;
use weigh_model::event::TrialFinished;
use weigh_observe::cpu::own_thread_ns;
use weigh_seal::BodySealer;

use crate::exit::{Exit, Stop};

/// Makes the sealer of the bodies of `load`, with new keys; `None` if they are not sealed.
///
/// # Errors
/// A system without random bytes.
pub fn sealer(load: &Load) -> Result<Option<Arc<BodySealer>>, Stop> {
    let Some(seal) = load.body.seal() else { return Ok(None) };
    let made = BodySealer::new(seal, now_s(), own_thread_ns);
    made.map(|sealer| Some(Arc::new(sealer))).map_err(|error| Stop::new(Exit::Internal, error))
}

/// Unix time in seconds, for policies of seals.
pub fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Adds the costs of sealing and opening to the figures of a trial.
pub fn tell(sealer: &BodySealer, finished: &mut TrialFinished) {
    let figures = sealer.figures();
    for (name, value) in [
        ("seal_cpu_us_per_message", figures.seal_cpu_us),
        ("open_cpu_us_per_message", figures.open_cpu_us),
        ("sealed_overhead_bytes_per_message", figures.overhead_bytes),
    ] {
        if let Some(value) = value {
            finished.metrics.insert(name.to_owned(), value);
        }
    }
}
