//! The sse reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::sse::Sse;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => &[("server_framing", "close"), ("server_retry", "1s"), ("event_bytes_max", "64")],
        _ => &[("server_queue_bytes_max", "1024"), ("server_history", "3")],
    };
    script.run_server(&Sse, given);
});
