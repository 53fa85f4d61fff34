//! The tcp reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::tcp::Tcp;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 2 {
        0 => &[("frame_bytes_max", "64")],
        _ => &[("queue_bytes_max", "100")],
    };
    script.run_server(&Tcp, given);
});
