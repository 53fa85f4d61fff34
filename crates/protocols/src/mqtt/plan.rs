//! Common settings of all clients of a trial, read once from its plan.

use std::sync::atomic::{AtomicU32, Ordering};

use weigh_model::numbers::count;
use weigh_model::protocol::{Invalid, Role, Seat};
use weigh_model::{Pattern, Topology, Trial};

use super::codec::{Id, Properties, Publish, Qos, REMAINING_MAX, Section, Version};
use super::settings;
use super::topic::{self, IndexPlace, NUMBER, Names, Template};
use crate::name_pattern::{self, NamePattern};

/// Everything about clients that does not differ between connections.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) version: Version,
    pub(super) qos: Qos,
    pub(super) session: SessionPlan,
    pub(super) uses_aliases: bool,
    /// Every message has a topic of its own.
    pub(super) numbers_topics: bool,
    /// Messages are sent and taken in pieces.
    pub(super) in_pieces: bool,
    pub(super) retain: bool,
    /// False where connections are only held.
    pub(super) publishes: bool,
    pub(super) will_body: String,
    pub(super) user: Option<String>,
    /// Empty is none; never there without a user.
    pub(super) password: String,
    /// Properties of every PUBLISH.
    pub(super) properties: Section,
    /// Properties of a PUBLISH with the topic alias 1.
    pub(super) aliased_properties: Section,
    templates: Templates,
    share: String,
    topology: Topology,
    tag: u16,
    /// True if every connection needs an identifier of its own, because a seat's next
    /// connection may stand before its last one is gone.
    distinguishes_connections: bool,
    connections: AtomicU32,
}

/// Terms that every CONNECT requests.
#[derive(Debug)]
pub(super) struct SessionPlan {
    pub(super) clean: bool,
    pub(super) keep_alive_s: u16,
    pub(super) expiry_s: u32,
    pub(super) receive_maximum: u16,
    /// Messages in flight to a server that announces nothing.
    pub(super) window: u16,
    /// 0 means no limit.
    pub(super) maximum_packet_size: u32,
}

/// Names with placeholders for producer, connection and message.
#[derive(Debug)]
struct Templates {
    client_id: Template,
    topic: Template,
    will_topic: Option<Template>,
    filter: Option<Template>,
}

impl Plan {
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let settings = &trial.settings;
        let version = settings::version(settings);
        let template = |key: &str| {
            Template::parse(settings.text(key)).map_err(|error| {
                Invalid::new(
                    format!("mqtt.{key}"),
                    error,
                    "type {client} (%i), {seq} (%s), %c, %u, %t, %r, or %% for a percent sign",
                )
            })
        };
        let optional = |key: &str| match settings.text(key) {
            "" => Ok(None),
            _ => template(key).map(Some),
        };
        let credentials = trial.endpoint.as_ref().and_then(|endpoint| endpoint.credentials.clone());
        let properties = publish_properties(trial)?;
        let mut aliased_properties = Section::default();
        aliased_properties.number(Id::TopicAlias, 1).raw(properties.properties().raw());
        let topic = template("topic")?;
        let plan = Plan {
            version,
            numbers_topics: topic.has('s'),
            qos: settings::qos(settings),
            session: SessionPlan::read(trial)?,
            uses_aliases: settings.flag("topic_alias"),
            in_pieces: trial.load.pattern == Pattern::Transfer,
            retain: settings.flag("retain"),
            publishes: trial.load.pattern != Pattern::Hold,
            will_body: settings.text("will_body").to_owned(),
            user: credentials.as_ref().map(|credentials| credentials.user.clone()),
            password: credentials.map(|credentials| credentials.password).unwrap_or_default(),
            properties,
            aliased_properties,
            templates: Templates {
                client_id: template("client_id")?,
                topic,
                will_topic: optional("will_topic")?,
                filter: optional("filter")?,
            },
            share: share(trial)?,
            topology: trial.load.topology,
            tag: trial.tag(),
            distinguishes_connections: trial.load.pattern == Pattern::Session
                && settings.flag("clean"),
            connections: AtomicU32::new(0),
        };
        plan.check(trial)?;
        Ok(plan)
    }

    fn check(&self, trial: &Trial) -> Result<(), Invalid> {
        let connections = trial.load.connections.max(trial.load.subscribers);
        if connections > 1 && !self.templates.client_id.has('i') {
            return Err(Invalid::new(
                "mqtt.client_id",
                format!(
                    "{connections} connections share one client ID; the broker would disconnect \
                     all but one"
                ),
                "put %i into it, so that each has its own",
            ));
        }
        let last = connections.saturating_sub(1);
        for role in [Role::Producer, Role::Consumer] {
            let seat = Seat { index: last, role };
            let client_id = self.client_id(seat, u32::MAX);
            check_text("mqtt.client_id", &client_id)?;
            let topic = self.topic(seat.index, &client_id, Some(u64::MAX));
            if !topic::is_name(&topic) {
                return Err(Invalid::new(
                    "mqtt.topic",
                    format!("{topic:?} cannot be published to"),
                    "type a topic of 1 to 65535 bytes without + and #",
                ));
            }
            if let Some(topic) = self.will_topic(seat, &client_id)
                && !topic::is_name(&topic)
            {
                return Err(Invalid::new(
                    "mqtt.will_topic",
                    format!("{topic:?} cannot be published to"),
                    "type a topic of 1 to 65535 bytes without + and #",
                ));
            }
            let filter = self.filter(seat.index);
            if !topic::is_filter(&filter) {
                let key = if self.share.is_empty() { "filter" } else { "share" };
                return Err(Invalid::new(
                    format!("mqtt.{key}"),
                    format!("{filter:?} cannot be subscribed to"),
                    "+ fills a whole level, # is the last level, a group has no /, + and #",
                ));
            }
        }
        check_text("mqtt.will_body", &self.will_body)?;
        if let Some(user) = &self.user {
            check_text("the user name", user)?;
            check_text("the password", &self.password)?;
        }
        self.check_slashes()?;
        self.check_numbers(trial)?;
        self.check_size(trial)?;
        self.check_window(trial)?;
        check_version(trial)
    }

    /// Packet identifiers are 1 to 65,535 (section 2.2.1): no more messages can be in flight. What
    /// a server grants (Receive Maximum) may be less.
    fn check_window(&self, trial: &Trial) -> Result<(), Invalid> {
        let most = u32::from(u16::MAX);
        match trial.load.window {
            Some(window) if window > most && self.qos != Qos::AtMostOnce => Err(Invalid::new(
                "load.window",
                format!(
                    "{} messages in flight: a connection of MQTT has at most {} at QoS 1 or 2 \
                     (section 2.2.1)",
                    count(window.into()),
                    count(most.into())
                ),
                format!("type --window {most} or less, or add connections (-c)"),
            )),
            _ => Ok(()),
        }
    }

    /// A slash in the value of a placeholder would shift the levels of the topic.
    fn check_slashes(&self) -> Result<(), Invalid> {
        let seat = Seat { index: 0, role: Role::Producer };
        if self.templates.topic.has('c') && self.client_id(seat, 0).contains('/') {
            return Err(Invalid::new(
                "mqtt.topic",
                "%c stands for a client ID with a slash",
                "remove the slash from mqtt.client_id, or %c from mqtt.topic",
            ));
        }
        Ok(())
    }

    /// The number of a message stands in topics alone, and can be read from it.
    fn check_numbers(&self, trial: &Trial) -> Result<(), Invalid> {
        let others = [
            ("client_id", self.templates.client_id.has('s')),
            ("filter", self.templates.filter.as_ref().is_some_and(|filter| filter.has('s'))),
            ("will_topic", self.templates.will_topic.as_ref().is_some_and(|topic| topic.has('s'))),
        ];
        if let Some((key, _)) = others.iter().find(|(_, has)| *has) {
            let fix = "remove {seq} (%s)";
            return Err(Invalid::new(
                format!("mqtt.{key}"),
                "cannot contain {seq}: it is set once per connection",
                fix,
            ));
        }
        if !self.numbers_topics {
            return Ok(());
        }
        if self.uses_aliases {
            return Err(Invalid::new(
                "mqtt.topic_alias",
                "topic aliases do not help: every message has a topic of its own",
                "remove it, or remove {seq} from mqtt.topic",
            ));
        }
        if trial.load.pattern == Pattern::Batch {
            // A batch of MQTT is messages one by one.
            return Ok(());
        }
        NamePattern::check("mqtt.topic", trial)
    }

    /// Largest body that the remaining length allows (section 2.1.4): 2 bytes and the
    /// topic, 2 bytes of packet identifier, the properties of MQTT 5.
    fn check_size(&self, trial: &Trial) -> Result<(), Invalid> {
        let size = trial.load.size.map_or(0, |size| size.0);
        let seat = Seat { index: trial.load.connections.saturating_sub(1), role: Role::Producer };
        let topic = self.topic(seat.index, &self.client_id(seat, u32::MAX), Some(u64::MAX));
        let mut head = self.publish(&topic, b"");
        head.properties = self.publish_properties(self.uses_aliases);
        let before_body = head.remaining(self.version) as u64;
        let room = u64::from(REMAINING_MAX) - before_body;
        if size > room {
            return Err(Invalid::new(
                "load.size",
                format!(
                    "{size} bytes do not fit into an MQTT packet, which has at most \
                     {REMAINING_MAX} bytes after its fixed header (section 2.1.4)"
                ),
                format!("type at most {room}B"),
            ));
        }
        Ok(())
    }

    /// The client identifier of the connection number `connection` of a seat.
    fn client_id(&self, seat: Seat, connection: u32) -> String {
        let role = role_letter(seat.role);
        let (index, user, tag) = (seat.index, self.user(), self.tag);
        let names = Names { client_id: "", index, user, tag, role, sequence: None };
        let mut client_id = self.templates.client_id.fill(&names);
        if seat.role == Role::Consumer && !self.templates.client_id.has('r') {
            client_id.push_str("-c");
        }
        if self.distinguishes_connections {
            client_id.push_str(&format!("-{connection}"));
        }
        client_id
    }

    /// The identifier of a seat's next connection.
    pub(super) fn next_client_id(&self, seat: Seat) -> String {
        self.client_id(seat, self.connections.fetch_add(1, Ordering::Relaxed))
    }

    /// First packet identifiers of a resumed session: different each time, so that a
    /// server does not take a new QoS 2 message for one that its last connection left open.
    pub(super) fn resumed_base(&self) -> u16 {
        let turn = self.connections.fetch_add(1, Ordering::Relaxed);
        (turn.wrapping_mul(8_191) % 65_535) as u16
    }

    fn user(&self) -> &str {
        self.user.as_deref().unwrap_or_default()
    }

    /// The topic of producer `index`, whose client identifier is `client_id`, for its message
    /// number `sequence`; without a number there is a gap for it where [`Plan::numbers_topics`].
    pub(super) fn topic(&self, index: u32, client_id: &str, sequence: Option<u64>) -> String {
        let (user, tag) = (self.user(), self.tag);
        self.templates.topic.fill(&Names { client_id, index, user, tag, role: "p", sequence })
    }

    /// The topic for the message with this body, of one with gaps.
    pub(super) fn numbered(&self, topic: &str, body: &[u8]) -> String {
        topic.replace(NUMBER, &name_pattern::number(body).1.to_string())
    }

    pub(super) fn will_topic(&self, seat: Seat, client_id: &str) -> Option<String> {
        let (user, tag, role) = (self.user(), self.tag, role_letter(seat.role));
        let names = Names { client_id, index: seat.index, user, tag, role, sequence: None };
        self.templates.will_topic.as_ref().map(|topic| topic.fill(&names))
    }

    /// Topic filter of consumer `index`.
    pub(super) fn filter(&self, index: u32) -> String {
        let (user, tag) = (self.user(), self.tag);
        let names = Names { client_id: "", index, user, tag, role: "c", sequence: None };
        let filter = match (&self.templates.filter, self.topology) {
            (Some(filter), _) => filter.fill(&names),
            (None, Topology::Pairs) => {
                let producer = Seat { index, role: Role::Producer };
                let client_id = &*self.client_id(producer, 0);
                let names = Names { client_id, role: "p", ..names };
                self.templates.topic.filter_of_one(&names)
            }
            (None, _) => self.templates.topic.filter(&names),
        };
        match self.share.as_str() {
            "" => filter,
            group => format!("$share/{group}/{filter}"),
        }
    }

    /// Position of the producer's index in topics.
    pub(super) fn index_place(&self) -> Option<IndexPlace> {
        let (user, tag) = (self.user(), self.tag);
        let names = Names { client_id: "", index: 0, user, tag, role: "p", sequence: None };
        self.templates.topic.index_place(&names)
    }

    /// The properties of a PUBLISH, with or without the topic alias.
    pub(super) fn publish_properties(&self, is_aliased: bool) -> Properties<'_> {
        match is_aliased {
            true => self.aliased_properties.properties(),
            false => self.properties.properties(),
        }
    }

    /// A PUBLISH as all clients of the trial send it.
    #[inline]
    pub(super) fn publish<'a>(&'a self, topic: &'a str, body: &'a [u8]) -> Publish<'a> {
        Publish {
            dup: false,
            qos: self.qos,
            retain: self.retain,
            topic,
            packet_id: 0,
            properties: self.properties.properties(),
            body,
        }
    }
}

impl SessionPlan {
    fn read(trial: &Trial) -> Result<SessionPlan, Invalid> {
        let settings = &trial.settings;
        Ok(SessionPlan {
            clean: settings.flag("clean"),
            keep_alive_s: settings::seconds(settings, "keep_alive", 65_535)? as u16,
            expiry_s: settings::seconds(settings, "session_expiry", u32::MAX)?,
            receive_maximum: settings.integer("receive_maximum").clamp(1, 65_535) as u16,
            window: unannounced_window(trial),
            maximum_packet_size: settings.integer("maximum_packet_size") as u32,
        })
    }
}

/// The group of a shared subscription; empty where every consumer has its own.
fn share(trial: &Trial) -> Result<String, Invalid> {
    let group = trial.settings.text("share");
    match (trial.load.topology, group) {
        (Topology::Shared, "") => Ok("weigh".to_owned()),
        (Topology::Shared, group) => Ok(group.to_owned()),
        (_, "") => Ok(String::new()),
        (_, _) => Err(Invalid::new(
            "mqtt.share",
            "names a group, which this topology does not have",
            "type --topology shared, or remove the group",
        )),
    }
}

/// MQTT 3.1.1 servers cannot announce their limits. Mosquitto 2.0 accepts 20 messages of QoS 2 at
/// the same time from each client, acknowledges further ones, and loses them; so unless the user
/// says
/// otherwise that is the window there, as it is in Mosquitto's own clients.
fn unannounced_window(trial: &Trial) -> u16 {
    let is_exposed = settings::version(&trial.settings) == Version::V311
        && settings::qos(&trial.settings) == Qos::ExactlyOnce;
    match trial.load.window {
        None if is_exposed => CAREFUL_WINDOW,
        _ => u16::MAX,
    }
}

/// `max_inflight_messages` of Mosquitto and of libmosquitto.
const CAREFUL_WINDOW: u16 = 20;

fn role_letter(role: Role) -> &'static str {
    match role {
        Role::Producer => "p",
        Role::Consumer => "c",
    }
}

fn publish_properties(trial: &Trial) -> Result<Section, Invalid> {
    let mut section = Section::default();
    let settings = &trial.settings;
    let expiry = settings::seconds(settings, "message_expiry", u32::MAX)?;
    if expiry > 0 {
        section.number(Id::MessageExpiryInterval, expiry);
    }
    match settings.text("user_property") {
        "" => {}
        text => {
            let (name, value) = text.split_once('=').ok_or_else(|| {
                let problem = format!("{text:?} has no value");
                Invalid::new("mqtt.user_property", problem, "type name=value")
            })?;
            check_text("mqtt.user_property", name)?;
            check_text("mqtt.user_property", value)?;
            section.pair(name, value);
        }
    }
    Ok(section)
}

fn check_text(place: &str, text: &str) -> Result<(), Invalid> {
    if text.len() > usize::from(u16::MAX) || text.contains('\0') {
        let problem = format!("it has {} bytes or a null character", text.len());
        return Err(Invalid::new(place, problem, "type at most 65535 bytes without null"));
    }
    Ok(())
}

/// Keys that 3.1.1 does not support must have their defaults.
fn check_version(trial: &Trial) -> Result<(), Invalid> {
    if settings::version(&trial.settings) == Version::V5 {
        return Ok(());
    }
    let known = settings::SETTINGS.iter();
    for setting in known.filter(|setting| settings::ONLY_IN_5.contains(&setting.key)) {
        let value = trial.settings.text(setting.key);
        if !value.is_empty() && value != setting.default {
            return Err(Invalid::new(
                format!("mqtt.{}", setting.key),
                "MQTT 3.1.1 does not support it",
                "set mqtt.version to 5, or remove it",
            ));
        }
    }
    Ok(())
}
