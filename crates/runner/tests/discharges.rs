//! Logs as a discharge writes them, cut as a power cut cuts them, and what is read from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use weigh_model::plan::Plan;
use weigh_runner::discharges::entry::{Begun, Counts, EndReason, Entry, Gauge, SCHEMA, Standing};
use weigh_runner::discharges::report::{Figure, LaneFigure};
use weigh_runner::discharges::{
    Archive, ArchiveError, DischargeLog, Ending, LogError, Report, Start,
};

/// A folder that is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weigh-rundown-{}-{number}", std::process::id());
        Place(std::env::temp_dir().join(name))
    }

    /// A discharge of a lane in a start of the machine: this many sessions a second for so long.
    fn discharge(&self, lane: &str, boot: &str, (seconds, rate): (u64, u64)) -> PathBuf {
        let mut log = DischargeLog::create(&self.0, begun(lane, boot), BYTES_MAX).unwrap();
        // Any line holds the whole discharge so far: two are as good as all.
        for second in [1, seconds] {
            log.note(&standing(second, second * rate)).unwrap();
        }
        log.folder().to_owned()
    }

    fn read(&self, boot: &str) -> Archive {
        Archive::open(&self.0, &start(boot)).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plan(name: &str) -> Plan {
    let load = serde_json::json!({
        "pattern": "session", "connections": 1, "subscribers": 0, "topology": "fan-in",
        "duration": "1s", "warmup": "0s", "arrival": "closed", "think": "0s",
        "split": "exact", "body": "readings", "timeout": "5s",
    });
    let repeat = serde_json::json!({ "at_least": 1 });
    let plan = serde_json::json!({
        "name": name, "seed": 1, "load": load, "repeat": repeat, "case": [],
    });
    serde_json::from_value(plan).unwrap()
}

fn begun(lane: &str, boot: &str) -> Begun {
    Begun {
        schema: SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        started: "2026-11-21T10:00:00Z".to_owned(),
        boot: boot.to_owned(),
        machine: start(boot).machine,
        part: 1,
        lane: lane.to_owned(),
        lanes: vec!["a".to_owned(), "b".to_owned()],
        plan: plan("tank"),
        counts: Counts::Acknowledged,
        battery: Some("2000mAh@5V".parse().unwrap()),
        gauge_full_uah: None,
        no_gauge: Some("--no-gauge".to_owned()),
    }
}

fn start(boot: &str) -> Start {
    Start::new(Some(boot.to_owned()), Some("4d6f"))
}

fn standing(second: u64, sessions: u64) -> Entry {
    let at_ns = second * 1_000_000_000;
    let cpu_ns = second * 100_000_000;
    let (sent, acknowledged) = (sessions + 1, sessions);
    Entry::Standing(Standing { at_ns, sent, acknowledged, cpu_ns, ..Standing::default() })
}

fn figure(report: &Report, lane: usize, name: Figure) -> &LaneFigure {
    report.lanes[lane].figures.iter().find(|figure| figure.name == name).unwrap()
}

/// Five discharges of each of two lanes whose figures are known beforehand.
#[test]
fn five_discharges_of_two_lanes_give_what_went_in() {
    let place = Place::new();
    for round in 0..5u64 {
        place.discharge("a", &format!("boot-{round}-a"), (100 + round, 20));
        place.discharge("b", &format!("boot-{round}-b"), (50 + round, 10));
    }
    let report = Report::of(&place.read("boot-now"), None).unwrap();
    assert_eq!(report.lanes.iter().map(|lane| lane.n).collect::<Vec<_>>(), [5, 5]);
    let sessions = figure(&report, 0, Figure::SessionsPerCharge);
    assert!((sessions.value - 2040.0).abs() < 1e-9);
    // Five values 20 apart: s = 31.6228, t = 2.7764.
    let half = 2.776_445 * 31.622_777 / 5f64.sqrt();
    assert!((sessions.high.unwrap() - 2040.0 - half).abs() < 1e-3, "{sessions:?}");
    let lifetime = figure(&report, 1, Figure::LifetimeS);
    assert!((lifetime.value - 52.0).abs() < 1e-9);
    let mah = figure(&report, 1, Figure::RatedMahPerSession);
    let expected: f64 = (50..55).map(|seconds| 2000.0 / f64::from(seconds * 10)).sum::<f64>() / 5.0;
    assert!((mah.value - expected).abs() < 1e-9, "{mah:?}");
    let cpu = figure(&report, 0, Figure::CpuSPerSession);
    assert!((cpu.value - 0.005).abs() < 1e-12, "{cpu:?}");
    let verdict = &report.comparisons[0];
    assert_eq!((verdict.figure, verdict.verdict), (Figure::SessionsPerCharge, "higher"));
    assert!((verdict.ratio.unwrap() - 2040.0 / 520.0).abs() < 1e-9);
    assert_eq!(report.warnings, []);
}

/// Lanes take turns; a discharge that was not complete does not count as a turn.
#[test]
fn lanes_alternate() {
    let place = Place::new();
    let lanes = ["a".to_owned(), "b".to_owned()];
    let another = |boot: &str| {
        Archive::for_another(&place.0, (&plan("tank"), &lanes), &start(boot)).unwrap().next_lane(2)
    };
    assert_eq!(another("boot-0"), 0);
    for (round, expected) in [0usize, 1, 0, 1, 0].into_iter().enumerate() {
        let boot = format!("boot-{round}");
        assert_eq!(another(&boot), expected, "round {round}");
        // Killed: the machine has not been off since, so the same lane is still due.
        place.discharge(&lanes[expected], &boot, (3, 5));
        assert_eq!(another(&boot), expected, "round {round}, killed");
        place.discharge(&lanes[expected], &boot, (60, 5));
    }
    let report = Report::of(&place.read("boot-5"), None).unwrap();
    let codes: Vec<&str> = report.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == "not-run-down").count(), 5);
    assert_eq!(codes.iter().filter(|code| **code == "few-discharges").count(), 2);
    assert!(!codes.contains(&"not-alternating"), "{codes:?}");
    assert_eq!(report.lanes.iter().map(|lane| lane.n).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn the_end_is_told_by_the_machines_next_start() {
    let place = Place::new();
    let ended = |boot: &str, reason: Option<EndReason>| {
        let folder = place.discharge("a", boot, (5, 5));
        let Some(reason) = reason else { return };
        let mut text = fs::read(folder.join("part-0001.log")).unwrap();
        let entry = Entry::Ended { at_ns: 6_000_000_000, reason };
        text.extend(weigh_runner::discharges::line::encode(&entry).unwrap());
        fs::write(folder.join("part-0001.log"), text).unwrap();
    };
    ended("one", None);
    ended("two", Some(EndReason::Terminated));
    ended("three", Some(EndReason::Terminated));
    ended("three", Some(EndReason::Mains));
    ended("four", None);
    let endings: Vec<Ending> =
        place.read("four").discharges.iter().map(|discharge| discharge.ending).collect();
    let expected = [
        Ending::Power,
        Ending::ShutDown,
        Ending::Reported(EndReason::Terminated),
        Ending::Reported(EndReason::Mains),
        Ending::Killed,
    ];
    assert_eq!(endings, expected);
    let one = place.0.join("discharge-0005");
    let only = Archive::open(&one, &start("five")).unwrap();
    assert_eq!(only.discharges[0].ending, Ending::Power);
    let part = Archive::open(&one.join("part-0001.log"), &Start::default()).unwrap();
    assert_eq!(part.discharges[0].sessions(), 25);
    assert_eq!(part.discharges[0].ending, Ending::Unknown);
}

/// A log that was carried to another machine, or of one that has no name: whether the power went is
/// not known, and the discharge is not complete.
#[test]
fn another_machine_does_not_tell_how_a_discharge_ended() {
    let place = Place::new();
    place.discharge("a", "one", (5, 5));
    place.discharge("b", "two", (5, 5));
    let endings = |now: &Start| {
        let archive = Archive::open(&place.0, now).unwrap();
        archive.discharges.iter().map(|discharge| discharge.ending).collect::<Vec<_>>()
    };
    let named = |machine: Option<&str>| Start::new(Some("elsewhere".to_owned()), machine);
    assert_eq!(endings(&start("three")), [Ending::Power, Ending::Power]);
    let booted_unknown = Start { boot: None, ..start("three") };
    for now in [named(Some("other")), named(None), booted_unknown, Start::default()] {
        assert_eq!(endings(&now), [Ending::Power, Ending::Unknown], "{now:?}");
        let report = Report::of(&Archive::open(&place.0, &now).unwrap(), None).unwrap();
        let last = &report.discharges[1];
        assert_eq!((last.ended, last.complete), ("unknown", false));
        let warning = report.warnings.iter().find(|warning| warning.code == "end-unknown").unwrap();
        assert!(warning.text.contains("the machine it ran on shows"), "{}", warning.text);
    }
    // The kernel draws a boot id once: no other boot has it.
    let same_start = Start { machine: None, ..start("two") };
    assert_eq!(endings(&same_start), [Ending::Power, Ending::Killed]);
}

/// A log of a version that named no machine is read; the start that follows in its folder marks its
/// end as before, and a board that has no name takes its turns.
#[test]
fn logs_that_name_no_machine_are_read() {
    let place = Place::new();
    let lanes = ["a".to_owned(), "b".to_owned()];
    let old = Begun { machine: None, ..begun("a", "one") };
    let mut log = DischargeLog::create(&place.0, old, BYTES_MAX).unwrap();
    log.note(&standing(5, 25)).unwrap();
    let text = fs::read_to_string(log.folder().join("part-0001.log")).unwrap();
    assert!(!text.contains("machine"), "{text}");
    drop(log);
    assert_eq!(place.read("two").discharges[0].ending, Ending::Unknown);
    let nameless = Start::new(Some("two".to_owned()), None);
    for now in [&nameless, &start("two")] {
        let next = Archive::for_another(&place.0, (&plan("tank"), &lanes), now).unwrap();
        assert_eq!(next.next_lane(2), 1);
    }
    place.discharge("b", "two", (5, 5));
    assert_eq!(place.read("three").discharges[0].ending, Ending::Power);
}

/// A program that ends for a reason of its own records it, once; if the machine's next start
/// follows, it does not count as a power cut.
#[test]
fn a_program_that_gave_up_is_no_power_cut() {
    let place = Place::new();
    let mut log = DischargeLog::create(&place.0, begun("a", "then"), BYTES_MAX).unwrap();
    log.note(&standing(1, 5)).unwrap();
    log.give_up(2_000_000_000);
    drop(log);
    let mut log = DischargeLog::create(&place.0, begun("a", "then"), BYTES_MAX).unwrap();
    log.note(&Entry::Ended { at_ns: 1, reason: EndReason::Mains }).unwrap();
    log.give_up(2);
    drop(log);
    // A folder in the place of the next part: nothing can be written there.
    let mut log = DischargeLog::create(&place.0, begun("a", "then"), SMALL).unwrap();
    log.note(&standing(1, 5)).unwrap();
    let in_the_way = log.folder().join("part-0002.log");
    fs::create_dir(&in_the_way).unwrap();
    let failed = (2..1_000).find_map(|second| log.note(&standing(second, second)).err());
    assert!(matches!(failed, Some(LogError::Unwritable { .. })), "{failed:?}");
    drop(log);
    fs::remove_dir(&in_the_way).unwrap();
    let archive = place.read("now");
    let endings: Vec<Ending> = archive.discharges.iter().map(|own| own.ending).collect();
    let failed = Ending::Reported(EndReason::Failed);
    assert_eq!(endings, [failed, Ending::Reported(EndReason::Mains), failed]);
    assert!(archive.discharges.iter().all(|own| !own.is_complete()));
}

/// A log that is being written is reported as running, and no other process can write to it.
#[test]
fn a_discharge_that_goes_on_is_told_as_such() {
    let place = Place::new();
    let mut log = DischargeLog::create(&place.0, begun("a", "now"), BYTES_MAX).unwrap();
    log.note(&standing(1, 5)).unwrap();
    assert_eq!(place.read("now").discharges[0].ending, Ending::Running);
    let lanes = ["a".to_owned(), "b".to_owned()];
    let another = || Archive::for_another(&place.0, (&plan("tank"), &lanes), &start("now"));
    assert!(matches!(another(), Err(ArchiveError::Running { .. })));
    drop(log);
    assert!(another().is_ok());
    let other = Archive::for_another(&place.0, (&plan("other"), &lanes), &start("now"));
    assert!(matches!(other, Err(ArchiveError::OtherPlan { .. })));
}

/// Ten times as long as there is room for: it stays below its bound, and the last count is the last
/// count.
#[test]
fn a_long_discharge_stays_within_its_bound() {
    let place = Place::new();
    let mut log = DischargeLog::create(&place.0, begun("a", "then"), SMALL).unwrap();
    for second in 1..=1_000 {
        log.note(&standing(second, second * 3)).unwrap();
        if second % 50 == 0 {
            assert!(bytes_in(log.folder()) <= SMALL);
        }
    }
    let parts = fs::read_dir(log.folder()).unwrap().count();
    drop(log);
    assert_eq!(parts, 3);
    let discharge = &place.read("now").discharges[0];
    assert_eq!((discharge.sessions(), discharge.ending), (3_000, Ending::Power));
    assert_eq!((discharge.torn_bytes, discharge.damaged_lines), (0, 0));
}

fn bytes_in(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_bound_that_is_too_small_says_what_would_do() {
    let place = Place::new();
    let error = DischargeLog::create(&place.0, begun("a", "now"), 900).unwrap_err();
    let LogError::TooSmall { needed, .. } = error else { panic!("{error}") };
    assert!(DischargeLog::create(&place.0, begun("a", "now"), needed).is_ok());
}

#[test]
fn gauges_count_where_every_discharge_has_one() {
    let place = Place::new();
    let begun = Begun { gauge_full_uah: Some(2_000_000), ..begun("a", "then") };
    let mut log = DischargeLog::create(&place.0, begun, BYTES_MAX).unwrap();
    for second in 1..=10 {
        let Entry::Standing(mut standing) = standing(second, second * 10) else { unreachable!() };
        let charge_uah = Some(1_500_000 - second as i64 * 1_000);
        standing.gauge = Some(Gauge { charge_uah, ..Gauge::default() });
        log.note(&Entry::Standing(standing)).unwrap();
    }
    drop(log);
    let report = Report::of(&place.read("now"), None).unwrap();
    let gauge = figure(&report, 0, Figure::GaugeMahPerSession);
    assert!((gauge.value - 9.0 / 100.0).abs() < 1e-12, "{gauge:?}");
    let warning = |code| report.warnings.iter().find(|warning| warning.code == code);
    assert!(warning("not-full").is_some(), "{:?}", report.warnings);
    // Killed at three quarters, and the machine rebooted before the log was read.
    let not_empty = warning("not-empty").expect("a battery that is not empty");
    assert!(not_empty.text.contains("74 % left by the gauge"), "{}", not_empty.text);
}

#[test]
fn a_battery_that_is_nearly_empty_by_its_gauge_has_no_warning() {
    for (left_uah, has_warning) in [(400_000, false), (401_000, true), (0, false)] {
        let place = Place::new();
        let begun = Begun { gauge_full_uah: Some(2_000_000), ..begun("a", "then") };
        let mut log = DischargeLog::create(&place.0, begun, BYTES_MAX).unwrap();
        for charge_uah in [2_000_000, left_uah] {
            let gauge = Some(Gauge { charge_uah: Some(charge_uah), ..Gauge::default() });
            log.note(&Entry::Standing(Standing { gauge, ..Standing::default() })).unwrap();
        }
        drop(log);
        let report = Report::of(&place.read("now"), None).unwrap();
        let warnings = report.warnings.iter().filter(|warning| warning.code == "not-empty").count();
        assert_eq!(warnings == 1, has_warning, "{left_uah}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The power goes at any byte of any part, and perhaps leaves zeros: the count is that of the
    /// last line that was whole, and so is the time.
    #[test]
    fn a_power_cut_costs_one_line(seconds in 1u64..250, cut: u64, zeros in 0usize..600) {
        let place = Place::new();
        let mut log = DischargeLog::create(&place.0, begun("a", "then"), SMALL).unwrap();
        for second in 1..=seconds {
            log.note(&standing(second, second * 7)).unwrap();
        }
        let folder = log.folder().to_owned();
        drop(log);
        let mut parts: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        parts.sort();
        let last = parts.last().unwrap();
        let content = fs::read(last).unwrap();
        // In the last line: whatever stood before it is on the card.
        let from = content[..content.len() - 1].iter().rposition(|byte| *byte == b'\n');
        let from = from.map_or(0, |at| at + 1);
        let at = from + (cut % (content.len() - from) as u64) as usize;
        let is_first_line = from == 0;
        let mut left = content[..at].to_vec();
        left.extend(std::iter::repeat_n(0, zeros));
        fs::write(last, left).unwrap();
        if is_first_line && parts.len() == 1 {
            return Ok(());
        }
        let archive = place.read("now");
        let discharge = &archive.discharges[0];
        let kept = if is_first_line { seconds } else { seconds - 1 };
        prop_assert_eq!(discharge.sessions(), kept * 7);
        prop_assert_eq!(discharge.last.at_ns, kept * 1_000_000_000);
        prop_assert_eq!(discharge.ending, Ending::Power);
        prop_assert_eq!(discharge.torn_bytes as usize, at - from + zeros);
        prop_assert_eq!(discharge.damaged_lines, 0);
    }
}

const BYTES_MAX: u64 = 12 << 20;

/// Parts of a hundred lines or so.
const SMALL: u64 = 48 << 10;
