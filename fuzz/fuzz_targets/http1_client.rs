//! An http1 client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::http1::Http1;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 6 {
        0 => &[],
        1 => &[("pipeline", "4")],
        2 => &[("expect", "true")],
        3 => &[("method", "HEAD")],
        4 => &[("method", "GET")],
        _ => &[("keep_alive", "false")],
    };
    script.run_client(&Http1, "http://h", Pattern::Request, Role::Producer, given);
});
