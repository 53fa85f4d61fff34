//! An http2 or grpc client against any server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::Script;
use weigh_model::load::Pattern;
use weigh_model::protocol::{Protocol, Role};
use weigh_protocols::grpc::Grpc;
use weigh_protocols::http2::Http2;

fuzz_target!(|data: &[u8]| {
    let Some(script) = Script::read(data) else { return };
    let (protocol, url, given): (&dyn Protocol, _, &[_]) = match script.choice % 7 {
        0 => (&Http2, "h2c://h", &[]),
        1 => (&Http2, "h2c://h", &[("method", "HEAD")]),
        2 => (&Http2, "h2c://h", &[("streams", "2")]),
        3 => (&Grpc, "grpc://h:1", &[]),
        4 => (&Grpc, "grpc://h:1", &[("streaming", "client")]),
        5 => (&Grpc, "grpc://h:1", &[("streaming", "bidi")]),
        _ => (&Grpc, "grpc://h:1", &[("deadline", "1ms")]),
    };
    script.run_client(protocol, url, Pattern::Request, Role::Producer, given);
});
