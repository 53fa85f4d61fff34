//! What the handlers of all requests share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use crate::courtesy;
use crate::metrics::Exposed;
use crate::subject::Subject;

/// What the handlers share.
pub struct Shared {
    /// The run, or the study.
    pub subject: Subject,
    /// Streams that may still be opened.
    pub streams: Arc<Semaphore>,
    /// One report is made at a time: it takes the memory of the whole run.
    pub reports: Semaphore,
    /// What Prometheus reads.
    pub exposed: Arc<Mutex<Exposed>>,
    /// The generator whose cores this process left; 0 before the first.
    left: AtomicU32,
}

impl Shared {
    /// Handlers of a run, or of a study.
    pub fn new(subject: Subject) -> Shared {
        Shared {
            exposed: Arc::new(Mutex::new(Exposed::new(subject.clone()))),
            subject,
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            reports: Semaphore::new(1),
            left: AtomicU32::new(0),
        }
    }

    /// Leaves the cores of a generator, once.
    pub fn leave_cores_of(&self, generator: u32) {
        if self.left.swap(generator, Ordering::Relaxed) != generator {
            // If the kernel refuses, the idle class is courtesy enough.
            let _ = courtesy::leave_cores_of(generator);
        }
    }
}

/// Browsers that may watch at once.
const STREAMS_MAX: usize = 64;
