//! The Kafka reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::kafka::Kafka;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => &[("server_message_max_bytes", "64")],
        _ => &[("server_log_bytes", "65536"), ("server_partitions", "3")],
    };
    script.run_server(&Kafka, given);
});
