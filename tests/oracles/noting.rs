//! When which message is handed over, noted between the engine and the connection.

use std::sync::{Arc, Mutex};

use weigh_model::Nanos;
use weigh_model::mark::{Mark, Reading};

use crate::rig::{Seen, Setup};
use crate::wrapped::Wrapped;

/// Runs on virtual time and tells when which message was sent.
pub fn sends(mut setup: Setup) -> (Vec<(Nanos, Mark)>, Seen) {
    let marks = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&marks);
    setup.wrap = Some(Arc::new(move |_, inner| {
        let noted = Arc::clone(&noted);
        let mut wrapped = Wrapped::new(inner);
        wrapped.is_woken = false;
        wrapped.note = Box::new(move |now, op| {
            let Reading::Whole(mark) = Mark::read_any(op.body) else { panic!("no mark") };
            noted.lock().unwrap().push((now, mark));
        });
        Box::new(wrapped)
    }));
    let seen = setup.on_virtual_time();
    let marks = std::mem::take(&mut *marks.lock().unwrap());
    (marks, seen)
}
