//! Packets captured on the hosts of a trial.

use std::time::Duration;
use weigh_model::numbers::count;

use weigh_capture::account::{Notes, Phases};
use weigh_capture::{Account, Counting};
use weigh_engine::outcome::Outcome;
use weigh_model::Warning;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::path::{Direction, Path};

use crate::case::lanes::Against;
use crate::exit::Stop;
use crate::probe::Probe;
use crate::probes::codec_counts::CodecCounts;
use crate::probes::listeners::{self, Heard, Listeners, Listening};
use crate::probes::radio::RadioLink;
use crate::probes::{activity, capture_result, session};
use crate::targets::handshakes::Handshakes;
use crate::trial::context::{Findings, TrialContext};

/// Captures the traffic of the target's port on the hosts of the clients and behind a relay, and
/// reads the clients' kernel counters.
#[derive(Default)]
pub struct Capture {
    hearing: Option<Listeners>,
}

impl Probe for Capture {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let stage = &trial.options.stage;
        let Some(scene) = trial.lease.target.scene.as_ref().filter(|_| stage.is_heard) else {
            return Ok(());
        };
        let is_secured = weigh_model::tls::is_on(&trial.trial.settings);
        let notes = match stage.shows_session {
            true => session::notes(trial.load().subscribers),
            false => Notes::default(),
        };
        let port = trial.client.address.port();
        let listened = Listening { is_secured, notes, load: trial.load() };
        self.hearing = Some(Listeners::begin(scene, port, stage, listened)?);
        Ok(())
    }

    fn end(&mut self, trial: &mut TrialContext<'_>, _outcome: Option<&mut Outcome>) {
        let Some(hearing) = self.hearing.take() else { return };
        let linger = trial.options.stage.path.as_ref().map_or(Duration::ZERO, round_trip);
        std::thread::sleep(linger.min(LINGER_MAX));
        let (heard, warnings) = hearing.stop();
        trial.found.heard = heard;
        trial.found.warnings.extend(warnings);
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        trial.found.aside_cpu_ns += trial.found.heard.as_ref().map_or(0, Heard::cpu_ns);
        Ok(())
    }

    fn leave(&mut self, trial: &mut TrialContext<'_>, outcome: &mut Outcome) {
        trial.found.carried = CodecCounts::of(outcome, trial.found.handshakes.take());
    }

    fn record(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let Some(mut heard) = trial.found.heard.take() else { return };
        let (lane, found) = (trial.lane, &mut trial.found);
        let account = &mut heard.account;
        let (contents, tls) = (found.carried.contents.as_ref(), found.carried.tls.as_ref());
        found.warnings.extend(tls.and_then(|tls| differing(account, tls)));
        found.warnings.extend(contents.and_then(|own| capture_result::split(account, own)));
        let radio = trial.options.stage.path.as_ref().and_then(RadioLink::of);
        record_account(account, radio.as_ref(), found, finished);
        let contents = found.carried.contents.as_ref();
        let rows = capture_result::rows(account, contents, &finished.trial);
        found.events.push(Event::Connections(Box::new(rows)));
        let of_trial = (finished.trial.as_str(), found.carried.messages);
        let activity = contents.and_then(|own| activity::of(account, own, of_trial, lane));
        found.events.extend(activity.map(|own| Event::Activity(Box::new(own))));
        let is_ours = matches!(lane.against, Against::Reference);
        let target = if is_ours { REFERENCE } else { &finished.target };
        let shown = (target, found.dropped);
        let shown = session::told(&finished.trial, account, lane.protocol, shown);
        found.events.extend(shown.map(|session| Event::SessionPackets(Box::new(session))));
        found.heard = Some(heard);
    }
}

fn record_account(
    account: &Account,
    radio: Option<&RadioLink>,
    found: &mut Findings,
    finished: &mut TrialFinished,
) {
    let carried = &found.carried;
    finished.metrics.extend(account.metrics(Some(carried.messages)));
    if let Some(radio) = radio {
        radio.tell(account, carried.messages, &mut finished.metrics);
    }
    if found.dropped == Some(0) {
        let again = (account.sent.total() + account.received.total()).retransmitted_packets as f64;
        finished.metrics.insert("wire.too_early_packets".to_owned(), again);
    }
    if let Some(contents) = &carried.contents {
        finished.metrics.extend(capture_result::hops(account, contents, carried.messages));
    }
    if let Some(interface) = &account.interface {
        let offloads = &interface.offloads;
        let state = |name: &str, is_on: Option<bool>| match is_on {
            Some(true) => format!("{name} on"),
            Some(false) => format!("{name} off"),
            None => format!("{name} unknown"),
        };
        let states =
            [state("TSO", offloads.tso), state("GSO", offloads.gso), state("GRO", offloads.gro)];
        let counting = match account.counting {
            Counting::OnTheWire => "",
            Counting::AsCaptured => ", as captured",
        };
        let mut put = |key: &str, text: String| finished.scene.insert(key.to_owned(), text);
        put("offloads", states.join(", ") + counting);
        put("mtu_bytes", interface.mtu_bytes.to_string());
        put("link", interface.link.words().to_owned());
    }
    found.warnings.extend(listeners::missed(account, ""));
}

/// The longest usual time of a packet and its answer.
fn round_trip(path: &Path) -> Duration {
    let one = |direction: &Direction| direction.delay.0;
    Duration::from_nanos(one(&path.up) + one(&path.down)) + SLACK
}

/// Compares handshakes as captured, before tickets are separated from content, with those that TLS
/// counted, if all were captured and complete.
fn differing(account: &Account, counted: &Handshakes) -> Option<Warning> {
    let secured = account.connections.iter().filter(|found| found.tls.is_some()).count();
    let is_whole = account.connections_folded == 0 && secured as u64 == counted.count;
    let of = |phases: &Phases| phases.total().layers.tls_handshake;
    let captured = (of(&account.sent), of(&account.received));
    (is_whole && account.packets_dropped == 0 && captured != counted.bytes).then(|| {
        let seen = format!(
            "the wire carried {} and {} bytes of TLS handshakes, TLS wrote and read {} and {}",
            count(captured.0),
            count(captured.1),
            count(counted.bytes.0),
            count(counted.bytes.1)
        );
        Warning::Wire(seen, "please report it with the run folder")
    })
}

/// Name of a reference server in a diagram.
const REFERENCE: &str = "reference server";

/// Longer than a busy machine takes to pass a packet on.
const SLACK: Duration = Duration::from_millis(50);

/// Maximum wait for last packets at the end of a trial.
const LINGER_MAX: Duration = Duration::from_secs(2);
