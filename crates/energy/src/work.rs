//! The energy model: what a device did, times the cost of each part.
//!
//! E = attach + n·ramp + connections·connect + messages·message + bytes·byte + awake·connected +
//! n·tail_power·tail_time + time·idle + processor time·load/cores (methodology, section 7.2, with
//! the connected state and the processor in addition). In a duty cycle there are keep-alives, pages
//! and tracking area updates between two messages too.

use weigh_model::modelled::{Activity, Pauses};

pub(crate) use super::keys::Values;
use crate::keys::at;
use crate::on_air::{bytes, connect, message};

/// The work of the devices of one trial, in total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Number of devices.
    pub devices: f64,
    /// Connections to the server.
    pub connections: f64,
    /// Messages.
    pub messages: f64,
    /// Bytes sent and received, from IP up.
    pub bytes: [f64; 2],
    /// Bytes that are neither set-up nor tear-down.
    pub message_bytes: [f64; 2],
    /// From each device's first packet to its last, seconds.
    pub span_s: f64,
    /// From each connection's first packet to its last, seconds.
    pub connected_s: f64,
    /// Pauses between packets of a device.
    pub pauses: Pauses,
    /// Processor time of a message, seconds of the generator's processor.
    pub cpu_s: f64,
    /// How long a message on a kept connection waits for its confirmation, seconds.
    pub exchange_s: f64,
    /// True if the next message waits for the one before, so that a slower processor takes longer.
    pub is_closed: bool,
    /// Longest silence on a kept connection that its protocol allows, seconds; 0 for no limit.
    pub keep_alive_s: f64,
    /// Bytes that a keep-alive sends and receives, from IP up.
    pub keep_alive_bytes: [f64; 2],
}

impl Work {
    /// Work from a trial's activity and the generator's times: processor time per message of all
    /// clients, and the time that a message waits for its confirmation, both in seconds. The
    /// devices get their share of the processor time by packets.
    pub fn of(activity: &Activity, cpu_s: f64, exchange_s: f64, is_closed: bool) -> Work {
        let packets = activity.up_packets + activity.down_packets;
        let all = (packets + activity.other_packets).max(1);
        Work {
            devices: activity.devices as f64,
            connections: activity.connections as f64,
            messages: activity.messages as f64,
            bytes: [activity.up_bytes as f64, activity.down_bytes as f64],
            message_bytes: [activity.message_up_bytes as f64, activity.message_down_bytes as f64],
            span_s: activity.span_ns as f64 / 1e9,
            connected_s: activity.connected_ns as f64 / 1e9,
            pauses: activity.pauses.clone(),
            cpu_s: cpu_s * packets as f64 / all as f64,
            exchange_s,
            is_closed,
            keep_alive_s: activity.keep_alive_ns as f64 / 1e9,
            keep_alive_bytes: [
                activity.keep_alive_up_bytes as f64,
                activity.keep_alive_down_bytes as f64,
            ],
        }
    }

    /// True if there is a device that sent a message over a connection.
    pub fn is_some(&self) -> bool {
        self.devices > 0.0 && self.connections > 0.0 && self.messages > 0.0
    }

    /// True if each message has its own connection.
    pub fn is_fresh(&self) -> bool {
        self.connections >= self.messages
    }
}

/// Joules by use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    /// Joining the network.
    pub attach: f64,
    /// Wake-ups and connections to the server.
    pub connect: f64,
    /// Messages, if they have their own coefficient.
    pub message: f64,
    /// Bytes.
    pub bytes: f64,
    /// The radio awake between packets, and after the last.
    pub tail: f64,
    /// Device and radio idle.
    pub idle: f64,
    /// Processor time.
    pub cpu: f64,
    /// Wake-ups that only keep a connection.
    pub keep_alive: f64,
    /// Listening for pages, and tracking area updates.
    pub paging: f64,
    /// Self-discharge of the battery.
    pub self_discharge: f64,
}

impl Parts {
    /// The parts in their order, with their names.
    pub fn named(&self) -> [(&'static str, f64); 10] {
        [
            ("attach", self.attach),
            ("connect", self.connect),
            ("message", self.message),
            ("bytes", self.bytes),
            ("tail", self.tail),
            ("idle", self.idle),
            ("cpu", self.cpu),
            ("keep-alive", self.keep_alive),
            ("paging", self.paging),
            ("self-discharge", self.self_discharge),
        ]
    }

    /// All of them.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, joules)| joules).sum()
    }

    /// All except idling: asleep, listening for pages, and self-discharge.
    pub fn above_idle(&self) -> f64 {
        self.total() - self.idle - self.paging - self.self_discharge
    }

    fn divided(self, by: f64) -> Parts {
        Parts {
            attach: self.attach / by,
            connect: self.connect / by,
            message: self.message / by,
            bytes: self.bytes / by,
            tail: self.tail / by,
            idle: self.idle / by,
            cpu: self.cpu / by,
            keep_alive: self.keep_alive / by,
            paging: self.paging / by,
            self_discharge: self.self_discharge / by,
        }
    }
}

/// A message and the time of a device for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Each {
    /// Joules of a message.
    pub parts: Parts,
    /// Seconds of a device for each message.
    pub seconds: f64,
}

/// A message as measured: as if the trial's load continued without end. A radio that never had a
/// pause as long as its tail never sleeps; one that had gets a pause of the same kind after its
/// last packet too.
pub fn as_weighed(values: &Values, cores: f64, work: &Work) -> Each {
    let cpu_s = processor_s(values, work) * work.messages;
    // If the next message waits for the one before, a slower processor delays all later ones.
    let slower_s = (cpu_s - work.cpu_s * work.messages).max(0.0);
    let busy_s = if work.is_closed { work.span_s + slower_s } else { work.span_s.max(cpu_s) };
    let (pauses, paused_s) = work.pauses.longer_than(sleeps_after(values, work));
    let mut awake_s = busy_s;
    let (mut span_s, mut wake_ups) = (busy_s, 0.0);
    if pauses > 0.0 {
        wake_ups = pauses + work.devices;
        awake_s = (busy_s - paused_s).max(0.0);
        // In a closed loop a radio without a tail only waited for answers.
        let is_spaced = !work.is_closed || values[at::TAIL_TIME] > 0.0;
        span_s += if is_spaced { work.devices * paused_s / pauses } else { 0.0 };
    }
    let parts = Parts {
        attach: 0.0,
        connect: wake_ups * ramp(values) + work.connections * connect(values),
        message: work.messages * message(values),
        bytes: bytes(values, work.bytes),
        tail: awake_s * values[at::CONNECTED] + wake_ups * tail(values, f64::INFINITY),
        idle: span_s * (values[at::IDLE] + values[at::RADIO_IDLE]),
        cpu: cpu_s * values[at::LOAD] / cores,
        paging: span_s * values[at::PAGING],
        ..Parts::default()
    };
    Each { parts: parts.divided(work.messages), seconds: span_s / work.messages }
}

/// A message of a device that sends one every `every_s` seconds and is idle in between: with its
/// whole connection if each message has one, else on a connection that is kept. `None` if one takes
/// longer than that.
pub fn in_duty(values: &Values, cores: f64, work: &Work, every_s: f64) -> Option<Each> {
    let is_fresh = work.is_fresh();
    let cpu_s = processor_s(values, work);
    let slower_s = (cpu_s - work.cpu_s).max(0.0);
    let (moved, on_air_s) = match is_fresh {
        true => (work.bytes, work.connected_s / work.connections),
        false => (work.message_bytes, work.exchange_s),
    };
    let busy_s = on_air_s + slower_s;
    let pause_s = every_s - busy_s;
    if pause_s < 0.0 {
        return None;
    }
    let kept = Kept::of(values, work, every_s);
    let silence_s = pause_s.min(kept.silence_s);
    let sleeps = silence_s > values[at::TAIL_TIME];
    let updates = tracking_area_updates(values, silence_s) * (kept.keep_alives + 1.0);
    let parts = Parts {
        attach: 0.0,
        connect: if sleeps { ramp(values) } else { 0.0 }
            + if is_fresh { connect(values) } else { 0.0 },
        message: message(values),
        bytes: bytes(values, moved.map(|bytes| bytes / work.messages)),
        tail: busy_s * values[at::CONNECTED] + tail(values, silence_s),
        idle: every_s * (values[at::IDLE] + values[at::RADIO_IDLE]),
        cpu: cpu_s * values[at::LOAD] / cores,
        keep_alive: kept.keep_alives * kept.each_j,
        paging: every_s * values[at::PAGING] + updates * values[at::TAU],
        self_discharge: 0.0,
    };
    Some(Each { parts, seconds: every_s })
}

/// Cost of keeping a connection between two messages.
struct Kept {
    /// Keep-alives between two messages.
    keep_alives: f64,
    /// Joules of each.
    each_j: f64,
    /// The longest silence, seconds; infinite without keep-alives.
    silence_s: f64,
}

impl Kept {
    /// A kept connection is pinged after the silence that its protocol or the network allows,
    /// whichever is shorter; each message restarts that silence.
    fn of(values: &Values, work: &Work, every_s: f64) -> Kept {
        let limits = [work.keep_alive_s, values[at::IDLE_LIMIT]].into_iter();
        let silence_s = limits.filter(|limit| *limit > 0.0).fold(f64::INFINITY, f64::min);
        if work.is_fresh() || silence_s >= every_s {
            return Kept { keep_alives: 0.0, each_j: 0.0, silence_s: f64::INFINITY };
        }
        let wakes = silence_s > values[at::TAIL_TIME];
        let each_j = if wakes { ramp(values) + message(values) } else { 0.0 }
            + bytes(values, work.keep_alive_bytes)
            + work.exchange_s * values[at::CONNECTED]
            + tail(values, silence_s);
        Kept { keep_alives: (every_s / silence_s).ceil() - 1.0, each_j, silence_s }
    }
}

/// Number of updates in a silence: any transmission restarts the timer (3GPP TS 24.301, T3412).
fn tracking_area_updates(values: &Values, silence_s: f64) -> f64 {
    let after_s = values[at::TAU_TIME];
    if after_s > 0.0 { (silence_s / after_s).floor() } else { 0.0 }
}

/// The shortest pause in which the radio sleeps. One without a tail does not sleep while it waits
/// for an answer, if being connected takes power.
fn sleeps_after(values: &Values, work: &Work) -> f64 {
    let waits = values[at::TAIL_TIME] == 0.0 && values[at::CONNECTED] > 0.0;
    if waits { work.exchange_s } else { values[at::TAIL_TIME] }
}

/// Costs once per charge: joining the network, the first wake-up with the last tail, and in a duty
/// cycle on a kept connection that connection.
pub fn once(values: &Values, keeps_connection: bool) -> f64 {
    let connection = if keeps_connection { values[at::CONNECT] } else { 0.0 };
    values[at::ATTACH] + ramp(values) + tail(values, f64::INFINITY) + connection
}

/// Processor time of a message on the device.
fn processor_s(values: &Values, work: &Work) -> f64 {
    work.cpu_s * values[at::CPU_SCALE]
}

fn ramp(values: &Values) -> f64 {
    values[at::RAMP] + values[at::RAMP_POWER] * values[at::RAMP_TIME]
}

/// A tail that ends when the next wake-up begins.
fn tail(values: &Values, pause_s: f64) -> f64 {
    values[at::TAIL_POWER] * values[at::TAIL_TIME].min(pause_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KEYS;

    /// A radio with round numbers on a device that idles at 1 W.
    fn values() -> Values {
        let mut values = [0.0; KEYS.len()];
        for (place, value) in [
            (at::IDLE, 1.0),
            (at::LOAD, 2.0),
            (at::CPU_SCALE, 10.0),
            (at::RAMP, 3.0),
            (at::UP, 0.001),
            (at::DOWN, 0.002),
            (at::CONNECTED, 0.5),
            (at::TAIL_POWER, 0.5),
            (at::TAIL_TIME, 10.0),
        ] {
            values[place] = value;
        }
        values
    }

    fn sessions() -> Work {
        Work {
            devices: 1.0,
            connections: 4.0,
            messages: 4.0,
            bytes: [4_000.0, 2_000.0],
            message_bytes: [400.0, 200.0],
            span_s: 8.0,
            connected_s: 8.0,
            cpu_s: 0.01,
            exchange_s: 0.3,
            is_closed: true,
            ..Work::default()
        }
    }

    #[test]
    fn sessions_without_a_pause_keep_the_radio_awake() {
        let each = as_weighed(&values(), 4.0, &sessions());
        // 2 s each, and 0.09 s more on a processor ten times as slow.
        assert!((each.seconds - 2.09).abs() < 1e-12, "{each:?}");
        let Parts { connect, bytes, tail, idle, cpu, .. } = each.parts;
        assert_eq!(connect, 0.0);
        assert!((bytes - (1.0 + 1.0)).abs() < 1e-12);
        assert!((tail - 2.09 * 0.5).abs() < 1e-12 && (idle - 2.09).abs() < 1e-12);
        // A tenth of a second on one of four cores that take 2 W together.
        assert!((cpu - 0.05).abs() < 1e-12);
    }

    #[test]
    fn a_pause_longer_than_the_tail_is_a_wake_up() {
        let mut work = Work { span_s: 68.0, ..sessions() };
        (0..3).for_each(|_| work.pauses.note(20_000_000_000));
        let each = as_weighed(&values(), 4.0, &work);
        // Four wake-ups, and a fourth pause of 20 s behind the last.
        assert!((each.parts.connect - 3.0).abs() < 1e-12, "{each:?}");
        assert!((each.parts.tail - (2.09 * 0.5 + 5.0)).abs() < 1e-9);
        assert!((each.seconds - 22.09).abs() < 1e-9);
        // The same with pauses in which the radio stays awake.
        let mut awake = Work { span_s: 23.0, ..sessions() };
        (0..3).for_each(|_| awake.pauses.note(5_000_000_000));
        let each = as_weighed(&values(), 4.0, &awake);
        assert!(each.parts.connect == 0.0 && (each.seconds - 5.84).abs() < 1e-9, "{each:?}");
    }

    #[test]
    fn a_duty_cycle_is_a_whole_session_or_a_message_on_a_kept_one() {
        let fresh = in_duty(&values(), 4.0, &sessions(), 60.0).unwrap();
        assert!((fresh.parts.bytes - 2.0).abs() < 1e-12 && fresh.parts.connect == 3.0);
        assert!((fresh.parts.tail - (2.09 * 0.5 + 5.0)).abs() < 1e-12);
        assert!((fresh.parts.idle - 60.0).abs() < 1e-12);
        let kept = in_duty(&values(), 4.0, &Work { connections: 1.0, ..sessions() }, 60.0).unwrap();
        assert!((kept.parts.bytes - 0.2).abs() < 1e-12);
        assert!((kept.parts.tail - (0.39 * 0.5 + 5.0)).abs() < 1e-12);
        // Every 5 s the tail never ends, and no ramp is paid.
        let often = in_duty(&values(), 4.0, &sessions(), 5.0).unwrap();
        assert!(often.parts.connect == 0.0);
        assert!((often.parts.tail - 2.5).abs() < 1e-12, "{often:?}");
        assert_eq!(in_duty(&values(), 4.0, &sessions(), 2.0), None);
    }

    #[test]
    fn consumers_take_their_share_of_the_processor() {
        let activity =
            Activity { up_packets: 20, down_packets: 10, other_packets: 10, ..Activity::default() };
        assert!((Work::of(&activity, 0.004, 0.0, true).cpu_s - 0.003).abs() < 1e-15);
    }
}
