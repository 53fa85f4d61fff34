//! The CoAP reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::coap::Coap;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 5 {
        0 => &[("path", "/a")],
        2 => &[("poll_path", "/a"), ("readings", "3")],
        1 => &[("path", "/a"), ("response", "separate"), ("max_latency", "1s")],
        3 => &[("oscore", "on"), ("oscore_window", "3")],
        _ => &[("path", "/"), ("body_bytes_max", "40")],
    };
    script.whole().run_server(&Coap, given);
});
