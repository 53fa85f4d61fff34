//! Common settings of all clients of a trial, read once from its plan.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use weigh_model::load::Polling;
use weigh_model::protocol::{Invalid, Role};
use weigh_model::units::Nanos;
use weigh_model::{Pattern, Topology, Trial, tls};

use super::api::{ConsumerConfig, CreateConsumer, Next, StreamConfig};
use super::codec::info::Connect;
use super::codec::{self, PAYLOAD_BYTES_MAX};
use super::names::{self, Template};
use super::settings::{self, Confirm, Consume};

/// Everything about clients that does not differ between connections.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) confirm: Confirm,
    pub(super) consume: Consume,
    /// Each message is a request, which the connection's own responder answers.
    pub(super) is_answered_by_itself: bool,
    pub(super) sends_ids: bool,
    pub(super) acknowledges: bool,
    pub(super) keep_alive: Nanos,
    pub(super) is_secure: bool,
    /// Messages of one request of a pull consumer.
    pub(super) pull_batch: u64,
    pub(super) polling: Option<Polling>,
    pub(super) tag: u16,
    pub(super) stream: Stream,
    subject: Template,
    /// Empty where every consumer gets everything.
    queue: String,
    topology: Topology,
    /// CONNECT of producers and of consumers.
    connects: [Vec<u8>; 2],
    connections: AtomicU32,
}

/// The stream of a trial.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) name: String,
    /// Request that creates it.
    pub(super) create: Vec<u8>,
    max_ack_pending: i64,
    ack_wait: Nanos,
    is_made: AtomicBool,
}

impl Plan {
    /// # Errors
    /// A trial that NATS cannot do.
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let settings = &trial.settings;
        let load = &trial.load;
        let confirm = settings::confirm(settings);
        let polls = load.pattern == Pattern::Poll;
        let consume = settings::consume(settings, polls);
        let subject = Template::new(settings.text("subject"), trial.tag());
        let is_answered_by_itself =
            load.pattern == Pattern::Request && confirm != Confirm::JetStream;
        let plan = Plan {
            confirm,
            consume,
            is_answered_by_itself,
            sends_ids: settings.flag("message_id"),
            acknowledges: settings.text("ack") != "none",
            keep_alive: settings.duration("keep_alive"),
            is_secure: tls::is_on(settings),
            pull_batch: settings.integer("pull_batch").max(1),
            polling: load.polling(),
            tag: trial.tag(),
            stream: Stream::read(trial, &subject)?,
            subject,
            queue: queue(trial)?,
            topology: load.topology,
            connects: [confirm == Confirm::Okay, false].map(|verbose| connect(trial, verbose)),
            connections: AtomicU32::new(0),
        };
        plan.check(trial)?;
        Ok(plan)
    }

    fn check(&self, trial: &Trial) -> Result<(), Invalid> {
        let load = &trial.load;
        self.subject.check("nats.subject")?;
        names::check_stream("nats.stream", &self.stream.name)?;
        if !self.queue.is_empty() && !codec::subject::is_literal(self.queue.as_bytes()) {
            let problem = format!("{:?} cannot name a queue group", self.queue);
            return Err(Invalid::new("nats.queue", problem, "type a word without spaces"));
        }
        if load.pattern == Pattern::Poll && self.consume != Consume::Pull {
            return Err(Invalid::new(
                "nats.consume",
                "only a pull consumer of JetStream can be polled",
                "leave nats.consume at auto, or type --pattern deliver",
            ));
        }
        if load.pattern == Pattern::Request
            && matches!(self.confirm, Confirm::Okay | Confirm::Flush)
        {
            return Err(Invalid::new(
                "nats.confirm",
                "a request is answered by its responder, so that nothing else confirms it",
                "leave nats.confirm at none or jetstream, or type --pattern publish",
            ));
        }
        if self.topology == Topology::Pairs && load.delivers() && !self.subject.has_client() {
            return Err(Invalid::new(
                "nats.subject",
                "pairs need a subject for each producer",
                "put {client} into it",
            ));
        }
        if self.sends_ids && self.confirm != Confirm::JetStream {
            return Err(Invalid::new(
                "nats.message_id",
                "only JetStream finds duplicates",
                "set nats.confirm to jetstream, or remove it",
            ));
        }
        if let Some(size) = load.size.filter(|size| size.0 > PAYLOAD_BYTES_MAX) {
            return Err(Invalid::new(
                "load.size",
                format!("{size} is more than any NATS server allows (max_payload)"),
                format!("type at most {PAYLOAD_BYTES_MAX}B"),
            ));
        }
        Ok(())
    }

    /// The first line of a client.
    pub(super) fn connect(&self, role: Role) -> &[u8] {
        match role {
            Role::Producer => &self.connects[0],
            Role::Consumer => &self.connects[1],
        }
    }

    /// Number of a connection; each has an inbox of its own.
    pub(super) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }

    /// Subject of producer `index`.
    pub(super) fn subject(&self, index: u32) -> String {
        self.subject.of(index)
    }

    /// The token of a subject that is the producer's index.
    pub(super) fn client_token(&self) -> Option<usize> {
        self.subject.client_token()
    }

    /// What consumer `index` subscribes to, and its queue group.
    pub(super) fn interest(&self, index: u32) -> (String, &str) {
        let subject = match self.topology {
            Topology::Pairs => self.subject.of(index),
            _ => self.subject.of_all(),
        };
        (subject, &self.queue)
    }

    /// Name of the consumer of JetStream at a seat: one for a whole queue group.
    pub(super) fn consumer(&self, index: u32) -> String {
        match self.queue.is_empty() {
            true => format!("weigh-c{index}"),
            false => format!("weigh-{}", self.queue),
        }
    }

    /// Request that creates the consumer of JetStream at a seat.
    pub(super) fn create_consumer(&self, index: u32) -> Vec<u8> {
        let name = self.consumer(index);
        let is_push = self.consume == Consume::Push;
        let (filter_subject, queue) = self.interest(index);
        let mut config = ConsumerConfig {
            durable_name: name.clone(),
            filter_subject,
            max_deliver: -1,
            ..ConsumerConfig::default()
        };
        if self.acknowledges {
            config.ack_policy = "explicit".to_owned();
            config.ack_wait = self.stream.ack_wait.0;
            config.max_ack_pending = self.stream.max_ack_pending;
        }
        if is_push {
            config.deliver_subject = names::deliver_subject(self.tag, &name);
            config.deliver_group = queue.to_owned();
        }
        let request = CreateConsumer { stream_name: self.stream.name.clone(), config };
        serde_json::to_vec(&request).unwrap_or_default()
    }

    /// A consumer's request for messages.
    pub(super) fn next(&self, batch: u64) -> Vec<u8> {
        let next = match self.polling {
            // One shot: what is there, and if nothing is, the first that comes.
            Some(polling) => Next { batch, expires: polling.wait.0, no_wait: true },
            None => Next { batch, expires: PULL_EXPIRES_NS, no_wait: false },
        };
        serde_json::to_vec(&next).unwrap_or_default()
    }
}

impl Stream {
    fn read(trial: &Trial, subject: &Template) -> Result<Stream, Invalid> {
        let settings = &trial.settings;
        let name = Template::new(settings.text("stream"), trial.tag());
        if name.has_client() {
            return Err(Invalid::new(
                "nats.stream",
                "cannot contain {client}: all producers have one stream",
                "remove it",
            ));
        }
        let name = name.of_all();
        let config = StreamConfig {
            name: name.clone(),
            subjects: vec![subject.of_all()],
            max_msgs: settings.integer("stream_messages_max").max(1) as i64,
            storage: settings.text("storage").to_owned(),
            duplicate_window: settings.duration("duplicate_window").0,
            ..StreamConfig::default()
        };
        Ok(Stream {
            name,
            create: serde_json::to_vec(&config).unwrap_or_default(),
            max_ack_pending: settings.integer("max_ack_pending").max(1) as i64,
            ack_wait: settings.duration("ack_wait"),
            is_made: AtomicBool::new(false),
        })
    }

    /// True once a client of this process has seen that it is there: the others do not ask again,
    /// as a client of an application would not.
    pub(super) fn is_made(&self) -> bool {
        self.is_made.load(Ordering::Relaxed)
    }

    pub(super) fn note_made(&self) {
        self.is_made.store(true, Ordering::Relaxed);
    }
}

/// The queue group; empty where every consumer gets everything.
fn queue(trial: &Trial) -> Result<String, Invalid> {
    match (trial.load.topology, trial.settings.text("queue")) {
        (Topology::Shared, "") => Ok("weigh".to_owned()),
        (Topology::Shared, queue) => Ok(queue.to_owned()),
        (_, "") => Ok(String::new()),
        (_, _) => Err(Invalid::new(
            "nats.queue",
            "names a group, which this topology does not have",
            "type --topology shared, or remove the group",
        )),
    }
}

/// The line CONNECT. A user without a password is a token, as in the URLs of other clients.
fn connect(trial: &Trial, verbose: bool) -> Vec<u8> {
    let credentials = trial.endpoint.as_ref().and_then(|endpoint| endpoint.credentials.as_ref());
    let mut connect = Connect {
        verbose,
        pedantic: false,
        tls_required: tls::is_on(&trial.settings),
        name: "weigh".to_owned(),
        lang: "rust".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        protocol: 1,
        headers: true,
        no_responders: true,
        ..Connect::default()
    };
    match credentials {
        Some(given) if given.password.is_empty() => connect.auth_token = Some(given.user.clone()),
        Some(given) => {
            connect.user = Some(given.user.clone());
            connect.pass = Some(given.password.clone());
        }
        None => {}
    }
    let mut line = Vec::new();
    codec::put_line(&mut line, "CONNECT", &serde_json::to_vec(&connect).unwrap_or_default());
    line
}

/// Life of a request of a pull consumer that runs on.
const PULL_EXPIRES_NS: u64 = 30_000_000_000;
