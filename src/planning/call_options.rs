//! Flags for calls of any gRPC service: its definition, and the message of each call.

use clap::Args;
use weigh_protocols::grpc::method::{DEADLINE, IMPORT_PATHS, MESSAGE, PROTO};

/// Flags about calls.
#[derive(Args, Clone, Debug, Default)]
pub struct CallOptions {
    /// File with the definition of a gRPC service; repeat it for more
    ///
    /// Needs --method. Without a file, a server given by URL describes itself (reflection).
    #[arg(long, value_name = "FILE")]
    proto: Vec<String>,
    /// Folder in which definitions and their imports are looked for; repeat it for more
    #[arg(long, value_name = "DIR")]
    import_path: Vec<String>,
    /// Message of each gRPC call in JSON, or @FILE [default: the empty message]
    ///
    /// {body}, {seq} and {client} in its values stand for the body of the load, the number of the
    /// message and the index of its client.
    #[arg(long, value_name = "JSON|@FILE")]
    message: Option<String>,
    /// Deadline of each gRPC call, such as 250ms [default: none]
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
}

impl CallOptions {
    /// The flags that were typed, their keys, and the values of these.
    pub fn changes(&self) -> Vec<(&'static str, &'static str, String)> {
        let list = |words: &[String]| (!words.is_empty()).then(|| words.join(","));
        let all = [
            ("--proto", PROTO.key, list(&self.proto)),
            ("--import-path", IMPORT_PATHS.key, list(&self.import_path)),
            ("--message", MESSAGE.key, self.message.clone()),
            ("--deadline", DEADLINE.key, self.deadline.clone()),
        ];
        all.into_iter().filter_map(|(flag, key, value)| Some((flag, key, value?))).collect()
    }
}
