//! The mqtt reference broker against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::mqtt::Mqtt;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 5 {
        0 => &[],
        1 => &[("overload", "drop-newest:1"), ("broker_receive_maximum", "1")],
        2 => &[("overload", "drop-oldest:1"), ("broker_maximum_qos", "1")],
        3 => &[("overload", "disconnect:1"), ("broker_keep_alive", "1s")],
        _ => &[("broker_topic_alias_maximum", "2")],
    };
    script.run_server(&Mqtt, given);
});
