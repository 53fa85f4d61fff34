//! A redis client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::redis::Redis;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let publish = ("command", "publish");
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 9 {
        0 => (Pattern::Publish, Role::Producer, &[]),
        1 => (Pattern::Publish, Role::Producer, &[publish]),
        2 => (Pattern::Publish, Role::Producer, &[("command", "set"), ("resp", "3")]),
        3 => (Pattern::Deliver, Role::Producer, &[publish, ("resp", "3")]),
        4 => (Pattern::Deliver, Role::Consumer, &[publish]),
        5 => (Pattern::Deliver, Role::Consumer, &[publish, ("resp", "3")]),
        6 => (Pattern::Deliver, Role::Consumer, &[]),
        7 => (Pattern::Deliver, Role::Consumer, &[("read", "plain"), ("resp", "3")]),
        _ => (Pattern::Poll, Role::Consumer, &[("ack", "false")]),
    };
    script.run_client(&Redis, "redis://h", pattern, role, given);
});
