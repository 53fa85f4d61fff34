//! The NATS reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::nats::Nats;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 4 {
        0 => &[],
        1 => &[("server_max_payload", "64"), ("server_max_pending", "1024")],
        2 => &[("server_user", "u"), ("server_password", "p")],
        _ => &[("server_token", "t"), ("server_ping_interval", "1s")],
    };
    script.run_server(&Nats, given);
});
