//! The http3 reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::http3::Http3;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 2 {
        0 => &[],
        _ => &[("body_bytes_max", "8")],
    };
    script.run_server_over_streams(&Http3, given);
});
