//! A trial on its way between hosts: what the path between them did, and what was heard on their
//! wires.

use std::time::Duration;

use weigh_engine::contents::Contents;
use weigh_engine::job::Failure;
use weigh_engine::outcome::Outcome;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::path::{Direction, Path};
use weigh_model::{Doubt, Trial};
use weigh_observe::sampler::{Recording, Sampler, Usage};
use weigh_path::counts::{PathCounts, PortCounts, WayCounts};
use weigh_stage::hosts::{Offloads, Scene};
use weigh_wire::account::{Notes, Phases};
use weigh_wire::kernel::{KernelAccount, Role as KernelRole, Sample, TcpFigures, agreement};
use weigh_wire::{Account, Counting};

use crate::case::lanes::{Against, Lane};
use crate::exit::Stop;
use crate::probes::activity;
use crate::probes::heard;
use crate::probes::hearing::{self, Heard, Hearing};
use crate::probes::on_air::RadioLink;
use crate::probes::session;
use crate::probes::tcp_view;
use crate::targets::stage::{Footing, GENERATOR, Stage, is_client};

/// A trial on its way between two hosts.
pub struct Crossing<'s> {
    scene: Option<&'s Scene>,
    before: Option<PathCounts>,
    hearing: Option<Hearing>,
    /// Who watches the relay's process.
    relay: Option<Sampler>,
    crossed: Crossed,
    /// How long the last packets may be under way.
    linger: Duration,
}

impl<'s> Crossing<'s> {
    /// The path begins with the trial's seed, and whoever listens begins to listen to what the
    /// target's port sends and receives.
    ///
    /// # Errors
    /// If the wire cannot be listened on.
    pub fn begin(
        scene: Option<&'s Scene>,
        trial: &Trial,
        port: u16,
        (stage, relay): (&Stage, Option<Sampler>),
    ) -> Result<Crossing<'s>, Stop> {
        let mut crossed = Crossed::default();
        if let (Footing::Forbidden(why, mend), true) = (&stage.footing, stage.has_hosts()) {
            crossed.doubts.push(Doubt::PathForbidden(why.clone(), mend.clone()));
        }
        let Some(scene) = scene else {
            let linger = Duration::ZERO;
            let (before, hearing) = (None, None);
            return Ok(Crossing { scene: None, before, hearing, relay, crossed, linger });
        };
        crossed.describe(scene, stage.path.as_ref());
        scene.begin(trial.seed);
        let before = scene.path_counts();
        let is_secured = weigh_model::tls::is_on(&trial.settings);
        let subscribers = trial.load.subscribers;
        let notes = match stage.shows_session {
            true => session::notes(subscribers),
            false => Notes::default(),
        };
        let listening = || Hearing::begin(scene, port, stage, (is_secured, notes, &trial.load));
        let hearing = stage.is_heard.then(listening).transpose()?;
        let linger = stage.path.as_ref().map_or(Duration::ZERO, round_trip);
        Ok(Crossing { scene: Some(scene), before, hearing, relay, crossed, linger })
    }

    /// Does something on the generator's host.
    pub fn on_generator<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let Some(scene) = self.scene else { return work() };
        let ourselves = |error: &dyn std::fmt::Display| Failure::Ourselves(error.to_string());
        let host = scene.host(GENERATOR).map_err(|error| ourselves(&error))?;
        host.inside(|| Ok(work())).map_err(|error| ourselves(&error))?
    }

    /// What came of it, once the last packets have arrived.
    pub fn end(self) -> Crossed {
        let Crossing { scene, before, hearing, relay, mut crossed, linger } = self;
        crossed.relay = relay.and_then(|sampler| sampler.stop().ok());
        let Some(scene) = scene else { return crossed };
        if let Some(hearing) = hearing {
            std::thread::sleep(linger.min(LINGER_MAX));
            let (heard, doubts) = hearing.stop();
            crossed.heard = heard;
            crossed.doubts.extend(doubts);
        }
        crossed.counts = scene.path_counts().map(|after| match before {
            Some(before) => since(after, &before),
            None => after,
        });
        crossed.hindrance = scene.failed();
        crossed.doubts.extend(scene.failed().map(Doubt::PathGone));
        crossed
    }
}

/// The longest that a packet and its answer are usually under way.
fn round_trip(path: &Path) -> Duration {
    let one = |direction: &Direction| direction.delay.0;
    Duration::from_nanos(one(&path.up) + one(&path.down)) + SLACK
}

/// What happened on the way.
#[derive(Default)]
pub struct Crossed {
    /// Places of the clients' hosts among those of the scene.
    clients: Vec<usize>,
    counts: Option<PathCounts>,
    /// The link layer of the path, where that is not Ethernet.
    radio: Option<RadioLink>,
    /// Packets that the path dropped, once that was told.
    dropped: Option<u64>,
    heard: Option<Heard>,
    /// What the relay's process used: all that was seen of it, and in the window.
    relay: Option<Recording>,
    relay_use: Option<Usage>,
    doubts: Vec<Doubt>,
    scene: Vec<(&'static str, String)>,
    /// What took the path away.
    hindrance: Option<String>,
    /// The lines up and down, where their rates stay as they are.
    lines: Option<[Direction; 2]>,
}

/// What the generator's codecs know of a trial, to hold against what was on the wire.
pub struct Carried {
    /// Messages handed over, warm-up included.
    messages: u64,
    /// What each connection carried.
    contents: Option<Contents>,
    /// What TLS counted of itself.
    tls: Option<Handshakes>,
}

/// Handshakes as rustls counted them.
pub struct Handshakes {
    /// Bytes sent and received, without tickets in TLS 1.3.
    pub bytes: (u64, u64),
    /// How many were finished.
    pub count: u64,
}

impl Carried {
    /// From the generator's books.
    pub fn of(outcome: &mut Outcome, tls: Option<Handshakes>) -> Carried {
        let producers = &outcome.shards.accounts.producers;
        let messages = producers.iter().map(|one| one.sent + one.warmup_sent).sum();
        Carried { messages, contents: outcome.shards.contents.take(), tls }
    }
}

impl Crossed {
    /// Processor time of the forwarder, of whoever listened and of the relay: neither the
    /// generator's nor the target's.
    pub fn cpu_ns(&self) -> u64 {
        let listening = self.heard.as_ref().map_or(0, Heard::cpu_ns);
        let relay = self.relay_use.map_or(0, |usage| usage.cpu_ns + usage.own_cpu_ns);
        listening + relay + self.counts.as_ref().map_or(0, |counts| counts.cpu_ns)
    }

    /// Says when the window was, on the monotonic clock.
    pub fn weigh_between(&mut self, from_ns: u64, to_ns: u64) {
        self.relay_use = self.relay.as_ref().and_then(|own| own.window(from_ns, to_ns));
    }

    /// Why nobody could be reached, where the path has gone.
    pub fn hindrance(&self) -> Option<&str> {
        self.hindrance.as_deref()
    }

    /// What TCP knew of the path, over time. `epoch_unix_ns` is when the trial's clock stood at 0.
    pub fn tcp(&self, trial: &str, epoch_unix_ns: u64) -> Vec<Event> {
        let Some(heard) = &self.heard else { return Vec::new() };
        let rows = tcp_view::rows(trial, epoch_unix_ns, &heard.kernel.samples);
        rows.into_iter().map(Event::TcpSample).collect()
    }

    /// Puts it into the record of the trial. What is left are its connections, one by one, and one
    /// session packet by packet, if there was a complete one and it was asked for.
    pub fn tell(
        mut self,
        carried: &Carried,
        lane: &Lane,
        finished: &mut TrialFinished,
    ) -> Vec<Event> {
        if let Some(counts) = self.counts.take() {
            self.tell_path(&counts, carried.messages, finished);
        }
        let mut told = Vec::new();
        if let Some(Heard { mut account, kernel, second }) = self.heard.take() {
            self.doubts.extend(carried.tls.as_ref().and_then(|tls| differing(&account, tls)));
            let contents = carried.contents.as_ref();
            self.doubts.extend(contents.and_then(|own| heard::split(&mut account, own)));
            self.tell_wire(&account, carried, finished);
            self.tell_kernel(&account, &kernel, finished);
            let rows = heard::rows(&account, contents, &finished.trial);
            told.push(Event::Connections(Box::new(rows)));
            let of_trial = (finished.trial.as_str(), carried.messages);
            let activity = contents.and_then(|own| activity::of(&account, own, of_trial, lane));
            told.extend(activity.map(|own| Event::Activity(Box::new(own))));
            let is_ours = matches!(lane.against, Against::Reference);
            let target = if is_ours { REFERENCE } else { &finished.target };
            let shown =
                session::told(&finished.trial, &account, lane.protocol, (target, self.dropped));
            told.extend(shown.map(|session| Event::SessionPackets(Box::new(session))));
            if let Some(second) = second {
                self.tell_second(second, carried, finished);
            }
        }
        if let Some(usage) = self.relay_use {
            finished.metrics.insert("relay.cpu_percent".to_owned(), usage.percent_mean);
        }
        finished.doubts.extend(self.doubts.iter().map(Doubt::record));
        let scene = self.scene.into_iter().map(|(key, text)| (key.to_owned(), text));
        finished.scene.extend(scene);
        told
    }

    fn describe(&mut self, scene: &Scene, path: Option<&Path>) {
        let hosts = scene.hosts().iter().enumerate();
        self.clients = hosts.filter(|(_, host)| is_client(host)).map(|(place, _)| place).collect();
        let offloads = match scene.offloads() {
            Offloads::Off => "off",
            Offloads::AsCaptured => "on, as captured",
        };
        self.scene.push(("offloads", offloads.to_owned()));
        self.scene.push(("carrier", scene.carrier().to_owned()));
        let scheduling = |is_first| match is_first {
            true => "first in, first out scheduling",
            false => "ordinary",
        };
        let forwarder = scene.has_priority().map(|is_first| scheduling(is_first).to_owned());
        self.scene.extend(forwarder.map(|words| ("forwarder", words)));
        if let Some(path) = path {
            self.scene.push(("path", path.name.clone()));
            self.scene.push(("path.up", path.up.to_string()));
            self.scene.push(("path.down", path.down.to_string()));
            self.scene.push(("mtu_bytes", path.mtu.to_string()));
            self.radio = RadioLink::of(path);
            self.scene.extend(self.radio.as_ref().map(|radio| ("path.link", radio.words())));
            if path.steps.is_empty() {
                self.lines = Some([path.up.clone(), path.down.clone()]);
            } else {
                self.scene.push(("path.steps", format!("{} changes over time", path.steps.len())));
            }
        }
        if !scene.untuned().is_empty() {
            self.doubts.push(Doubt::HostsUntuned(scene.untuned().join("; ")));
        }
    }

    fn tell_path(&mut self, counts: &PathCounts, messages: u64, finished: &mut TrialFinished) {
        let (mut up, mut down) = (WayCounts::default(), WayCounts::default());
        for port in self.clients.iter().filter_map(|place| counts.ports.get(*place)) {
            up += port.up;
            down += port.down;
        }
        let asked = self.asked(counts, messages, finished);
        let metrics = &mut finished.metrics;
        let mut add = |name: &str, value: f64| {
            metrics.insert(format!("path.{name}"), value);
        };
        for (way, share) in ["up", "down"].into_iter().zip(asked) {
            share.into_iter().for_each(|share| add(&format!("{way}.asked_ratio"), share));
        }
        for (way, of) in [("up", &up), ("down", &down)] {
            add(&format!("{way}.packets"), of.offered as f64);
            add(&format!("{way}.lost_packets"), of.lost as f64);
            add(&format!("{way}.queue_full_packets"), of.queue_full as f64);
            add(&format!("{way}.doubled_packets"), of.doubled as f64);
        }
        add("late_packets", counts.late as f64);
        add("lateness_ns.mean", counts.lateness_ns_mean());
        add("lateness_ns.max", counts.lateness_ns_max as f64);
        add("overrun_packets", counts.overruns as f64);
        let foreign = counts.ports.iter().map(|port| port.foreign + port.unroutable).sum::<u64>();
        add("foreign_packets", foreign as f64);
        add("forwarder_cpu_ns", counts.cpu_ns as f64);
        if counts.is_bent() {
            self.doubts.push(Doubt::PathBent(bent(counts)));
        }
        let dropped = [&up, &down].map(|way| way.lost + way.queue_full);
        let dropped = dropped.iter().sum::<u64>() + counts.overruns;
        self.dropped = Some(gone(counts));
        let is_short = finished.ledger.lost.is_some_and(|lost| lost > 0);
        if dropped > 0 && (is_short || finished.ledger.not_sent > 0) {
            self.doubts.push(Doubt::PathDropped(dropped));
        }
    }

    /// How much of the rate of the busiest line up and down the load asked for: the bytes that a
    /// message brought to it, over the whole trial, times the messages in a second of the window.
    /// `None` where a line has no rate, or one that changes.
    fn asked(
        &self,
        counts: &PathCounts,
        messages: u64,
        finished: &TrialFinished,
    ) -> [Option<f64>; 2] {
        let per_s = finished.metrics.get("throughput_in_per_s").copied();
        let Some((lines, per_s)) = self.lines.as_ref().zip(per_s).filter(|_| messages > 0) else {
            return [None, None];
        };
        let of = |line: &Direction, way: fn(&PortCounts) -> WayCounts| {
            let rate = line.rate?.0 as f64;
            let ports = self.clients.iter().filter_map(|place| counts.ports.get(*place)).map(way);
            let brought = ports.map(|way| way.offered_bytes + way.offered * line.overhead.0);
            Some(brought.max()? as f64 * 8.0 / messages as f64 * per_s / rate)
        };
        [of(&lines[0], |port| port.up), of(&lines[1], |port| port.down)]
    }

    fn tell_wire(&mut self, account: &Account, carried: &Carried, finished: &mut TrialFinished) {
        finished.metrics.extend(account.metrics(Some(carried.messages)));
        if let Some(radio) = &self.radio {
            radio.tell(account, carried.messages, &mut finished.metrics);
        }
        if self.dropped == Some(0) {
            let again =
                (account.sent.total() + account.received.total()).retransmitted_packets as f64;
            finished.metrics.insert("wire.too_early_packets".to_owned(), again);
        }
        if let Some(contents) = &carried.contents {
            finished.metrics.extend(heard::hops(account, contents, carried.messages));
        }
        if let Some(interface) = &account.interface {
            let offloads = &interface.offloads;
            let state = |name: &str, is_on: Option<bool>| match is_on {
                Some(true) => format!("{name} on"),
                Some(false) => format!("{name} off"),
                None => format!("{name} unknown"),
            };
            let states = [
                state("TSO", offloads.tso),
                state("GSO", offloads.gso),
                state("GRO", offloads.gro),
            ];
            self.scene.retain(|(key, _)| !matches!(*key, "offloads" | "mtu_bytes"));
            let counting = match account.counting {
                Counting::OnTheWire => "",
                Counting::AsCaptured => ", as captured",
            };
            self.scene.push(("offloads", states.join(", ") + counting));
            self.scene.push(("mtu_bytes", interface.mtu_bytes.to_string()));
            self.scene.push(("link", interface.link.words().to_owned()));
        }
        self.doubts.extend(hearing::missed(account, ""));
    }

    /// The same figures of the second hop, under names of their own. Its connections are not the
    /// generator's, but what all of them carry is.
    fn tell_second(
        &mut self,
        mut account: Account,
        carried: &Carried,
        finished: &mut TrialFinished,
    ) {
        if let Some(contents) = &carried.contents {
            self.doubts.extend(heard::split_as_one(&mut account, contents));
        }
        let figures = account.metrics(Some(carried.messages)).into_iter();
        finished.metrics.extend(figures.map(|(name, value)| (format!("relay.{name}"), value)));
        self.doubts.extend(hearing::missed(&account, "behind the relay: "));
    }

    /// Holds the capture against the kernel's own counters of the generator's sockets.
    fn tell_kernel(
        &mut self,
        account: &Account,
        kernel: &KernelAccount,
        finished: &mut TrialFinished,
    ) {
        tell_round_trips(kernel, finished);
        let found = agreement(account, &kernel.sockets);
        let metrics = &mut finished.metrics;
        // What the sockets sent and received as segments, whatever a capture sees of it.
        let own = || kernel.sockets.iter().filter(|view| view.role == KernelRole::Opened);
        let sum = |of: fn(&TcpFigures) -> u64| own().map(|view| of(&view.figures)).sum::<u64>();
        metrics.insert("wire.kernel.sent_packets".to_owned(), sum(|f| f.segments_out) as f64);
        metrics.insert("wire.kernel.received_packets".to_owned(), sum(|f| f.segments_in) as f64);
        metrics.insert("wire.kernel.sockets_compared".to_owned(), found.compared as f64);
        metrics.insert("wire.kernel.differences".to_owned(), found.differences.len() as f64);
        self.doubts.extend(hearing::untold(kernel, &found));
        if let Some(first) = found.differences.first() {
            self.doubts.push(Doubt::Wire(
                format!(
                    "capture and kernel differ in {} figures of {} sockets, the first: {} > {}, \
                     {:?} by the kernel {}, captured {}",
                    found.differences.len(),
                    found.compared,
                    first.local,
                    first.remote,
                    first.figure,
                    first.kernel,
                    first.captured
                ),
                "take the larger one; where they differ by much, please report it with the run \
                 folder",
            ));
        }
    }
}

/// Handshakes as they were captured, before tickets are told from content, and as TLS counted them,
/// where all of them were seen and finished.
fn differing(account: &Account, counted: &Handshakes) -> Option<Doubt> {
    let secured = account.connections.iter().filter(|found| found.tls.is_some()).count();
    let is_whole = account.connections_folded == 0 && secured as u64 == counted.count;
    let of = |phases: &Phases| phases.total().layers.tls_handshake;
    let captured = (of(&account.sent), of(&account.received));
    (is_whole && account.packets_dropped == 0 && captured != counted.bytes).then(|| {
        let seen = format!(
            "the wire carried {} and {} bytes of TLS handshakes, TLS wrote and read {} and {}",
            captured.0, captured.1, counted.bytes.0, counted.bytes.1
        );
        Doubt::Wire(seen, "please report it with the run folder")
    })
}

/// What TCP itself knew of the path, over all samples of all connections.
fn tell_round_trips(kernel: &KernelAccount, finished: &mut TrialFinished) {
    let samples = &kernel.samples;
    if samples.is_empty() {
        return;
    }
    let mean = |of: fn(&Sample) -> u32| {
        samples.iter().map(|sample| f64::from(of(sample))).sum::<f64>() / samples.len() as f64
    };
    let metrics = &mut finished.metrics;
    metrics.insert("tcp.round_trip_us.mean".to_owned(), mean(|s| s.round_trip_us));
    let longest = samples.iter().map(|sample| sample.round_trip_us).max().unwrap_or(0);
    metrics.insert("tcp.round_trip_us.max".to_owned(), longest.into());
    let opened = kernel.sockets.iter().filter(|socket| socket.role == KernelRole::Opened);
    let again: u64 = opened.map(|socket| socket.figures.segments_retransmitted).sum();
    metrics.insert("tcp.retransmitted_segments".to_owned(), again as f64);
    let window = mean(|s| s.congestion_window_segments);
    metrics.insert("tcp.congestion_window_segments.mean".to_owned(), window);
}

/// Packets that never reached the host that they were for, whatever took them.
fn gone(counts: &PathCounts) -> u64 {
    let of = |port: &PortCounts| {
        let ways = [&port.up, &port.down].map(|way| way.lost + way.queue_full);
        ways.iter().sum::<u64>() + port.refused + port.overflowed
    };
    counts.ports.iter().map(of).sum::<u64>() + counts.overruns
}

fn bent(counts: &PathCounts) -> String {
    let of_ports = |of: fn(&PortCounts) -> u64| counts.ports.iter().map(of).sum::<u64>();
    let all = [
        (counts.late, "packets left more than 1 ms late"),
        (counts.overruns, "packets were thrown away for want of memory"),
        (of_ports(|port| port.overflowed), "packets overflowed before the forwarder saw them"),
        (of_ports(|port| port.refused), "packets were not taken by an interface"),
    ];
    let told = all.iter().filter(|(count, _)| *count > 0);
    told.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// What was counted after `before`. The longest lateness is that of the whole scene.
fn since(mut after: PathCounts, before: &PathCounts) -> PathCounts {
    for (port, earlier) in after.ports.iter_mut().zip(&before.ports) {
        for (way, earlier) in [(&mut port.up, &earlier.up), (&mut port.down, &earlier.down)] {
            way.offered -= earlier.offered;
            way.offered_bytes -= earlier.offered_bytes;
            way.queue_full -= earlier.queue_full;
            way.lost -= earlier.lost;
            way.doubled -= earlier.doubled;
        }
        port.foreign -= earlier.foreign;
        port.unroutable -= earlier.unroutable;
        port.written -= earlier.written;
        port.refused -= earlier.refused;
        port.overflowed -= earlier.overflowed;
    }
    after.late -= before.late;
    after.lateness_ns_sum -= before.lateness_ns_sum;
    after.overruns -= before.overruns;
    after.cpu_ns -= before.cpu_ns;
    after
}

/// What a reference server is called in a diagram.
const REFERENCE: &str = "reference server";

/// Longer than a busy machine takes to hand a packet on.
const SLACK: Duration = Duration::from_millis(50);

/// No end of a trial waits longer for its last packets.
const LINGER_MAX: Duration = Duration::from_secs(2);
