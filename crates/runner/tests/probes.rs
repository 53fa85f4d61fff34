//! A new probe is one file and one line of the list: this file adds one, and compares the order in
//! which all of them are called with a table.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use weigh_engine::outcome::Outcome;
use weigh_engine::serving::Serving;
use weigh_model::Nanos;
use weigh_model::event::TrialFinished;
use weigh_model::plan::{Plan, TargetLife};
use weigh_protocols as registry;
use weigh_runner::case::known::Known;
use weigh_runner::case::lanes::{Against, Lane};
use weigh_runner::case::secrets::Secrets;
use weigh_runner::case::{Case, decide};
use weigh_runner::exit::Stop;
use weigh_runner::interrupts::Interrupts;
use weigh_runner::probe::{Edge, Entry, Phase, Probe, Probes, entry, fresh, order};
use weigh_runner::probes::PROBES;
use weigh_runner::probes::metering::Metering;
use weigh_runner::targets::hosts::Stage;
use weigh_runner::targets::observers::Observers;
use weigh_runner::targets::pool::Targets;
use weigh_runner::trial::context::{TrialContext, TrialOptions};
use weigh_runner::trial::identity::Trials;
use weigh_runner::trial::measure::{Weighed, run_with};
use weigh_runner::watcher::Silent;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pinning::{CoreSet, Pinning};

/// The order of each phase: what `docs/decisions/0046-the-runner.md` decided, and a probe that was
/// added behind all others.
const TABLE: [(Phase, &str); 9] = [
    (Phase::Check, "emulated added"),
    (Phase::Prepare, "counters energy background emulated added"),
    (Phase::Begin, "tls cpu stages host messages room relay path capture counters added"),
    (Phase::Window, "counters energy cpu host room added"),
    (Phase::End, "counters relay capture path messages added"),
    (Phase::Settle, "messages stages relay cpu host capture path tcp room emulated added"),
    (Phase::Leave, "background energy counters tls capture emulated added"),
    (Phase::Record, "emulated tls cpu path capture tcp counters relay added"),
    (Phase::Amend, "counters relay stages messages host background energy fleet added"),
];

/// The borders of a trial with this number of messages, which ends with the last one.
const EDGES: [Edge; 2] = [Edge::Began, Edge::Ended];

/// The added line.
const ADDED: [u8; Phase::ALL.len()] = [9, 9, 90, 9, 9, 90, 9, 9, 9];

/// A probe that notes when it is called, and as which line of the list.
#[derive(Default)]
struct Noting<const LINE: usize>;

static CALLS: Mutex<Vec<(Phase, usize)>> = Mutex::new(Vec::new());

impl<const LINE: usize> Noting<LINE> {
    fn called(&self, phase: Phase) {
        CALLS.lock().unwrap_or_else(PoisonError::into_inner).push((phase, LINE));
    }
}

impl<const LINE: usize> Probe for Noting<LINE> {
    fn check(&self, _: &Plan, _: &[Case]) -> Result<(), Stop> {
        self.called(Phase::Check);
        Ok(())
    }
    fn prepare(&mut self, _: &mut TrialContext<'_>) -> Result<(), Stop> {
        self.called(Phase::Prepare);
        Ok(())
    }
    fn begin(&mut self, _: &mut TrialContext<'_>) -> Result<(), Stop> {
        self.called(Phase::Begin);
        Ok(())
    }
    fn window(&mut self, _: Edge, _: Nanos) {
        self.called(Phase::Window);
    }
    fn end(&mut self, _: &mut TrialContext<'_>, _: Option<&mut Outcome>) {
        self.called(Phase::End);
    }
    fn settle(&mut self, _: &mut TrialContext<'_>, _: &mut Outcome) -> Result<(), Stop> {
        self.called(Phase::Settle);
        Ok(())
    }
    fn leave(&mut self, _: &mut TrialContext<'_>, _: &mut Outcome) {
        self.called(Phase::Leave);
    }
    fn record(&mut self, _: &mut TrialContext<'_>, _: &mut TrialFinished) {
        self.called(Phase::Record);
    }
    fn amend(&mut self, _: &mut TrialContext<'_>, _: &mut TrialFinished) {
        self.called(Phase::Amend);
    }
}

/// One for each line of the list, and one more.
const NOTING: [fn() -> Box<dyn Probe>; 16] = [
    fresh::<Noting<0>>,
    fresh::<Noting<1>>,
    fresh::<Noting<2>>,
    fresh::<Noting<3>>,
    fresh::<Noting<4>>,
    fresh::<Noting<5>>,
    fresh::<Noting<6>>,
    fresh::<Noting<7>>,
    fresh::<Noting<8>>,
    fresh::<Noting<9>>,
    fresh::<Noting<10>>,
    fresh::<Noting<11>>,
    fresh::<Noting<12>>,
    fresh::<Noting<13>>,
    fresh::<Noting<14>>,
    fresh::<Noting<15>>,
];

#[test]
fn probes_are_called_in_the_order_of_the_table() {
    assert_eq!(PROBES.len() + 1, NOTING.len(), "one for each line, and one more");
    let mut entries: Vec<Entry> =
        PROBES.iter().zip(NOTING).map(|(own, make)| Entry { make, ..*own }).collect();
    entries.push(entry("added", fresh::<Noting<15>>, ADDED));
    for (phase, names) in TABLE {
        assert_eq!(order(&entries, phase).join(" "), names, "{phase:?}");
    }
    // Nothing of a trial needs a probe: these observe nothing, and the ledger is complete.
    let weighed = weighed(&entries);
    assert_eq!(weighed.finished.ledger.sent, 20);
    let calls = std::mem::take(&mut *CALLS.lock().unwrap());
    let named = |(phase, line): &(Phase, usize)| (*phase, entries[*line].name);
    let calls: Vec<(Phase, &str)> = calls.iter().map(named).collect();
    let rounds = |phase: Phase| if phase == Phase::Window { EDGES.len() } else { 1 };
    let expected = TABLE.iter().flat_map(|(phase, names)| {
        (0..rounds(*phase)).flat_map(move |_| names.split(' ').map(move |name| (*phase, name)))
    });
    assert_eq!(calls, expected.collect::<Vec<_>>());
}

/// Counts the borders of the window.
#[derive(Default)]
struct Borders {
    edges: Vec<Edge>,
}

impl Probe for Borders {
    fn window(&mut self, edge: Edge, _now: Nanos) {
        self.edges.push(edge);
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        assert_eq!(self.edges, EDGES);
        let span = trial.span();
        finished.metrics.insert("added.window_ns".to_owned(), span.seconds() * 1e9);
    }
}

#[test]
fn a_probe_that_is_added_is_in_the_record_with_the_others() {
    let mut entries = PROBES.to_vec();
    entries.push(entry("added", fresh::<Borders>, ADDED));
    let weighed = weighed(&entries);
    let metrics = &weighed.finished.metrics;
    // 20 messages at 200/s take about 100 ms.
    assert!(metrics["added.window_ns"] > 5e7, "{metrics:?}");
    assert!(metrics.contains_key("generator_cpu_us_per_message"), "{metrics:?}");
    assert!(weighed.observed.descriptors.is_some(), "room was observed");
}

/// A trial against a server in this process, with these probes.
fn weighed(entries: &[Entry]) -> Weighed {
    let protocol = registry::find("tcp").unwrap();
    let lane = Lane::new(protocol, Against::Reference, BTreeMap::new()).unwrap();
    let host = protocol.host(&lane.settings).unwrap();
    let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = Serving::start(&host, on, 1).unwrap();
    let text = format!(
        "target = \"tcp://{}\"\n[load]\nconnections = 1\nrate = \"200/s\"\nmessages = 20\n\
         warmup = \"0s\"\n",
        serving.address()
    );
    let catalogue = Catalogue::load(None).unwrap();
    let known = Known::new(&catalogue, &Silent);
    let resolved = weigh_plan::read(&text, &known).unwrap().resolve("probes").unwrap();
    let cases = decide(&resolved.plan, &catalogue, &Secrets::default()).unwrap();
    Probes::of(entries).check(&resolved.plan, &cases).unwrap();
    let pinning = Pinning::divide(&CoreSet::allowed().unwrap(), 1, 1);
    let folder = std::env::temp_dir().join(format!("weigh-probes-{}", std::process::id()));
    let mut targets =
        Targets::new(TargetLife::Fresh, &catalogue, 1, folder.clone(), Path::new("weigh"));
    let (progress, heard) = mpsc::channel();
    let options = TrialOptions {
        pinning: &pinning,
        shards: 1,
        every: None,
        interrupts: &Interrupts::default(),
        progress,
        messages: None,
        stage: Stage::default(),
        metering: &Metering::default(),
        lookouts: &Observers::default(),
        say: &|_| {},
        emulate: &[],
        background: None,
        fleet: None,
    };
    let trial = Trials::new(&resolved.plan, &cases).trial(0, &cases[0], 0);
    let (lane, material) = (&cases[0].lane, &cases[0].material);
    let weighed = run_with(entries, lane, trial, material, &options, &mut targets).unwrap();
    drop((options, heard));
    let _ = std::fs::remove_dir_all(folder);
    weighed
}
