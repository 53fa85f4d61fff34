//! An sse client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::sse::Sse;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 3 {
        0 => (Pattern::Deliver, Role::Producer, &[]),
        1 => (Pattern::Deliver, Role::Consumer, &[]),
        _ => (Pattern::Deliver, Role::Consumer, &[("event_bytes_max", "64")]),
    };
    script.run_client(&Sse, "sse://h", pattern, role, given);
});
