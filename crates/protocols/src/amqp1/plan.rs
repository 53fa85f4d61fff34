//! Common settings of all clients of a trial, read once from its plan.

use weigh_model::protocol::{Invalid, Lifetime, Role, Seat};
use weigh_model::units::Nanos;
use weigh_model::{Pattern, Trial};

use super::codec::Header;
use super::nodes::{Nodes, check_length};

/// Everything about clients that does not differ between connections.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) login: Login,
    pub(super) hostname: Option<String>,
    pub(super) frame_max: u32,
    /// Silence after which the server is given up; 0 is never.
    pub(super) idle: Nanos,
    pub(super) nodes: Nodes,
    /// Links name the type of their node.
    pub(super) has_capabilities: bool,
    /// Producers settle their transfers, and hear nothing about them.
    pub(super) is_settled: bool,
    pub(super) is_durable: bool,
    pub(super) consuming: Consuming,
    pub(super) lifetime: Lifetime,
    /// False where connections are only held.
    pub(super) has_link: bool,
    /// Section `header` of every message.
    pub(super) header: Vec<u8>,
    tag: String,
}

/// How a client logs in.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    /// SASL PLAIN: its response.
    Plain(Vec<u8>),
    /// SASL ANONYMOUS.
    Anonymous,
    /// Without SASL.
    None,
}

/// Without the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Login::Plain(_) => "Plain",
            Login::Anonymous => "Anonymous",
            Login::None => "None",
        })
    }
}

/// How messages are consumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Consuming {
    pub(super) credit: u32,
    /// Deliveries after which the credit is renewed.
    pub(super) credit_every: u32,
    /// Deliveries per disposition.
    pub(super) settle_every: u32,
    /// The server settles deliveries.
    pub(super) is_settled: bool,
    /// The consumer asks, for this number of messages at most.
    pub(super) asks_for: Option<u32>,
}

impl Plan {
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        let is_durable = settings.flag("durable");
        let hostname = settings.text("hostname");
        check_length("amqp1.hostname", hostname)?;
        let mut header = Vec::new();
        Header { durable: is_durable, ..Header::default() }.put(&mut header);
        Ok(Plan {
            login: login(trial)?,
            hostname: (!hostname.is_empty()).then(|| hostname.to_owned()),
            frame_max: settings.integer("max_frame_size") as u32,
            idle: settings.duration("idle_timeout"),
            nodes: Nodes::read(trial)?,
            has_capabilities: settings.flag("capabilities"),
            is_settled: settings.text("transfers") == "settled",
            is_durable,
            consuming: consuming(trial)?,
            lifetime: Lifetime::of(load.pattern),
            has_link: load.pattern != Pattern::Hold,
            header,
            tag: trial.tag().to_string(),
        })
    }

    /// Name of the container and of the link of a client.
    pub(super) fn name(&self, seat: Seat) -> String {
        let role = if seat.role == Role::Producer { 'p' } else { 'c' };
        format!("weigh.{}.{role}{}", self.tag, seat.index)
    }
}

fn login(trial: &Trial) -> Result<Login, Invalid> {
    let credentials = trial.endpoint.as_ref().and_then(|endpoint| endpoint.credentials.as_ref());
    let (user, password) = match (trial.settings.text("sasl"), credentials) {
        ("none", _) => return Ok(Login::None),
        ("anonymous", _) | ("auto", None) => return Ok(Login::Anonymous),
        (_, Some(own)) => (&own.user, &own.password),
        (_, None) => {
            let problem = "SASL PLAIN without credentials";
            let fix = "type amqp1://USER@HOST and set WEIGH_PASSWORD, or leave amqp1.sasl out";
            return Err(Invalid::new("amqp1.sasl", problem, fix));
        }
    };
    check_length("the user", user)?;
    check_length("the password", password)?;
    // RFC 4616: an empty identity, the user, the password.
    Ok(Login::Plain([b"\0", user.as_bytes(), b"\0", password.as_bytes()].concat()))
}

fn consuming(trial: &Trial) -> Result<Consuming, Invalid> {
    let (settings, load) = (&trial.settings, &trial.load);
    let wrong = |key: &str, problem: String, fix: &str| {
        Err(Invalid::new(format!("amqp1.{key}"), problem, fix.to_owned()))
    };
    let credit = settings.integer("credit") as u32;
    let credit_every = match settings.integer("credit_every") as u32 {
        0 => credit.div_ceil(2),
        every => every,
    };
    if credit_every > credit {
        let problem = format!("{credit_every} deliveries never come while {credit} are allowed");
        return wrong("credit_every", problem, "make it at most amqp1.credit");
    }
    let settle_every = settings.integer("settle_every") as u32;
    let is_settled = settings.text("deliveries") == "settled";
    if is_settled && settle_every > 1 {
        let problem = "settled deliveries have no disposition".to_owned();
        return wrong("settle_every", problem, "leave it at 1, or type amqp1.deliveries=unsettled");
    }
    if load.pattern == Pattern::Poll && load.polling().is_some_and(|polling| polling.wait.0 > 0) {
        return Err(Invalid::new(
            "load.poll.wait",
            "a drained link does not wait for a message",
            "leave it out, or type --pattern deliver",
        ));
    }
    let asks_for = match load.pattern {
        // Counts of deliveries wrap, so that a credit is at most half of their range.
        Pattern::Poll => Some(load.polling().map_or(1, |polling| polling.limit.min(WINDOW))),
        _ => None,
    };
    Ok(Consuming { credit, credit_every, settle_every, is_settled, asks_for })
}

/// The one session of every connection.
pub(super) const CHANNEL: u16 = 0;

/// The one link of every session.
pub(super) const HANDLE: u32 = 0;

/// Window of a session, in transfers: as in Qpid Proton, which leaves flow control to the links.
pub(super) const WINDOW: u32 = i32::MAX as u32;
