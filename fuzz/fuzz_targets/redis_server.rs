//! The redis reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::redis::Redis;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => &[("server_output_buffer", "1024"), ("bulk_bytes_max", "64")],
        _ => &[("server_password", "pw"), ("server_maxmemory", "65536")],
    };
    script.run_server(&Redis, given);
});
