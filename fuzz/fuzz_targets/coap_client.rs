//! A CoAP client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::Role;
use weigh_protocols::coap::Coap;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (pattern, role, given): (_, _, &[_]) = match script.choice % 8 {
        0 => (Pattern::Publish, Role::Producer, &[("nstart", "4"), ("token_bytes", "2")]),
        1 => (Pattern::Publish, Role::Producer, &[("type", "non"), ("nstart", "9")]),
        2 => (Pattern::Publish, Role::Producer, &[("type", "non"), ("no_response", "true")]),
        3 => (Pattern::Publish, Role::Producer, &[("block_bytes", "16")]),
        4 => (Pattern::Poll, Role::Consumer, &[("token_bytes", "2"), ("block_bytes", "16")]),
        5 => (Pattern::Publish, Role::Producer, &[("oscore", "on"), ("nstart", "4")]),
        6 => (Pattern::Deliver, Role::Consumer, &[("oscore", "on"), ("token_bytes", "2")]),
        _ => (Pattern::Deliver, Role::Consumer, &[("token_bytes", "2")]),
    };
    script.whole().run_client(&Coap, "coap://127.0.0.1", pattern, role, given);
});
