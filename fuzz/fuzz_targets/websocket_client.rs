//! A websocket client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::websocket::WebSocket;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 6 {
        0 => (Pattern::Request, Role::Producer, &[]),
        1 => (Pattern::Deliver, Role::Producer, &[("kind", "text"), ("fragment_bytes", "5")]),
        2 => (Pattern::Request, Role::Producer, &[("confirm", "echo")]),
        3 => (Pattern::Publish, Role::Producer, &[("confirm", "pong"), ("keep_alive", "3s")]),
        4 => (Pattern::Publish, Role::Producer, &[("confirm", "none")]),
        _ => (Pattern::Deliver, Role::Consumer, &[("message_bytes_max", "64")]),
    };
    script.run_client(&WebSocket, "websocket://h", pattern, role, given);
});
