//! A client of AMQP 1.0 against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::amqp1::Amqp1;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 5 {
        0 => (Pattern::Publish, Role::Producer, &[("idle_timeout", "1s")]),
        1 => (Pattern::Deliver, Role::Producer, &[("transfers", "settled"), ("sasl", "none")]),
        2 => (Pattern::Deliver, Role::Consumer, &[("settle_every", "2"), ("sasl", "none")]),
        3 => (Pattern::Poll, Role::Consumer, &[("sasl", "none")]),
        _ => (Pattern::Deliver, Role::Consumer, &[("credit", "2"), ("max_frame_size", "512")]),
    };
    script.run_client(&Amqp1, "amqp1://127.0.0.1", pattern, role, given);
});
