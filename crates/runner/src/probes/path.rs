//! The emulated path between the hosts of a trial: its setup, and its effect on packets.

use weigh_engine::outcome::Outcome;
use weigh_model::Warning;
use weigh_model::event::TrialFinished;
use weigh_model::path::{Direction, Path as Line};
use weigh_testbed::hosts::{Offloads, Scene};
use weigh_testbed::link::counts::{PathCounts, PortCounts, WayCounts};

use crate::exit::Stop;
use crate::probe::Probe;
use crate::probes::radio::RadioLink;
use crate::targets::hosts::{Privileges, Stage, is_client};
use crate::trial::context::{Findings, TrialContext};

/// Starts the path with the trial's seed, and reads its counters.
#[derive(Default)]
pub struct Path {
    /// Positions of the clients' hosts among those of the scene.
    clients: Vec<usize>,
    before: Option<PathCounts>,
    counts: Option<PathCounts>,
    scene: Vec<(&'static str, String)>,
    /// The links up and down, if their rates are constant.
    lines: Option<[Direction; 2]>,
}

impl Probe for Path {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let stage: &Stage = &trial.options.stage;
        if let (Privileges::Forbidden(why, fix), true) = (&stage.privileges, stage.has_hosts()) {
            trial.found.warnings.push(Warning::PathForbidden(why.clone(), fix.clone()));
        }
        let Some(scene) = &trial.lease.target.scene else { return Ok(()) };
        self.describe(scene, stage.path.as_ref());
        if !scene.untuned().is_empty() {
            trial.found.warnings.push(Warning::HostsUntuned(scene.untuned().join("; ")));
        }
        scene.begin(trial.trial.seed);
        self.before = scene.path_counts();
        Ok(())
    }

    fn end(&mut self, trial: &mut TrialContext<'_>, _outcome: Option<&mut Outcome>) {
        let Some(scene) = &trial.lease.target.scene else { return };
        let before = self.before.take();
        self.counts = scene.path_counts().map(|after| match before {
            Some(before) => since(after, &before),
            None => after,
        });
        trial.found.hindrance = scene.failed();
        trial.found.warnings.extend(scene.failed().map(Warning::PathGone));
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        trial.found.aside_cpu_ns += self.counts.as_ref().map_or(0, |counts| counts.cpu_ns);
        Ok(())
    }

    fn record(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        if let Some(counts) = self.counts.take() {
            self.record_counts(&counts, &mut trial.found, finished);
        }
        let scene = std::mem::take(&mut self.scene).into_iter();
        finished.scene.extend(scene.map(|(key, text)| (key.to_owned(), text)));
    }
}

impl Path {
    fn describe(&mut self, scene: &Scene, path: Option<&Line>) {
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
            let radio = RadioLink::of(path);
            self.scene.extend(radio.map(|radio| ("path.link", radio.words())));
            if path.steps.is_empty() {
                self.lines = Some([path.up.clone(), path.down.clone()]);
            } else {
                self.scene.push(("path.steps", format!("{} changes over time", path.steps.len())));
            }
        }
    }

    fn record_counts(
        &self,
        counts: &PathCounts,
        found: &mut Findings,
        finished: &mut TrialFinished,
    ) {
        let messages = found.carried.messages;
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
            found.warnings.push(Warning::PathBent(bent(counts)));
        }
        let dropped = [&up, &down].map(|way| way.lost + way.queue_full);
        let dropped = dropped.iter().sum::<u64>() + counts.overruns;
        found.dropped = Some(gone(counts));
        let is_short = finished.ledger.lost.is_some_and(|lost| lost > 0);
        if dropped > 0 && (is_short || finished.ledger.not_sent > 0) {
            found.warnings.push(Warning::PathDropped(dropped));
        }
    }

    /// Load of the busiest link up and down as a share of its rate: bytes per message over the
    /// whole trial, times messages per second of the window. `None` if a link has no rate, or one
    /// that changes.
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
}

/// Packets that never reached their host, for any reason.
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
        (counts.overruns, "packets were dropped because the buffer was full"),
        (of_ports(|port| port.overflowed), "packets overflowed before the forwarder saw them"),
        (of_ports(|port| port.refused), "packets were rejected by an interface"),
    ];
    let told = all.iter().filter(|(count, _)| *count > 0);
    let words = |(count, what): &(u64, &str)| match count {
        1 => {
            format!("1 {}", what.replace("packets were", "packet was").replace("packets", "packet"))
        }
        count => format!("{count} {what}"),
    };
    told.map(words).collect::<Vec<_>>().join(", ")
}

/// Counts after `before`. The longest delay is that of the whole scene.
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
