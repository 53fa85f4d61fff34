//! A Kafka client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::kafka::Kafka;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 8 {
        0 => (Pattern::Publish, Role::Producer, &[]),
        1 => (Pattern::Publish, Role::Producer, &[("acks", "0"), ("create", "false")]),
        2 => (Pattern::Publish, Role::Producer, &[("acks", "idempotent")]),
        3 => (Pattern::Batch, Role::Producer, &[("linger", "5ms"), ("batch_size", "64")]),
        4 => (Pattern::Deliver, Role::Consumer, &[]),
        5 => (Pattern::Deliver, Role::Consumer, &[("group", "g"), ("commit", "1s")]),
        6 => (Pattern::Deliver, Role::Consumer, &[("group", "g"), ("create", "false")]),
        _ => (Pattern::Deliver, Role::Consumer, &[("create", "false")]),
    };
    script.run_client(&Kafka, "kafka://h", pattern, role, given);
});
