//! The method that a trial calls: one of the store, or any other with its message, compiled
//! elsewhere.

use serde::{Deserialize, Serialize};
use weigh_model::load::Pattern;
use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::{Settings, Trial};

use super::codec::SERVICE;
use super::template::MessageTemplate;

/// The files of the definition.
pub const PROTO: Setting = Setting::text(
    "proto",
    "",
    "Files with the definition of the service, with commas: greeter.proto. Without one the server \
     is asked for it (reflection).",
);

/// The folders of imports.
pub const IMPORT_PATHS: Setting = Setting::text(
    "import_paths",
    "",
    "Folders in which the definition and its imports are looked for, with commas.",
);

/// The method.
pub const METHOD: Setting = Setting::text(
    "method",
    "",
    "Method to call: package.Service/Method; empty for Append of weigh.store.v1.Store.",
);

/// The message.
pub const MESSAGE: Setting = Setting::text(
    "message",
    "",
    "Message of each call in JSON, or @FILE; {body}, {seq} and {client} are filled in. Empty for \
     the empty message.",
);

/// The longest time of a call.
pub const DEADLINE: Setting = Setting::duration(
    "deadline",
    "0s",
    "Deadline of each call (grpc-timeout); beyond it DEADLINE_EXCEEDED ends it. 0s for none.",
);

/// Streams of messages in a call.
pub const STREAMING: Setting = Setting {
    key: "streaming",
    kind: SettingKind::Choice(&[AUTO, "none", "client", "server", "bidi"]),
    default: AUTO,
    doc: "Streams of a call: none, client (a message or a batch in each call), server (answers \
          until the status), or bidi (all messages in one call, an answer to each); auto for what \
          the method has.",
};

const AUTO: &str = "auto";

/// Key of the compiled method among the settings of a trial. It is not a key of plans: the runner
/// sets it ([`CompiledMethod::enter`]).
pub const COMPILED: &str = "compiled_method";

/// Way in which a call uses its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Streaming {
    /// One message, one answer.
    #[default]
    None,
    /// Messages, one answer.
    Client,
    /// One message, any number of answers.
    Server,
    /// Messages, and an answer to each, in one call.
    Bidi,
}

/// A method of any service, with its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledMethod {
    /// Its name: `package.Service/Method`.
    pub name: String,
    /// Its streams.
    pub streaming: Streaming,
    /// Its message.
    pub message: MessageTemplate,
    /// True if the body is in a field of text, which has to be UTF-8.
    pub has_text_body: bool,
}

impl Streaming {
    /// The streams of a method by its definition.
    pub fn of(client_streams: bool, server_streams: bool) -> Streaming {
        match (client_streams, server_streams) {
            (false, false) => Streaming::None,
            (true, false) => Streaming::Client,
            (false, true) => Streaming::Server,
            (true, true) => Streaming::Bidi,
        }
    }

    /// The word of the setting.
    pub fn word(self) -> &'static str {
        match self {
            Streaming::None => "none",
            Streaming::Client => "client",
            Streaming::Server => "server",
            Streaming::Bidi => "bidi",
        }
    }

    /// The streams that a trial asks for, of a method that has `own`.
    ///
    /// # Errors
    /// Streams that the method does not have.
    pub(super) fn asked(settings: &Settings, own: &[Streaming]) -> Result<Streaming, Invalid> {
        let word = settings.text(STREAMING.key);
        let first = own.first().copied().unwrap_or_default();
        if word == AUTO {
            return Ok(first);
        }
        own.iter().copied().find(|streaming| streaming.word() == word).ok_or_else(|| {
            let words: Vec<&str> = own.iter().map(|streaming| streaming.word()).collect();
            let problem = format!("the method does not have streaming = {word}");
            let fix = format!("leave it out, or type {}", words.join(" or "));
            Invalid::new("grpc.streaming", problem, fix)
        })
    }
}

impl CompiledMethod {
    /// Writes it into the settings of a trial.
    pub fn enter(&self, settings: &mut Settings) {
        let text = serde_json::to_string(self).unwrap_or_default();
        settings.0.insert(COMPILED.to_owned(), text);
    }

    /// Reads it from the settings of a trial; `None` if the trial calls the store.
    ///
    /// # Errors
    /// A method that was not compiled.
    pub fn of(settings: &Settings) -> Result<Option<CompiledMethod>, Invalid> {
        let compiled = settings.text(COMPILED);
        if compiled.is_empty() {
            return not_compiled(settings).map(|()| None);
        }
        serde_json::from_str(compiled).map(Some).map_err(|error| {
            let problem = format!("the compiled method cannot be read: {error}");
            Invalid::new("grpc.method", problem, "use the same version of weigh on all hosts")
        })
    }

    /// Streams that a call may use. A method with two streams can also be called for each message.
    pub(super) fn streamings(&self) -> &'static [Streaming] {
        match self.streaming {
            Streaming::None => &[Streaming::None],
            Streaming::Client => &[Streaming::Client],
            Streaming::Server => &[Streaming::Server],
            Streaming::Bidi => &[Streaming::Bidi, Streaming::Client],
        }
    }

    /// Checks that bodies fit their field.
    pub(super) fn check_body(&self, trial: &Trial) -> Result<(), Invalid> {
        use weigh_model::body::BodySource;
        let body = &trial.load.body;
        let is_text = body.seal().is_none() && !matches!(body.content(), BodySource::File(_));
        if !self.has_text_body || is_text {
            return Ok(());
        }
        let problem = format!("{{body}} is in a field of text (string), and {body} may be no text");
        let fix = "put it into a field of bytes, or send text: --body readings";
        Err(Invalid::new("grpc.message", problem, fix))
    }
}

/// Refuses keys of other services where there is no compiled method.
fn not_compiled(settings: &Settings) -> Result<(), Invalid> {
    if !settings.text(METHOD.key).is_empty() {
        let problem = "the method has no compiled message here";
        return Err(Invalid::new("grpc.method", problem, "run it as a plan or with compare"));
    }
    for key in [PROTO.key, IMPORT_PATHS.key, MESSAGE.key] {
        if !settings.text(key).is_empty() {
            let problem = format!("without --method, {SERVICE} is called, and no file is used");
            let fix = "add --method package.Service/Method (in a plan grpc.method)";
            return Err(Invalid::new(format!("grpc.{key}"), problem, fix));
        }
    }
    Ok(())
}

/// Patterns of calls with these streams.
pub(super) fn check_pattern(streaming: Streaming, pattern: Pattern) -> Result<(), Invalid> {
    let wrong = |problem: &str, fix: &str| Err(Invalid::new("load.pattern", problem, fix));
    match (streaming, pattern) {
        (Streaming::None | Streaming::Server, Pattern::Batch) => wrong(
            "a batch is one call with several messages, which this method does not take",
            "use --pattern request, or a method with a stream of the client",
        ),
        (Streaming::Bidi, Pattern::Batch) => wrong(
            "streaming = bidi answers each message; a batch is confirmed together",
            "use --pattern request, or streaming = client",
        ),
        _ => Ok(()),
    }
}
