//! Runs the storage pipeline in the foreground: starts its processes from the store to the entry,
//! watches them, and ends them from the entry to the store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_model::Endpoint;
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::family::{Child, Member};
use weigh_testbed::serve_lines::parse_listening;

use crate::commands::serve_flags::{
    LOOK_EVERY, MEMORY, PASSWORD, PipelineFlags, PipelineStage, Switch,
};
use crate::commands::serve_words::say;

/// Processes of the pipeline, from the store to the entry.
struct Pipeline {
    program: PathBuf,
    children: Vec<Child>,
}

/// Runs the pipeline until SIGINT, SIGTERM, or the end of a process that is not restarted.
///
/// # Errors
/// Flags that contradict each other, and a process that cannot be started or that ended.
pub fn run(flags: &PipelineFlags) -> Result<Exit, Stop> {
    check(flags)?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let program = std::env::current_exe()?;
    let mut pipeline = Pipeline { program, children: Vec::new() };
    pipeline.start(flags)?;
    let outcome = loop {
        if signals.pending().next().is_some() {
            break Ok(Exit::Done);
        }
        if let Err(stop) = pipeline.replace_ended(flags.restart) {
            break Err(stop);
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let counts = pipeline.finish();
    say(&Value::Object(counts).to_string())?;
    outcome
}

/// Refuses contradicting flags before anything starts.
fn check(flags: &PipelineFlags) -> Result<(), Stop> {
    let stages = &flags.stages;
    let has = |stage| stages.contains(&stage);
    let ways = "gateway,api,store, gateway,store, api,store, gateway,api, api, or store";
    if !stages.is_sorted_by(|before, after| before < after) {
        let text = format!(
            "--stages: the stages are not in the order of a message, each at most once: type {ways}"
        );
        return Err(Stop::usage(text));
    }
    if stages == &[PipelineStage::Gateway] {
        let text = format!("--stages: a gateway needs a next stage: type {ways}");
        return Err(Stop::usage(text));
    }
    if flags.broker.is_some() && !has(PipelineStage::Gateway) {
        return Err(Stop::usage(
            "--broker: no stage connects to a broker without a gateway\nhelp: leave it out",
        ));
    }
    let own = &flags.subscription;
    let is_asked = own.filter.is_some() || own.qos.is_some() || own.client_id.is_some();
    if is_asked && !has(PipelineStage::Gateway) {
        return Err(Stop::usage(
            "--filter, --qos and --client-id: no stage subscribes without a gateway\nhelp: leave \
             them out",
        ));
    }
    let keeping = &flags.keeping;
    if !has(PipelineStage::Store) && (keeping.database.as_os_str() != MEMORY || keeping.unique) {
        let text = "--database and --unique: there is no store: add store to --stages";
        return Err(Stop::usage(text));
    }
    keeping.place().map(|_| ())
}

impl Pipeline {
    fn start(&mut self, flags: &PipelineFlags) -> Result<(), Stop> {
        if let Some(folder) = &flags.hops {
            std::fs::create_dir_all(folder).map_err(|error| {
                Stop::usage(format!("--hops {}: {error}; name another folder", folder.display()))
            })?;
        }
        let mut next: Option<Endpoint> = None;
        for stage in flags.stages.iter().rev() {
            match stage {
                PipelineStage::Store => {
                    next = Some(self.server("store", store_words(flags), flags)?);
                    let database = flags.keeping.database.display();
                    say(&format!("database {database}"))?;
                    if flags.keeping.database.as_os_str() != MEMORY {
                        let is_durable = flags.keeping.durable != Some(Switch::Off);
                        say(if is_durable { "durable on" } else { "durable off" })?;
                    }
                }
                PipelineStage::Api => {
                    let words = api_words(flags, next.as_ref());
                    next = Some(self.server("api", words, flags)?);
                }
                PipelineStage::Gateway => {
                    let to = next.clone().ok_or_else(|| {
                        Stop::usage("--stages: the next stage is missing: type gateway,api,store")
                    })?;
                    self.gateway(flags, &to)?;
                }
            }
        }
        Ok(())
    }

    /// Starts a process that listens, and returns its address; it keeps its port when it restarts.
    fn server(
        &mut self,
        name: &'static str,
        words: Vec<OsString>,
        flags: &PipelineFlags,
    ) -> Result<Endpoint, Stop> {
        let mut arguments: Vec<OsString> = vec!["serve".into(), spoken(name).into()];
        arguments.extend(words);
        if name != BROKER {
            arguments.extend(shared_words(flags, name));
        }
        let member = Member { name, arguments: arguments.clone(), environment: Vec::new() };
        let mut child = self.child(member)?;
        let endpoint = parse_listening(child.first_line())
            .map_err(|said| Stop::new(Exit::Target, format!("{name}: {said}")))?;
        let at = endpoint.address.map(|at| at.to_string()).unwrap_or_default();
        arguments.extend(["--listen".into(), at.into()]);
        child.set_arguments(arguments);
        announce(&child)?;
        self.children.push(child);
        Ok(endpoint)
    }

    fn gateway(&mut self, flags: &PipelineFlags, to: &Endpoint) -> Result<(), Stop> {
        let (url, environment) = match &flags.broker {
            Some(broker) => {
                say(&format!("broker {broker}"))?;
                broker_by_name(broker)
            }
            None => (self.server(BROKER, Vec::new(), flags)?.to_string(), Vec::new()),
        };
        let own = &flags.subscription;
        let mut arguments: Vec<OsString> = vec!["serve".into(), "gateway".into()];
        for (flag, value) in [
            ("--broker", Some(url)),
            ("--to", Some(to.to_string())),
            ("--filter", own.filter.clone()),
            ("--qos", own.qos.map(|qos| qos.to_string())),
            ("--client-id", own.client_id.clone()),
        ] {
            if let Some(value) = value {
                arguments.extend([flag.into(), value.into()]);
            }
        }
        arguments.extend(shared_words(flags, "gateway"));
        let child = self.child(Member { name: "gateway", arguments, environment })?;
        announce(&child)?;
        self.children.push(child);
        Ok(())
    }

    fn child(&self, member: Member) -> Result<Child, Stop> {
        let name = member.name;
        Child::start(&self.program, member, READY_WITHIN)
            .map_err(|error| Stop::new(Exit::Target, format!("{name}: {error}")))
    }

    /// Restarts processes that have died, or ends with them.
    fn replace_ended(&mut self, restart: Switch) -> Result<(), Stop> {
        for child in &mut self.children {
            let Some(ended) = child.ended() else { continue };
            let (name, pid) = (child.name(), child.pid());
            let died = format!("{name} (pid {pid}) ended with {ended}");
            if restart == Switch::Off {
                return Err(Stop::new(
                    Exit::Target,
                    format!("{died}\nhelp: read its messages above, or type --restart on"),
                ));
            }
            eprintln!("weigh serve pipeline: {died}; it is started again");
            child
                .start_again(&self.program, READY_WITHIN)
                .map_err(|error| Stop::new(Exit::Target, format!("{died}; {error}")))?;
            announce(child)?;
        }
        Ok(())
    }

    /// Ends all processes, the entry first, and returns the counts of each.
    fn finish(self) -> Map<String, Value> {
        let mut counts = Map::new();
        for child in self.children.into_iter().rev() {
            let name = child.name();
            let last = child.finish(END_WITHIN).and_then(|line| serde_json::from_str(&line).ok());
            counts.insert(name.to_owned(), last.unwrap_or(Value::Null));
        }
        counts
    }
}

/// Prints a line such as `api http://127.0.0.1:8080 pid 4711`.
fn announce(child: &Child) -> Result<(), Stop> {
    let said = child.first_line();
    let what =
        said.strip_prefix("listening on ").or(said.strip_prefix("forwarding ")).unwrap_or(said);
    say(&format!("{} {what} pid {}", child.name(), child.pid()))
}

/// Returns the name of a stage in `weigh serve`.
fn spoken(name: &str) -> &str {
    if name == BROKER { "mqtt" } else { name }
}

/// Returns the flags for batches and for the file of hops.
fn shared_words(flags: &PipelineFlags, name: &str) -> Vec<OsString> {
    let by = &flags.gathering;
    let linger = format!("{}ns", by.linger.as_nanos());
    let mut words: Vec<OsString> =
        vec!["--batch".into(), by.batch.to_string().into(), "--linger".into(), linger.into()];
    if let Some(folder) = &flags.hops {
        words.extend(["--hops".into(), hop_file(folder, name).into()]);
    }
    words
}

fn hop_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.hops"))
}

fn store_words(flags: &PipelineFlags) -> Vec<OsString> {
    let keeping = &flags.keeping;
    let mut words: Vec<OsString> = vec!["--database".into(), keeping.database.clone().into()];
    if let Some(durable) = keeping.durable {
        let durable = if durable == Switch::On { "on" } else { "off" };
        words.extend(["--durable".into(), durable.into()]);
    }
    if keeping.unique {
        words.push("--unique".into());
    }
    words.extend(["--keep".into(), keeping.keep.to_string().into()]);
    words
}

fn api_words(flags: &PipelineFlags, store: Option<&Endpoint>) -> Vec<OsString> {
    match store {
        Some(store) => vec!["--store".into(), store.to_string().into()],
        None => vec!["--keep".into(), flags.keeping.keep.to_string().into()],
    }
}

/// Returns the URL with the user, and the password in the environment, where other users cannot
/// read it.
fn broker_by_name(broker: &Endpoint) -> (String, Vec<(OsString, OsString)>) {
    let url = broker.to_string();
    let Some(who) = &broker.credentials else { return (url, Vec::new()) };
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    let user: String = who.user.bytes().map(escape).collect();
    let environment = match who.password.is_empty() {
        true => Vec::new(),
        false => vec![(PASSWORD.into(), who.password.clone().into())],
    };
    (url.replacen("://", &format!("://{user}@"), 1), environment)
}

const BROKER: &str = "broker";
const READY_WITHIN: Duration = Duration::from_secs(20);
const END_WITHIN: Duration = Duration::from_secs(10);
