//! An http3 client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::http3::Http3;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => &[("method", "HEAD")],
        _ => &[("streams", "2")],
    };
    script.run_client_over_streams(&Http3, "h3://h", given);
});
