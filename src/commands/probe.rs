//! `weigh probe`: finds out what a server supports; prints a table and writes data for plans.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use weigh_protocols::urls;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use weigh_engine::serving::Serving;
use weigh_model::endpoint::Credentials;
use weigh_model::layers::scheme as scheme_of;
use weigh_model::protocol::Host;
use weigh_model::trial::Settings;
use weigh_model::units::{parse_duration, parse_size};
use weigh_model::{Endpoint, Nanos, Protocol, quic};
use weigh_plan::world::REFERENCE;
use weigh_probe::abilities::{Abilities, Ability, SCHEMA};
use weigh_probe::{Bounds, Reach, Unusable};
use weigh_protocols as registry;
use weigh_runner::case::lanes::Given;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::preflight;
use weigh_runner::targets::{addresses, layers};
use weigh_testbed::catalogue::Catalogue;

use crate::commands::started::Started;
use crate::output_file;
use crate::planning::counts::counts;
use crate::show::output;

/// Flags of `weigh probe`.
#[derive(Args)]
pub struct Probe {
    /// URL, target or protocol to probe
    ///
    /// A URL (mqtt://HOST:PORT, http://HOST/PATH, h2c://..., h3://..., grpc://..., amqp://...,
    /// amqp1://..., nats://..., kafka://..., redis://..., websocket://HOST/PATH, sse://HOST/PATH,
    /// also with TLS, MQTT also with WebSocket or QUIC, coap://HOST/PATH) is a running server.
    /// A target (mosquitto, mosquitto@no-limits) is started for the probe. A protocol (mqtt, http,
    /// http2, http3, grpc, coap, amqp, amqp1, nats, kafka, redis, websocket, sse) means its
    /// reference server.
    #[arg(value_name = "URL|TARGET|PROTOCOL")]
    word: String,
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
    /// Write the abilities to a file for plans (target.abilities) and target files; JSON if its
    /// name ends so, else TOML
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Stop after this time; what was not asked by then is marked
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2m")]
    within: Nanos,
    /// Wait this long for a single answer
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    patience: Nanos,
    /// Largest payload or body to try
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "8MiB")]
    payload_to: u64,
    /// Longest topic and client ID to try, up to 65535B; some servers crash on very long ones
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "4KiB")]
    names_to: u64,
    /// Largest number of messages to fill a queue with
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20_000,
        value_parser = counts(1..=1_000_000_u64)
    )]
    queue_to: u64,
    /// User name; the password comes from WEIGH_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// PEM file of the CA that signed the server certificate [default: the system's CAs]
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Accept every certificate
    #[arg(long)]
    insecure: bool,
    /// Set a key of a reference server, such as mqtt.broker_maximum_qos=1
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Folder whose targets/*.toml replace built-in targets of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Confirm that you are authorised to load-test remote hosts
    #[arg(long)]
    i_may_load_this: bool,
}

/// The probed server, and the processes that run as long as it is probed.
struct Subject {
    /// Name: `mosquitto@defaults`, `reference`, or the URL.
    name: String,
    title: Option<String>,
    endpoint: Endpoint,
    running: Running,
}

/// A server that was started for the probe; it ends when this value is dropped.
enum Running {
    Reference { _serving: Serving },
    Managed(Box<Started>),
    Foreign,
}

impl Probe {
    /// Probes the server and prints the answers.
    ///
    /// # Errors
    /// If there is no server to probe.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let subject = self.subject(&catalogue)?;
        let (protocol, _) = urls::find(&subject.endpoint.scheme).ok_or_else(|| {
            Stop::usage(format!(
                "{}: unknown scheme\nhelp: type mqtt://, http://, h2c://, h3://, grpc://, \
                 amqp://, amqp1://, nats://, kafka://, redis://, websocket://, sse:// or coap://",
                self.word
            ))
        })?;
        let interrupt = Interrupt::await_one()?;
        let reach = self.reach(&subject.endpoint, &interrupt)?;
        let bounds = Bounds {
            payload_bytes: self.payload_to,
            name_bytes: self.names_to,
            queue_messages: self.queue_to,
        };
        let asked = weigh_probe::probe(&reach, bounds, &mut |ability: &Ability| {
            eprintln!("  {}: {}", ability.name, weigh_probe::short(ability));
        });
        let exit = interrupt.exit();
        let found = Abilities {
            schema: SCHEMA.to_owned(),
            target: subject.name,
            title: subject.title,
            protocol: protocol.name().to_owned(),
            probed_at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            weigh: env!("CARGO_PKG_VERSION").to_owned(),
            abilities: asked.map_err(|error| match exit {
                Exit::Done => stop(&error),
                exit => Stop::new(exit, "interrupted before the first question; run it again"),
            })?,
        };
        if let Running::Managed(started) = subject.running {
            started.stop();
        }
        if let Some(path) = &self.output {
            keep(&found, path)?;
        }
        match self.json {
            true => output::put_document(&found.to_json())?,
            false => output::put(&weigh_probe::table(&found))?,
        }
        match weigh_probe::gone(&found.abilities) {
            Some(text) if exit == Exit::Done => {
                Err(Stop::new(Exit::Target, format!("{}: {text}", subject.endpoint)))
            }
            _ => Ok(exit),
        }
    }

    /// Returns the server to probe, and starts it if needed.
    fn subject(&self, catalogue: &Catalogue) -> Result<Subject, Stop> {
        let is_url = self.word.contains("://");
        let of_urls = [
            ("--user", self.user.is_some()),
            ("--cacert", self.cacert.is_some()),
            ("--insecure", self.insecure),
        ];
        if let Some((flag, _)) = of_urls.iter().find(|(_, given)| *given && !is_url) {
            return Err(Stop::usage(format!(
                "{flag}: applies only to a server given by URL\nhelp: leave it out"
            )));
        }
        if is_url {
            return self.foreign();
        }
        if catalogue.knows(&self.word) {
            self.check_sets("choose the settings of a target by its profile: type NAME@PROFILE")?;
            let choice = catalogue.choose(&self.word).map_err(Stop::usage)?;
            let started = Started::start(choice)?;
            let server = started.server();
            let mut endpoint = server.endpoint().clone();
            // Where the target's file names a path, there is nothing at the root.
            let name = urls::find(&endpoint.scheme).map_or("", |(own, _)| own.name());
            let mut uses = choice.target.uses(choice.profile, name);
            if let Some((_, path)) = uses.find(|(key, _)| *key == "path") {
                endpoint.path = path.to_owned();
            }
            return Ok(Subject {
                name: format!("{}@{}", choice.target.name, choice.profile.name),
                title: Some(server.title().to_owned()),
                endpoint,
                running: Running::Managed(Box::new(started)),
            });
        }
        let protocol = registry::find(&self.word).map_err(|invalid| {
            let names: Vec<&str> =
                catalogue.targets().iter().map(|target| target.name.as_str()).collect();
            Stop::usage(format!(
                "unknown target {:?}\nhelp: type a URL, one of {}, or a protocol ({})",
                self.word,
                names.join(", "),
                invalid.fix
            ))
        })?;
        self.reference(protocol)
    }

    fn check_sets(&self, fix: &str) -> Result<(), Stop> {
        match self.sets.is_empty() {
            true => Ok(()),
            false => {
                Err(Stop::usage(format!("--set: applies only to reference servers\nhelp: {fix}")))
            }
        }
    }

    fn foreign(&self) -> Result<Subject, Stop> {
        self.check_sets("leave it out")?;
        let mut endpoint = urls::endpoint(&self.word).map_err(Stop::usage)?;
        let unknown =
            |why| Stop::new(Exit::Target, format!("{endpoint}: {why}\nhelp: check its name"));
        let beyond = preflight::beyond(&endpoint.host).map_err(unknown)?;
        if let Some(beyond) = beyond.filter(|_| !self.i_may_load_this) {
            return Err(Stop::usage(format!(
                "{endpoint}: the host is not this machine{beyond}, and a probe fills queues and \
                 tries limits\nhelp: add --i-may-load-this if you are authorised"
            )));
        }
        if !urls::is_secure(&endpoint) && (self.cacert.is_some() || self.insecure) {
            let flag = if self.insecure { "--insecure" } else { "--cacert" };
            return Err(Stop::usage(format!(
                "{flag}: {endpoint} does not use TLS\nhelp: leave it out"
            )));
        }
        if let Some(user) = &self.user {
            let password = std::env::var("WEIGH_PASSWORD").unwrap_or_default();
            endpoint.credentials = Some(Credentials { user: user.clone(), password });
        }
        let name = endpoint.to_string();
        Ok(Subject { name, title: None, endpoint, running: Running::Foreign })
    }

    /// Starts the reference server of a protocol in a thread of this process: nothing is measured
    /// here.
    fn reference(&self, protocol: &'static dyn Protocol) -> Result<Subject, Stop> {
        let given = Given::parse(&self.sets)?;
        if let Some(other) = given.others(protocol) {
            let name = protocol.name();
            return Err(Stop::usage(format!("{other}: not a key of {name}\nhelp: leave it out")));
        }
        let mut settings = Settings::new(protocol.name(), protocol.settings(), given.of(protocol))?;
        let is_in_quic = quic::is_on(protocol, &settings);
        let mut host = protocol.host(&settings)?;
        if is_in_quic {
            settings.0.insert("tls".to_owned(), "on".to_owned());
            host = in_quic(host, protocol, &settings)?;
        }
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let serving =
            Serving::start(&host, here, 1).map_err(|error| Stop::new(Exit::Target, error))?;
        let scheme = match is_in_quic {
            true => scheme_of(protocol, &settings),
            false => protocol.scheme(),
        };
        let mut endpoint = Endpoint::at(scheme, serving.address());
        // Where a path says what confirms a message, it is the one of these settings.
        endpoint.path = settings.text("path").replace("{confirm}", settings.text("confirm"));
        endpoint.credentials = credentials(&settings);
        Ok(Subject {
            name: REFERENCE.to_owned(),
            title: Some(format!("Weighbridge {}", env!("CARGO_PKG_VERSION"))),
            endpoint,
            running: Running::Reference { _serving: serving },
        })
    }

    fn reach(&self, endpoint: &Endpoint, interrupt: &Interrupt) -> Result<Reach, Stop> {
        Ok(Reach {
            endpoint: endpoint.clone(),
            address: addresses::resolve(endpoint)?,
            #[cfg(feature = "tls")]
            tls: urls::is_secure(endpoint).then(|| self.tls(endpoint)),
            patience: Duration::from_nanos(self.patience.0),
            end: Instant::now() + Duration::from_nanos(self.within.0),
            stop: Arc::clone(&interrupt.came),
        })
    }

    #[cfg(feature = "tls")]
    fn tls(&self, endpoint: &Endpoint) -> weigh_engine::layer::tls::ClientChoice {
        use weigh_engine::layer::tls::{ClientChoice, Versions};
        ClientChoice {
            versions: Versions::Both,
            authority: self.cacert.clone(),
            identity: None,
            name: endpoint.host.clone(),
            alpn: Vec::new(),
            resumes: false,
            // Of a server that was started here with a certificate of its own there is no CA.
            verifies: !self.insecure && self.word.contains("://"),
        }
    }
}

/// What a reference server of these settings asks its clients for.
fn credentials(settings: &Settings) -> Option<Credentials> {
    ["broker", "server"].into_iter().find_map(|role| {
        let own = |what: &str| settings.text(&format!("{role}_{what}")).to_owned();
        let (user, password, token) = (own("user"), own("password"), own("token"));
        if !token.is_empty() {
            return Some(Credentials { user: token, password });
        }
        let is_whole = !user.is_empty() && (role == "broker" || !password.is_empty());
        is_whole.then_some(Credentials { user, password })
    })
}

/// Puts a reference server inside QUIC, with a certificate that nothing keeps.
fn in_quic(host: Host, protocol: &dyn Protocol, settings: &Settings) -> Result<Host, Stop> {
    let folder = std::env::temp_dir().join(format!("weigh-probe-{}", std::process::id()));
    let host = layers::host(host, &protocol.properties(), settings, Some(&folder));
    let _ = std::fs::remove_dir_all(&folder);
    host
}

/// Ends the probe on a signal, after it has removed what it left on the server.
struct Interrupt {
    came: Arc<AtomicBool>,
    /// Number of the signal.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    fn await_one() -> Result<Interrupt, Stop> {
        let own = Interrupt { came: Arc::default(), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&own.came))?;
            flag::register_usize(signal, Arc::clone(&own.signal), signal as usize)?;
        }
        Ok(own)
    }

    /// Returns the exit code of the signal.
    fn exit(&self) -> Exit {
        match self.signal.load(Ordering::Relaxed) {
            0 => Exit::Done,
            signal if signal == SIGTERM as usize => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }
}

/// Writes the abilities to a file.
fn keep(found: &Abilities, path: &Path) -> Result<(), Stop> {
    let name = path.display().to_string();
    output_file::write(path, found.write(&name)).map_err(|error| {
        Stop::new(
            Exit::Record,
            format!("{name}: cannot be written: {error}\nhelp: name another file"),
        )
    })
}

fn stop(error: &Unusable) -> Stop {
    let exit = match error {
        Unusable::NoQuestions(_) => Exit::Usage,
        _ => Exit::Target,
    };
    Stop::new(exit, error)
}
