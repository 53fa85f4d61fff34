//! The http2 and grpc reference servers against any clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::protocol::Protocol;
use weigh_protocols::grpc::Grpc;
use weigh_protocols::http2::Http2;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (protocol, given): (&dyn Protocol, &[_]) = match script.choice % 4 {
        0 => (&Http2, &[]),
        1 => (&Http2, &[("body_bytes_max", "8")]),
        2 => (&Grpc, &[]),
        _ => (&Grpc, &[("message_bytes_max", "8"), ("store", "2")]),
    };
    script.run_server(protocol, given);
});
