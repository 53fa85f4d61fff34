//! Probes a broker of AMQP 1.0: what it announces in SASL and `open`, and what its links grant.
//! Parts and sections are those of the OASIS standard. What a disposition means for the disk cannot
//! be asked for.

use weigh_protocols::amqp1::codec::{
    AMQP_HEADER, Attach, Begin, Detach, Flow, Frame, Offers, Open, Outcome, Performative, Problem,
    Role, SASL_HEADER, Sasl, Terminus, read_frame,
};

use crate::abilities::{Ability, How, Status};
use crate::exchange::Exchange;
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};

/// Asks everything.
///
/// # Errors
/// If it is not a broker of AMQP 1.0, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    _bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene {
        reach: reach.clone(),
        greeting: Greeting::default(),
        granted: None,
        found: Vec::new(),
    };
    scene.greeting = Session::open(reach, true)?.greeting;
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("product", product),
    question("sasl", sasl),
    question("without_sasl", without_sasl),
    question("frame_bytes", frame_bytes),
    question("channels", channels),
    question("idle_time_out", idle_time_out),
    question("capabilities", capabilities),
    question("session_window", session_window),
    question("links", links),
    question("link_credit", link_credit),
    question("message_bytes", message_bytes),
    question("settled_second", settled_second),
    question("anonymous_target", anonymous_target),
    question("dynamic_node", dynamic_node),
];

/// A broker that is asked.
struct Scene {
    reach: Reach,
    greeting: Greeting,
    /// What a link to a node of a new name was granted, once it was asked for.
    granted: Option<Result<Granted, Trouble>>,
    found: Vec<Ability>,
}

/// What a broker says until a session stands.
#[derive(Clone, Debug, Default)]
struct Greeting {
    mechanisms: String,
    product: String,
    capabilities: String,
    frame_bytes: u32,
    channel_max: u16,
    idle_ms: Option<u32>,
    window: u32,
    handle_max: u32,
}

/// What a link is granted.
#[derive(Clone, Debug, Default)]
struct Granted {
    /// Address of the node at the broker's end.
    address: Option<String>,
    settle_mode: u8,
    message_bytes: Option<u64>,
    credit: Option<u32>,
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

/// A session.
struct Session {
    line: Exchange,
    greeting: Greeting,
}

impl Session {
    /// Opens a connection and begins a session.
    fn open(reach: &Reach, has_sasl: bool) -> Result<Session, Trouble> {
        let mut line = Exchange::open(reach)?;
        let mut greeting = Greeting::default();
        if has_sasl {
            greeting.mechanisms = log_in(reach, &mut line)?;
        }
        let mut begin = AMQP_HEADER.to_vec();
        let open = Open {
            container_id: &format!("weigh-probe-{}", unused_name()),
            hostname: None,
            max_frame_size: u32::MAX,
            channel_max: u16::MAX,
            idle_time_out_ms: None,
        };
        Performative::Open(open).put(0, &mut begin);
        let session = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle_max: u32::MAX,
        };
        Performative::Begin(session).put(0, &mut begin);
        line.send(&begin)?;
        header(&mut line, AMQP_HEADER)?;
        line.hear(|input| frame(input, |frame, own| greeting.take(frame, own)))?;
        line.hear(|input| frame(input, |frame, own| greeting.take(frame, own)))?;
        Ok(Session { line, greeting })
    }

    /// Attaches a link; returns what it is granted.
    fn attach(&mut self, attach: Attach<'_>) -> Result<Granted, Trouble> {
        let mut request = Vec::new();
        let is_sender = attach.role == Role::Sender;
        Performative::Attach(attach).put(0, &mut request);
        self.line.send(&request)?;
        let (mut granted, mut is_attached) = (Granted::default(), false);
        // A refused link is attached without its node, and then detached (part 2, section 2.6.3).
        loop {
            let is_all = self.line.hear(|input| {
                frame(input, |_, own| match own {
                    Performative::Attach(own) => {
                        let node = if is_sender { own.target } else { own.source };
                        granted.address = node.and_then(|node| node.address).map(str::to_owned);
                        granted.settle_mode = own.rcv_settle_mode;
                        granted.message_bytes = own.max_message_size.filter(|size| *size > 0);
                        is_attached = node.is_some();
                        Ok(!is_sender && node.is_some())
                    }
                    Performative::Flow(Flow { link_credit: Some(credit), .. }) => {
                        granted.credit = Some(credit);
                        Ok(true)
                    }
                    own => passed_over(own).map(|()| false),
                })
            });
            match is_all {
                Ok(false) => {}
                // It attached the link and gives no credit.
                Ok(true) => break,
                Err(Trouble::Silent(_)) if is_attached => break,
                Err(trouble) => return Err(trouble),
            }
        }
        let mut request = Vec::new();
        let detach = Detach { handle: HANDLE, closed: true, error: None };
        Performative::Detach(detach).put(0, &mut request);
        Performative::Close(None).put(0, &mut request);
        let _ = self.line.send(&request);
        Ok(granted)
    }
}

impl Greeting {
    fn take(&mut self, frame: &Frame<'_>, own: Performative<'_>) -> Result<(), Trouble> {
        match own {
            Performative::Open(open) => {
                let offers = Offers::read(frame.body).unwrap_or_default();
                let words = [offers.product, offers.version].into_iter().flatten();
                self.product = words.collect::<Vec<_>>().join(" ");
                let names = offers.capabilities.iter();
                self.capabilities = names.collect::<Vec<_>>().join(", ");
                self.frame_bytes = open.max_frame_size;
                self.channel_max = open.channel_max;
                self.idle_ms = open.idle_time_out_ms.filter(|time| *time > 0);
                Ok(())
            }
            Performative::Begin(begin) => {
                self.window = begin.incoming_window;
                self.handle_max = begin.handle_max;
                Ok(())
            }
            other => passed_over(other),
        }
    }
}

/// SASL with the user of the URL, or as ANONYMOUS; returns the mechanisms that are offered.
fn log_in(reach: &Reach, line: &mut Exchange) -> Result<String, Trouble> {
    line.send(&SASL_HEADER)?;
    header(line, SASL_HEADER)?;
    let offered = line.hear(|input| {
        sasl_frame(input, |own| match own {
            Sasl::Mechanisms(all) => Ok(all.iter().map(str::to_owned).collect::<Vec<_>>()),
            other => Err(unexpected(other.name())),
        })
    })?;
    let plain = reach.endpoint.credentials.as_ref().map(|own| {
        let response = format!("\0{}\0{}", own.user, own.password);
        ("PLAIN", response.into_bytes())
    });
    let (mechanism, response) = plain.unwrap_or_else(|| ("ANONYMOUS", b"weigh".to_vec()));
    if !offered.iter().any(|own| own == mechanism) {
        let offered = offered.join(", ");
        return Err(Trouble::Refused(format!("it offers {offered}, and not {mechanism}")));
    }
    let mut init = Vec::new();
    Sasl::Init { mechanism, response: Some(&response), hostname: None }.put(&mut init);
    let code = line.ask(&init, |input| {
        sasl_frame(input, |own| match own {
            Sasl::Outcome(code) => Ok(code),
            other => Err(unexpected(other.name())),
        })
    })?;
    match code {
        Outcome::OK => Ok(offered.join(", ")),
        code => Err(Trouble::Refused(format!("sasl-outcome {code} for {mechanism}"))),
    }
}

fn header(line: &mut Exchange, due: [u8; 8]) -> Result<(), Trouble> {
    line.hear(|input| {
        let seen = &input[..input.len().min(due.len())];
        match (due.starts_with(seen), seen.len() == due.len()) {
            (true, true) => Ok(Some(((), due.len()))),
            (true, false) => Ok(None),
            (false, _) => {
                let start = input[..input.len().min(24)].escape_ascii();
                Err(Trouble::Foreign(format!("it begins with \"{start}\"")))
            }
        }
    })
}

/// Reads a frame with a performative.
fn frame<T>(
    input: &[u8],
    mut take: impl FnMut(&Frame<'_>, Performative<'_>) -> Result<T, Trouble>,
) -> Result<Option<(T, usize)>, Trouble> {
    let mut taken = 0;
    loop {
        let rest = &input[taken..];
        let read = read_frame(rest, FRAME_BYTES_MAX).map_err(|flaw| foreign(&flaw))?;
        let Some((frame, bytes)) = read else { return Ok(None) };
        taken += bytes;
        // A sign of life.
        if frame.body.is_empty() {
            continue;
        }
        let (own, _) = Performative::read(frame.body).map_err(|flaw| foreign(&flaw))?;
        return Ok(Some((take(&frame, own)?, taken)));
    }
}

fn sasl_frame<T>(
    input: &[u8],
    mut take: impl FnMut(Sasl<'_>) -> Result<T, Trouble>,
) -> Result<Option<(T, usize)>, Trouble> {
    let read = read_frame(input, FRAME_BYTES_MAX).map_err(|flaw| foreign(&flaw))?;
    let Some((frame, bytes)) = read else { return Ok(None) };
    let own = Sasl::read(frame.body).map_err(|flaw| foreign(&flaw))?;
    Ok(Some((take(own)?, bytes)))
}

/// A performative that is not waited for; one that ends something is a refusal.
fn passed_over(own: Performative<'_>) -> Result<(), Trouble> {
    let problem = match own {
        Performative::Detach(own) => own.error,
        Performative::End(problem) | Performative::Close(problem) => problem,
        _ => return Ok(()),
    };
    let words = |own: Problem<'_>| match own.description {
        Some(text) => format!("{}: {text}", own.condition),
        None => own.condition.to_owned(),
    };
    let text = problem.map_or_else(|| format!("it answers {}", own.name()), words);
    Err(Trouble::Refused(text))
}

fn product(scene: &mut Scene) -> Result<Found, Trouble> {
    let product = scene.greeting.product.clone();
    Ok(match product.is_empty() {
        true => Found::flag(false, "open has no product").by(How::Announced),
        false => Found::words(product, "product and version of open").by(How::Announced),
    })
}

fn sasl(scene: &mut Scene) -> Result<Found, Trouble> {
    let evidence = "sasl-mechanisms lists them";
    Ok(Found::words(scene.greeting.mechanisms.clone(), evidence).by(How::Announced))
}

/// Tests whether a connection without SASL is accepted.
fn without_sasl(scene: &mut Scene) -> Result<Found, Trouble> {
    Ok(match Session::open(&scene.reach, false) {
        Ok(_) => Found::flag(true, "a session stood without SASL"),
        Err(trouble @ (Trouble::Foreign(_) | Trouble::Refused(_) | Trouble::Closed(_))) => {
            Found::flag(false, trouble.to_string()).with(Status::Refused)
        }
        Err(trouble) => return Err(trouble),
    })
}

fn frame_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let most = scene.greeting.frame_bytes;
    Ok(announced(u64::from(most), u32::MAX.into(), "bytes", "max-frame-size of open"))
}

fn channels(scene: &mut Scene) -> Result<Found, Trouble> {
    let many = u64::from(scene.greeting.channel_max) + 1;
    Ok(Found::number(many, "channels", How::Announced, "channel-max of open, and channel 0"))
}

fn idle_time_out(scene: &mut Scene) -> Result<Found, Trouble> {
    let evidence = "idle-time-out of open";
    Ok(match scene.greeting.idle_ms {
        Some(time) => Found::number(time.into(), "ms", How::Announced, evidence),
        None => Found::words("no limit", format!("{evidence} is missing")).by(How::Announced),
    })
}

fn capabilities(scene: &mut Scene) -> Result<Found, Trouble> {
    let names = scene.greeting.capabilities.clone();
    Ok(match names.is_empty() {
        true => Found::flag(false, "open offers none").by(How::Announced),
        false => Found::words(names, "offered-capabilities of open").by(How::Announced),
    })
}

fn session_window(scene: &mut Scene) -> Result<Found, Trouble> {
    let window = scene.greeting.window.into();
    Ok(Found::number(window, "transfers", How::Announced, "incoming-window of begin"))
}

fn links(scene: &mut Scene) -> Result<Found, Trouble> {
    let many = u64::from(scene.greeting.handle_max) + 1;
    let evidence = "handle-max of begin, and handle 0";
    Ok(announced(many, u64::from(u32::MAX) + 1, "links", evidence))
}

fn announced(number: u64, limit: u64, unit: &'static str, evidence: &str) -> Found {
    match number >= limit {
        true => Found::words("no limit", format!("{evidence}: {number}")).by(How::Announced),
        false => Found::number(number, unit, How::Announced, evidence),
    }
}

impl Scene {
    /// What a sender is granted at a node of a new name.
    fn sender(&mut self) -> Result<Granted, Trouble> {
        if self.granted.is_none() {
            let address = format!("weigh-probe-{}", unused_name());
            let node = Terminus { address: Some(&address), ..Terminus::default() };
            self.granted = Some(self.attached(Role::Sender, node, FIRST));
        }
        self.granted.clone().unwrap_or_else(|| Ok(Granted::default()))
    }

    /// Attaches a link on a connection of its own.
    fn attached(
        &self,
        role: Role,
        node: Terminus<'_>,
        rcv_settle_mode: u8,
    ) -> Result<Granted, Trouble> {
        let (source, target) = match role {
            Role::Sender => (Terminus::default(), node),
            Role::Receiver => (node, Terminus::default()),
        };
        let name = format!("weigh-probe-{}", unused_name());
        Session::open(&self.reach, true)?.attach(Attach {
            name: &name,
            handle: HANDLE,
            role,
            snd_settle_mode: UNSETTLED,
            rcv_settle_mode,
            source: Some(source),
            target: Some(target),
            initial_delivery_count: (role == Role::Sender).then_some(0),
            max_message_size: None,
        })
    }
}

fn link_credit(scene: &mut Scene) -> Result<Found, Trouble> {
    Ok(match scene.sender()?.credit {
        Some(credit) => {
            let evidence = "link-credit of the first flow to a sender";
            Found::number(credit.into(), "messages", How::Announced, evidence)
        }
        None => Found::flag(false, "a link was attached, and no flow came").with(Status::NoAnswer),
    })
}

fn message_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let evidence = "max-message-size of attach";
    Ok(match scene.sender()?.message_bytes {
        Some(bytes) => announced(bytes, u64::MAX >> 1, "bytes", evidence),
        None => Found::words("no limit", format!("{evidence} is missing or 0")).by(How::Announced),
    })
}

/// Tests whether a broker settles after the sender (exactly once; part 2, section 2.6.12).
fn settled_second(scene: &mut Scene) -> Result<Found, Trouble> {
    let address = format!("weigh-probe-{}", unused_name());
    let node = Terminus { address: Some(&address), ..Terminus::default() };
    let mode = scene.attached(Role::Sender, node, SECOND)?.settle_mode;
    let evidence = format!("rcv-settle-mode second was asked for, and {mode} granted");
    Ok(Found::flag(mode == SECOND, evidence))
}

/// Tests whether each message may name its own address (the extension ANONYMOUS-RELAY).
fn anonymous_target(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.attached(Role::Sender, Terminus::default(), FIRST)?;
    Ok(Found::flag(true, "a sender without an address was attached"))
}

/// Tests whether the broker makes a node with a name of its own (part 3, section 3.5.3).
fn dynamic_node(scene: &mut Scene) -> Result<Found, Trouble> {
    let node = Terminus { dynamic: true, ..Terminus::default() };
    let granted = scene.attached(Role::Receiver, node, FIRST)?;
    Ok(match granted.address {
        Some(address) => Found::flag(true, format!("it made {address}")),
        None => Found::flag(false, "a receiver was attached, and its node has no address"),
    })
}

fn unexpected(what: &str) -> Trouble {
    Trouble::Foreign(format!("{what} at a wrong time"))
}

fn foreign(flaw: &impl std::fmt::Display) -> Trouble {
    Trouble::Foreign(flaw.to_string())
}

/// The only link of a session.
const HANDLE: u32 = 0;

const UNSETTLED: u8 = 0;

/// Modes of settlement by the receiver (part 2, section 2.8.3).
const FIRST: u8 = 0;
const SECOND: u8 = 1;

const WINDOW: u32 = 1_000;

const FRAME_BYTES_MAX: u32 = 1 << 20;
