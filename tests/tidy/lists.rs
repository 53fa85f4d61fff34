//! The limits and lists that the rules are made of.

pub const LINE_COLUMNS_MAX: usize = 100;
pub const FILE_LINES_MAX: usize = 600;
pub const FUNCTION_LINES_MAX: usize = 70;
/// The most fields that a struct may have.
pub const FIELDS_MAX: usize = 20;

/// Structs above [`FIELDS_MAX`] that mirror a file or a document field by field, and which one.
pub const RECORDS: &[(&str, &str, &str)] = &[
    ("crates/study/src/outcome.rs", "Outcome", "study.json, weigh/study/1"),
    ("crates/study/src/tools/written.rs", "ToolFile", "[[tool]] of tools.toml"),
    ("crates/study/src/written.rs", "ClaimFile", "[[claim]] of study.toml"),
];

/// Functions that are one table, an entry for each variant: in pieces they would be harder to
/// read, and the compiler could no longer tell that an entry is missing.
pub const TABLES: &[(&str, &str)] =
    &[("crates/plan/src/contradiction.rs", "in_plan"), ("src/planning/options.rs", "in_flags")];

pub const EMPTY_WORDS: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "managers"];

/// What builds and runs leave behind.
pub const MADE: &[&str] =
    &[".git", "target", "runs", "bench-results", "corpus", "artifacts", "coverage", "node_modules"];

pub const UNFINISHED: &[&str] = &["TODO", "FIXME", "todo!", "unimplemented!"];

pub const PLACES: &[&str] = &["/work/", "/root/", "/tmp/bash", "/home/"];

/// Which crates of ours each crate may import.
pub const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("energy", &["model", "stats"]),
    ("websocket", &[]),
    ("engine", &["model", "stats", "websocket"]),
    ("protocols", &["model", "websocket"]),
    ("testbed", &["model", "stats"]),
    ("observe", &["model", "stats"]),
    ("report", &["model", "stats", "limit", "energy"]),
    ("limit", &["model", "stats"]),
    ("plan", &["model"]),
    ("probe", &["model", "protocols", "engine"]),
    ("capture", &["model"]),
    ("seal", &["model"]),
    ("pipeline", &["model", "protocols"]),
    ("advice", &["model", "stats", "energy", "report"]),
    ("study", &["model", "advice", "stats", "plan", "limit", "report"]),
    ("watch", &["model", "report"]),
    ("fleet", &["model", "engine", "observe"]),
    (
        "runner",
        &[
            "model",
            "advice",
            "stats",
            "energy",
            "engine",
            "fleet",
            "protocols",
            "pipeline",
            "testbed",
            "observe",
            "report",
            "plan",
            "probe",
            "study",
            "limit",
            "seal",
            "capture",
        ],
    ),
];

/// Words that must be absent from the code below a folder, and why.
pub const ABSENT: &[(&str, &[&str], &str)] = &[
    (
        "crates/model/src",
        &["std::fs", "std::process", "std::thread", "TcpStream", "TcpListener", "UdpSocket"],
        "the model does no I/O",
    ),
    ("crates/model/src", &["Instant::now", "SystemTime::now"], "the model reads no clock"),
    (
        "crates/stats/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "numbers in, numbers out",
    ),
    (
        "crates/websocket/src",
        &["std::fs", "std::net", "std::thread", "Instant", "SystemTime"],
        "bytes in, bytes out",
    ),
    (
        "crates/limit/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "a search asks for trials and is told what came of them",
    ),
    (
        "crates/runner/src/emulate",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "an exact record goes in, what a tool would have made of it comes out",
    ),
    (
        "crates/energy/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "coefficients and work go in, joules come out",
    ),
    (
        "crates/runner/src",
        &["print!", "println!", "eprint!", "eprintln!"],
        "the library prints nothing: a watcher is told",
    ),
    (
        "crates/runner/src/scheduler",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "plan and events go in, the next trial comes out",
    ),
    (
        "crates/protocols/src",
        &["std::net", "std::fs", "std::thread", "tokio", "rustix"],
        "the engine owns the sockets",
    ),
    (
        "crates/protocols/src",
        &["Instant", "SystemTime"],
        "a protocol gets time as an argument, so that trials can run on virtual time",
    ),
    (
        "crates/protocols/src/http2_core",
        &["hyper", "tonic", "h2::", "bytes::", "futures_util"],
        "the built-in HTTP/2 needs no library",
    ),
    (
        "crates/protocols/src/adapter",
        &["std::net", "std::fs", "std::thread", "tokio", "rustix", "Instant", "SystemTime"],
        "a library gets bytes when the engine has them, on whatever time the engine runs",
    ),
    (
        "crates/engine/src",
        &["mqtt", "Mqtt", "MQTT", "http", "http1", "Http", "HTTP", "weigh_protocols"],
        "the engine knows no protocol by name",
    ),
    (
        "crates/plan/src",
        &["std::fs", "std::net", "std::process", "Instant::now", "SystemTime::now"],
        "text in, a plan or errors out",
    ),
    (
        "crates/report/src",
        &["std::net", "std::process", "Instant::now", "SystemTime::now"],
        "a report is a function of journals alone",
    ),
    (
        "crates/seal/src",
        &["std::fs", "std::net", "std::process", "Instant::now", "SystemTime::now"],
        "bytes and keys in, bytes out",
    ),
    (
        "crates/observe/src",
        &["fs::write", "File::create", "Command", "kill_process"],
        "observing changes nothing",
    ),
];
