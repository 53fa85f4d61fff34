//! The AMQP reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::amqp::Amqp;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => &[("broker_memory", "200"), ("broker_message_bytes_max", "100")],
        _ => &[("broker_user", "ann"), ("broker_password", "x"), ("broker_heartbeat", "1s")],
    };
    script.run_server(&Amqp, given);
});
