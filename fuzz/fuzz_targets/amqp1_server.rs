//! The reference server of AMQP 1.0 against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::amqp1::Amqp1;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => {
            &[("broker_memory", "200"), ("broker_message_bytes_max", "100"), ("broker_credit", "2")]
        }
        _ => &[("broker_user", "ann"), ("broker_password", "x"), ("broker_idle_timeout", "1s")],
    };
    script.run_server(&Amqp1, given);
});
