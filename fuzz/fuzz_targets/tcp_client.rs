//! A tcp client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::tcp::Tcp;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 5 {
        0 => (Pattern::Request, Role::Producer, &[]),
        1 => (Pattern::Request, Role::Producer, &[("echo", "true")]),
        2 => (Pattern::Publish, Role::Producer, &[("acknowledge", "false")]),
        3 => (Pattern::Deliver, Role::Producer, &[]),
        _ => (Pattern::Deliver, Role::Consumer, &[]),
    };
    script.run_client(&Tcp, "tcp://h:1", pattern, role, given);
});
