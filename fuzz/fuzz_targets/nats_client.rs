//! A NATS client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::nats::Nats;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 8 {
        0 => (Pattern::Publish, Role::Producer, &[("confirm", "none")]),
        1 => (Pattern::Publish, Role::Producer, &[("confirm", "ok")]),
        2 => (Pattern::Publish, Role::Producer, &[("confirm", "flush")]),
        3 => {
            let given = &[("confirm", "jetstream"), ("message_id", "true")];
            (Pattern::Publish, Role::Producer, given)
        }
        4 => (Pattern::Request, Role::Producer, &[("confirm", "none")]),
        5 => (Pattern::Deliver, Role::Consumer, &[("confirm", "none")]),
        6 => (Pattern::Deliver, Role::Consumer, &[("confirm", "jetstream")]),
        _ => (Pattern::Deliver, Role::Consumer, &[("consume", "pull"), ("pull_batch", "2")]),
    };
    script.run_client(&Nats, "nats://127.0.0.1", pattern, role, given);
});
