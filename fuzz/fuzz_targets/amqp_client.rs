//! An AMQP client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::amqp::Amqp;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 5 {
        0 => (Pattern::Publish, Role::Producer, &[("heartbeat", "1s")]),
        1 => (Pattern::Deliver, Role::Producer, &[("confirms", "false"), ("declare", "false")]),
        2 => (Pattern::Deliver, Role::Consumer, &[("ack_every", "2"), ("declare", "false")]),
        3 => (Pattern::Poll, Role::Consumer, &[("declare", "false")]),
        _ => (Pattern::Deliver, Role::Consumer, &[("exchange", "x"), ("acks", "auto")]),
    };
    script.run_client(&Amqp, "amqp://127.0.0.1", pattern, role, given);
});
