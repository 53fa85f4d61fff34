//! What an option would cost in a situation: one figure for each criterion, or why there is none.

use std::collections::BTreeMap;

use weigh_energy::{Catalogue, Model, Quantity, Work};
use weigh_model::modelled::{EnergyAsked, EnergyBasis, Processor};
use weigh_model::units::{Nanos, Rate};

use crate::account::{Bounds, Tally, Wire};
use crate::cells::Repetition;
use crate::choice::Choice;
use crate::cost::Load;
use crate::criterion::Criterion;
use crate::drawn::{Drawn, uniform};
use crate::family::{Family, KERNEL_BYTES_PER_CONNECTION};
use crate::link::Link;
use crate::refusal::Missing;
use crate::session::Session;
use crate::situation::{Device, Situation};

/// A kept connection or one for each message, with what is known of it: the input of its figures.
#[derive(Clone, Debug)]
pub struct Candidate<'o> {
    /// The option.
    pub choice: &'o Choice,
    /// What its connections carry.
    pub session: &'o Session,
    /// Round trips to open a connection: TCP, TLS, the greeting of the protocol.
    pub open_trips: f64,
    /// Costs of its server; `None` without cells.
    pub family: Option<&'o Family>,
}

/// What all options have in common.
#[derive(Clone, Debug)]
pub struct Ground<'g> {
    /// The situation.
    pub situation: &'g Situation,
    /// The network.
    pub link: &'g Link,
    /// The device and its radio, if energy is asked for, and the largest message in bytes for which
    /// the radio's coefficients were measured.
    pub energy: Option<(&'g Model, Option<u64>)>,
}

/// The figures of an option.
#[derive(Clone, Debug)]
pub struct Figures {
    /// By criterion.
    pub by: BTreeMap<Criterion, Result<Drawn, Missing>>,
    /// Bytes of one message; of a whole connection if each message has one.
    pub message: Bounds,
    /// Bytes of opening and closing a connection.
    pub around: Bounds,
    /// Bytes of a keep-alive, and how many there are in 30 days.
    pub keep_alive: (Bounds, f64),
    /// Bytes of 30 days by layer.
    pub month: Bounds,
    /// Days that a charge lasts, if there is a battery.
    pub days: Option<Drawn>,
    /// Seconds that a message takes, its connection included if it has one of its own.
    pub exchange_s: f64,
    /// The load on the server.
    pub load: Load,
    /// Where only the rate is beyond the measured cells: cores at the highest rate that was
    /// measured, and that rate. It costs at least that.
    pub floor: Option<(Drawn, f64)>,
}

impl Figures {
    /// The figure of a criterion, if there is one.
    pub fn get(&self, criterion: Criterion) -> Option<&Drawn> {
        self.by.get(&criterion)?.as_ref().ok()
    }

    /// All figures of an option.
    pub fn of(option: &Candidate<'_>, ground: &Ground<'_>) -> Figures {
        let Candidate { choice, session, .. } = option;
        let situation = ground.situation;
        let wire = Wire {
            is_datagram: choice.is_datagram,
            mtu: ground.link.mtu,
            is_dense: choice.is_kept && situation.traffic.every < DELAYED_ACK,
        };
        let around = wire.around(session);
        let alone = wire.message(session);
        let message = if choice.is_kept { alone } else { alone.and(&around) };
        let each = keep_alives(choice, situation);
        let keep_alive = (wire.keep_alive(session), each * messages(situation));
        let month = month(choice, situation, (&message, &around), &keep_alive);
        let trips = trips(option);
        let exchange_s = ground.link.typical_s(trips, &message.low);
        let load = load(option, situation, each);
        let mut figures = Figures {
            by: BTreeMap::new(),
            message,
            around,
            keep_alive,
            month,
            days: None,
            exchange_s,
            load,
            floor: None,
        };
        figures.floor = figures.least_cores(option, situation);
        let bytes = |tally: &Tally| ground.link.with_losses(tally);
        let acks = uniform("acknowledgements");
        let data = Drawn::between(bytes(&month.low), bytes(&month.high), &acks);
        figures.by.insert(Criterion::Bytes, Ok(data));
        figures.by.insert(Criterion::ServerCpu, figures.cores(option, situation));
        figures.by.insert(Criterion::Memory, figures.memory(option, situation));
        figures.by.insert(Criterion::Latency, figures.latency(option, ground, trips));
        let (energy, days) = figures.energy(option, ground);
        figures.by.insert(Criterion::Energy, energy);
        figures.days = days;
        figures
    }

    fn cores(&self, option: &Candidate<'_>, situation: &Situation) -> Result<Drawn, Missing> {
        let choice = option.choice;
        let missing = |why: String| Missing { why, run: run(choice, situation) };
        let family = option.family.ok_or_else(|| missing(no_cells(choice)))?;
        let size = situation.traffic.size.0 as f64;
        if let Some(known) = family.measured(choice, &self.load, size, |own| Some(own.cores)) {
            return Ok(known);
        }
        let near = family.at(choice, &self.load, size).map_err(missing)?;
        let found = near.cores(&self.load, choice);
        found.ok_or_else(|| missing("its costs could not be fitted".to_owned()))
    }

    fn least_cores(&self, option: &Candidate<'_>, situation: &Situation) -> Option<(Drawn, f64)> {
        let (family, size) = (option.family?, situation.traffic.size.0 as f64);
        let is_beyond = family.at(option.choice, &self.load, size).is_err();
        is_beyond.then(|| family.floor(option.choice, &self.load, size))?
    }

    fn memory(&self, option: &Candidate<'_>, situation: &Situation) -> Result<Drawn, Missing> {
        let choice = option.choice;
        let missing = |why: &str| Missing { why: why.to_owned(), run: run(choice, situation) };
        let family = option.family.ok_or_else(|| missing(&no_cells(choice)))?;
        let size = situation.traffic.size.0 as f64;
        // The kernel's part is in no process.
        let kernel = self.load.connections * KERNEL_BYTES_PER_CONNECTION;
        let all = |own: &Repetition| Some(own.memory_bytes? + kernel);
        if let Some(known) = family.measured(choice, &self.load, size, all) {
            return Ok(known);
        }
        // Connections that are opened for one message stand as long as it takes.
        let open = match choice.is_kept {
            true => self.load.connections,
            false => self.load.messages * self.exchange_s,
        };
        let found = family.memory(open, choice.is_tls, size);
        found.ok_or_else(|| missing("no cell shows the memory of such a connection"))
    }

    fn latency(
        &self,
        option: &Candidate<'_>,
        ground: &Ground<'_>,
        trips: f64,
    ) -> Result<Drawn, Missing> {
        let opens = !option.choice.is_kept && !option.choice.is_datagram;
        let path = ground.link.p99_s(trips, &self.message.low, opens);
        let served = option.family.and_then(|family| family.service_s(option.choice));
        match served {
            Some([low, high]) => {
                let server = Drawn::between(low, high, &uniform(&option.choice.name()));
                Ok(path.with(&server, |path, server| path + server))
            }
            // On a slow path the server's part is small, whatever it is.
            None if ground.link.round_trip_s >= SLOW_PATH_S => {
                let server = Drawn::between(0.0, SERVED_MOST_S, &uniform(&option.choice.name()));
                Ok(path.with(&server, |path, server| path + server))
            }
            None => Err(Missing {
                why: "no cell shows how long its server takes".to_owned(),
                run: run(option.choice, ground.situation),
            }),
        }
    }

    fn energy(
        &self,
        option: &Candidate<'_>,
        ground: &Ground<'_>,
    ) -> (Result<Drawn, Missing>, Option<Drawn>) {
        let absent = |why: String, run: &str| (Err(Missing { why, run: run.to_owned() }), None);
        let Some((model, size_max)) = ground.energy else {
            return absent("no device and radio are given".to_owned(), "add [device]");
        };
        let size = ground.situation.traffic.size.0;
        if let Some(most) = size_max.filter(|most| size > *most) {
            let why = format!("the radio was measured with messages up to {most} B");
            return absent(why, "weigh energy rundown, on the device itself");
        }
        let bounds =
            [&self.work(option, ground, Acks::Few), &self.work(option, ground, Acks::Many)];
        let of = |quantity: Quantity| {
            let [low, high] = bounds.map(|work| model.values(quantity, work));
            let values = bounds.map(|work| model.value(quantity, work));
            let (low, high) = (low?, high?);
            let acks = uniform("acknowledgements");
            let pairs = low.iter().zip(&high).zip(&acks);
            let draws = pairs.map(|((low, high), at)| low + at * (high - low)).collect();
            Some(Drawn { value: (values[0]? + values[1]?) / 2.0, draws })
        };
        let per_day = DAY_S / ground.situation.traffic.every.as_secs_f64();
        match of(Quantity::WakePerMessage) {
            Some(each) => (Ok(each.map(|joules| joules * per_day)), of(Quantity::Days)),
            None => {
                let why = "a message takes longer than the time between two messages".to_owned();
                absent(why, "send less often")
            }
        }
    }

    fn work(&self, option: &Candidate<'_>, ground: &Ground<'_>, acks: Acks) -> Work {
        let side = |bounds: &Bounds| if acks == Acks::Few { bounds.low } else { bounds.high };
        let (message, ping) = (side(&self.message), side(&self.keep_alive.0));
        let is_kept = option.choice.is_kept && !option.choice.is_datagram;
        let silence_s = if is_kept { silence_s(option.choice, ground.situation) } else { 0.0 };
        let ping = (silence_s, [ping.up, ping.down]);
        // A connection of its own is closed by one more round trip, in which the radio is awake.
        let opens = !option.choice.is_kept && !option.choice.is_datagram;
        let closing_s = if opens { ground.link.round_trip_s } else { 0.0 };
        device_work(is_kept, [message.up, message.down], self.exchange_s + closing_s, ping)
    }
}

/// What the energy of a situation's device is modelled by. Its radio has no idle limit there: the
/// situation has one of its own, for bytes and energy alike.
///
/// # Errors
/// The key of a name that the catalogue does not have, and what to type.
pub fn energy_basis(
    device: &Device,
    every: Nanos,
    catalogue: &Catalogue,
) -> Result<EnergyBasis, (&'static str, String)> {
    let mut basis = catalogue.basis(&EnergyAsked {
        device: device.model.clone(),
        radio: Some(device.radio.clone()),
        battery: device.battery,
        every: Some(every),
        cpu: Processor::Scaled,
    })?;
    if let Some(radio) = &mut basis.radio {
        radio.coefficients.remove("idle_limit");
    }
    Ok(basis)
}

/// A device's work of one message of these bytes, up and down; of many on a kept connection, so
/// that its opening does not count. `keep_alive` has the longest silence in seconds and the bytes
/// of what ends it.
pub fn device_work(
    is_kept: bool,
    message: [f64; 2],
    exchange_s: f64,
    keep_alive: (f64, [f64; 2]),
) -> Work {
    let number = if is_kept { MESSAGES_OF_KEPT } else { 1.0 };
    let bytes = message.map(|own| own * number);
    Work {
        devices: 1.0,
        connections: 1.0,
        messages: number,
        bytes,
        message_bytes: bytes,
        connected_s: exchange_s * number,
        exchange_s,
        keep_alive_s: if is_kept { keep_alive.0 } else { 0.0 },
        keep_alive_bytes: keep_alive.1,
        ..Work::default()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Acks {
    Few,
    Many,
}

/// Round trips until a message is confirmed; half of one if nothing confirms it.
fn trips(option: &Candidate<'_>) -> f64 {
    let message = option.session.trips.max(0.5);
    message + if option.choice.is_kept { 0.0 } else { option.open_trips }
}

/// Messages of a device in 30 days.
fn messages(situation: &Situation) -> f64 {
    MONTH_S / situation.traffic.every.as_secs_f64()
}

/// The longest silence on a kept connection, seconds.
fn silence_s(choice: &Choice, situation: &Situation) -> f64 {
    let network = situation.network.idle_limit.as_secs_f64();
    choice.silence_max.map_or(network, |own| own.as_secs_f64().min(network))
}

/// Keep-alives between two messages of a kept connection: each message restarts the silence.
pub fn keep_alives(choice: &Choice, situation: &Situation) -> f64 {
    if !choice.is_kept || choice.is_datagram {
        return 0.0;
    }
    let silences = situation.traffic.every.as_secs_f64() / silence_s(choice, situation);
    (silences.ceil() - 1.0).max(0.0)
}

/// Bytes of a device in 30 days.
fn month(
    choice: &Choice,
    situation: &Situation,
    (message, around): (&Bounds, &Bounds),
    keep_alive: &(Bounds, f64),
) -> Bounds {
    let mut month = message.times(messages(situation)).and(&keep_alive.0.times(keep_alive.1));
    if let (true, Some(each)) = (choice.is_kept, situation.network.reconnect) {
        month = month.and(&around.times(MONTH_S / each.as_secs_f64()));
    }
    month
}

/// The load of all devices on the server. A keep-alive of the protocol counts as a message.
fn load(option: &Candidate<'_>, situation: &Situation, keep_alives: f64) -> Load {
    let choice = option.choice;
    let rate = situation.rate_per_s();
    let subscribers = situation.traffic.subscribers as f64;
    let pings = if option.session.ping[0] > 0 { rate * keep_alives } else { 0.0 };
    let messages = rate + pings;
    let is_each = !choice.is_kept && !choice.is_datagram;
    let when = |is: bool, amount: f64| if is { amount } else { 0.0 };
    let bytes = rate * situation.traffic.size.0 as f64;
    let devices = when(choice.is_kept, situation.traffic.devices as f64);
    // A datagram alone opens nothing; inside DTLS it has a handshake.
    let has_opening = choice.is_tls || !choice.is_datagram;
    let reopened = match (situation.network.reconnect, choice.is_kept && has_opening) {
        (Some(each), true) => situation.traffic.devices as f64 / each.as_secs_f64(),
        _ => 0.0,
    };
    let opens = when(is_each, rate) + reopened;
    Load {
        variant: choice.variant(),
        connections: devices + subscribers,
        messages,
        arrivals: choice.arrivals(),
        sealed: when(choice.is_tls, messages),
        bytes,
        sealed_bytes: when(choice.is_tls, bytes),
        deliveries: rate * subscribers,
        opened: when(!choice.is_tls, opens),
        full: when(choice.is_tls && !choice.resumes, opens),
        resumed: when(choice.is_tls && choice.resumes, opens),
    }
}

fn no_cells(choice: &Choice) -> String {
    format!("{} was never measured", choice.lane())
}

/// What to type to measure this option where it is asked about. A load of few messages says nothing
/// in a minute: its costs come from those of higher ones.
pub fn run(choice: &Choice, situation: &Situation) -> String {
    let rate = rounded(situation.rate_per_s());
    let least_s = (MESSAGES_LEAST / rate.per_second).ceil();
    if least_s > RUN_S_MAX {
        return "add --calibrate".to_owned();
    }
    let target = if choice.target == REFERENCE { &choice.protocol } else { &choice.target };
    let mut words = format!("weigh compare {target}");
    for (key, value) in &choice.settings {
        words += &format!(" --set {}.{key}={value}", choice.protocol);
    }
    let pattern = match (choice.is_kept || choice.is_datagram, situation.traffic.subscribers) {
        (_, 1..) => "deliver",
        (true, 0) => "publish",
        (false, 0) => "session",
    };
    let connections = match choice.is_kept {
        true => situation.traffic.devices,
        false => situation.traffic.devices.min(100),
    };
    words += &format!(" --pattern {pattern} -c {connections}");
    if situation.traffic.subscribers > 0 {
        words += &format!(" --subscribers {}", situation.traffic.subscribers);
    }
    words += &format!(" -R {} -s {}", rate.typed(), situation.traffic.size.typed());
    if choice.is_tls {
        words += " --tls on";
    }
    if target.contains("://") {
        words += " --observe port:PORT";
    }
    format!("{words} -d {}s, then add --cells latest", least_s.max(RUN_S_MIN))
}

/// Least number of messages of a run whose costs per message are worth a figure.
const MESSAGES_LEAST: f64 = 100.0;

/// Shortest and longest duration of such a run, in seconds.
const RUN_S_MIN: f64 = 10.0;
const RUN_S_MAX: f64 = 60.0;

/// A rate to type, with four digits that count: two runs differ by more.
pub fn rounded(per_second: f64) -> Rate {
    let text = format!("{per_second:.3e}");
    let per_second = text.parse().unwrap_or(per_second);
    Rate { per_second, per_client: false }
}

const REFERENCE: &str = crate::choice::REFERENCE;

/// Linux: TCP_DELACK_MIN.
const DELAYED_ACK: Nanos = Nanos::from_millis(40);

/// 30 days.
pub const MONTH_S: f64 = 30.0 * DAY_S;

const DAY_S: f64 = 86_400.0;

/// Enough that a kept connection is not taken for one of a message.
const MESSAGES_OF_KEPT: f64 = 1_000.0;

/// From here on a server that was not measured adds little.
const SLOW_PATH_S: f64 = 0.02;

/// The most that such a server may take (chosen: p99 of loaded cells is below).
const SERVED_MOST_S: f64 = 0.01;
