//! The websocket reference server against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_protocols::websocket::WebSocket;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let given: &[_] = match script.choice % 3 {
        0 => &[],
        1 => &[("server_queue_bytes_max", "1024"), ("message_bytes_max", "64")],
        _ => &[("server_slow", "drop"), ("subprotocol", "chat"), ("path", "/chat")],
    };
    script.run_server(&WebSocket, given);
});
