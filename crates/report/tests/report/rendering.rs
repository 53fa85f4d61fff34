//! What a reader sees of a run, held as snapshots: the table in its widths and styles, and the
//! summary that the table is made from.

use weigh_model::event::Event;
use weigh_report::summary::{Answer, Verdict};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, along, run, started, with_thresholds};

fn summary() -> Summary {
    Summary::from_events(&run()).unwrap()
}

#[test]
fn the_table_at_160_columns() {
    insta::assert_snapshot!(render(&summary(), Style::plain(160)));
}

#[test]
fn the_table_at_100_columns_is_drawn_in_two_parts() {
    let text = render(&summary(), Style::plain(100));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_table_at_80_columns_is_drawn_in_four_parts() {
    let text = render(&summary(), Style::plain(80));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_table_in_ascii() {
    let style = Style { is_ascii: true, ..Style::plain(160) };
    let text = render(&summary(), style);
    assert!(text.is_ascii());
    insta::assert_snapshot!(text);
}

#[test]
fn the_table_in_markdown() {
    insta::assert_snapshot!(render(&summary(), Style::markdown()));
}

#[test]
fn many_cells_are_shown_along_their_axis_a_figure_at_a_time() {
    let places: Vec<u32> = (1..=10).map(|step| step * 20).collect();
    let events = along(&["http1", "tcp", "mqtt"], &places);
    let summary = Summary::from_events(&events).unwrap();
    let narrow = render(&summary, Style::plain(80));
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    insta::assert_snapshot!(narrow);
    insta::assert_snapshot!(render(&summary, Style::plain(200)));
}

/// Two hundred cells were 71,605 lines once.
#[test]
fn two_hundred_cells_are_a_few_screens() {
    let places: Vec<u32> = (1..=50).map(|step| step * 20).collect();
    let lanes = ["http1", "tcp", "mqtt", "amqp"];
    let summary = Summary::from_events(&along(&lanes, &places)).unwrap();
    assert_eq!(summary.cells.len(), 200);
    assert_eq!(summary.comparisons.len(), 496);
    let text = render(&summary, Style::plain(80));
    assert!(text.lines().count() < 200, "{} lines", text.lines().count());
    assert!(text.contains("25 more places: report.html"), "{text}");
}

#[test]
fn many_cells_without_an_axis_are_cut_off_and_said_to_be() {
    let mut events = vec![started("constant")];
    let names: Vec<String> = (0..60).map(|number| format!("server-{number}")).collect();
    for name in names {
        let told = Told::new("http1", None, name.leak());
        events.extend(told.events());
    }
    let text = render(&Summary::from_events(&events).unwrap(), Style::plain(200));
    assert!(text.lines().count() < 120, "{} lines", text.lines().count());
    assert!(text.contains("20 more: report.html"), "{text}");
}

#[test]
fn thresholds_have_a_tick_a_cross_or_a_question_mark_and_what_they_met() {
    let conditions = [
        "response_time med < 300us",
        "loss == 0",
        "response_time med < 1ms",
        "connect_time p(95) < 1s",
        "target_memory_bytes.max < 1GiB",
    ];
    let summary = Summary::from_events(&with_thresholds(run(), &conditions)).unwrap();
    let text = render(&summary, Style::plain(160));
    let (_, block) = text.split_once("thresholds:\n").unwrap();
    insta::assert_snapshot!(block.split_once("\n\n").unwrap().0);
    assert_eq!(summary.answer(), Answer::Failed);
    let coloured = render(&summary, Style { has_colour: true, ..Style::plain(160) });
    assert!(coloured.contains("\x1b[31m  ✗ loss == 0"), "{coloured}");
    let ascii = render(&summary, Style { is_ascii: true, ..Style::plain(160) });
    assert!(ascii.contains("FAILED loss == 0"), "{ascii}");
    let along = with_thresholds(along(&["tcp"], &[10]), &["response_time p(99) < 1ms"]);
    let summary = Summary::from_events(&along).unwrap();
    assert_eq!(summary.answer(), Answer::Holds);
    assert!(render(&summary, Style::plain(160)).contains("✓ response_time p(99) < 1ms\n"));
}

#[test]
fn colour_adds_escapes_and_changes_nothing_else() {
    let style = Style { has_colour: true, ..Style::plain(160) };
    let coloured = render(&summary(), style);
    let bare = ["\x1b[1m", "\x1b[31m", "\x1b[0m"]
        .iter()
        .fold(coloured.clone(), |text, escape| text.replace(escape, ""));
    assert_ne!(coloured, bare);
    assert_eq!(bare, render(&summary(), Style::plain(160)));
}

#[test]
fn the_environment_decides_on_colour_and_characters() {
    let style = |variables: &[(&str, &str)], width: Option<u16>| {
        Style::from_environment(width, |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    };
    let utf8 = style(&[("LANG", "de_AT.UTF-8")], Some(120));
    assert!(!utf8.is_ascii && utf8.has_colour && utf8.width == 120);
    assert!(style(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")], None).is_ascii);
    assert!(!style(&[("LANG", "C.UTF-8"), ("LC_ALL", "")], None).is_ascii);
    assert!(!style(&[("LANG", "C.UTF-8"), ("NO_COLOR", "1")], Some(80)).has_colour);
    assert!(style(&[("NO_COLOR", "")], Some(80)).has_colour);
    assert!(!style(&[("TERM", "dumb")], Some(80)).has_colour);
    assert!(!style(&[], None).has_colour);
}

#[test]
fn the_summary_as_json() {
    insta::assert_snapshot!(summary().to_json());
}

#[test]
fn a_summary_is_read_back_as_it_was_written() {
    let summary = summary();
    assert_eq!(serde_json::from_str::<Summary>(&summary.to_json()).unwrap(), summary);
}

#[test]
fn guarantees_are_never_put_in_one_ratio() {
    for comparison in summary().comparisons {
        if comparison.left.starts_with("http1") && comparison.right.contains("qos=2") {
            assert_eq!(comparison.verdict, Verdict::Refused);
            assert_eq!(comparison.ratio, None);
            assert!(comparison.reason.unwrap().starts_with("guarantees differ"));
        }
    }
}

#[test]
fn open_and_closed_arrivals_are_never_put_in_one_ratio() {
    let mut events = vec![started("constant")];
    for (target, arrival) in [("reference", "constant"), ("nginx", "closed")] {
        for repetition in 0..5 {
            let metrics = &[("response_time_ns.p99", 1e6)];
            let told = Told { repetition, metrics, ..Told::new("http1", None, target) };
            events.extend(told.events().into_iter().map(|event| match event {
                Event::TrialFinished(mut trial) => {
                    trial.point.insert("load.arrival".into(), arrival.into());
                    Event::TrialFinished(trial)
                }
                other => other,
            }));
        }
    }
    let summary = Summary::from_events(&events).unwrap();
    assert_eq!(summary.comparisons.len(), 1);
    assert_eq!(summary.comparisons[0].verdict, Verdict::Refused);
    assert!(summary.comparisons[0].reason.as_ref().unwrap().contains("open"));
}

#[test]
fn an_empty_run_and_no_run_are_told_apart() {
    assert!(Summary::from_events(&[]).is_err());
    let empty = Summary::from_events(&[started("closed")]).unwrap();
    assert_eq!((empty.run.outcome.as_str(), empty.cells.len()), ("unfinished", 0));
    assert!(render(&empty, Style::plain(100)).contains("nothing was measured"));
}

/// What another tool would have shown stands in a table of its own, and says so.
#[test]
fn emulated_figures_stand_apart_from_measured_ones() {
    let metrics = &[
        ("target_cpu_percent.mean", 96.0),
        ("htop_cpu_percent.mean", 53.3),
        ("htop_cpu_percent.max", 53.3),
        ("autocannon_time_s", 1.0),
        ("autocannon_per_s", 100.0),
        ("transfer_time_s", 0.005),
    ];
    let told = |repetition| Told { repetition, metrics, ..Told::new("http1", None, "reference") };
    let mut events = vec![started("constant")];
    events.extend((0..3).flat_map(|repetition| told(repetition).events()));
    let text = render(&Summary::from_events(&events).unwrap(), Style::plain(160));
    let (measured, emulated) = text.split_once("\nemulated, not measured").unwrap();
    assert!(!measured.contains("htop") && measured.contains("96"), "{text}");
    insta::assert_snapshot!(emulated.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n"));
}

/// Of fifteen pairs, the five that differ are listed and the ten that do not are counted.
#[test]
fn of_many_pairs_those_too_close_to_call_are_counted() {
    let cost = [
        [("target_cpu_us_per_message", 10.0)],
        [("target_cpu_us_per_message", 11.0)],
        [("target_cpu_us_per_message", 12.0)],
        [("target_cpu_us_per_message", 90.0)],
        [("target_cpu_us_per_message", 91.0)],
        [("target_cpu_us_per_message", 92.0)],
    ];
    let cost: &'static [[(&str, f64); 1]] = Vec::from(cost).leak();
    let names = ["one", "two", "three", "four", "five", "six"];
    let mut events = vec![started("constant")];
    for (place, target) in names.into_iter().enumerate() {
        for repetition in 0..3u32 {
            let first = if place == 5 { 3 } else { 0 };
            let metrics = &cost[first + (repetition as usize + place) % 3];
            let told = Told { repetition, metrics, ..Told::new("http1", None, target) };
            events.extend(told.events());
        }
    }
    let text = render(&Summary::from_events(&events).unwrap(), Style::plain(200));
    let begin = text.find("  target CPU time of a message:").unwrap();
    let section: Vec<&str> = text[begin..].lines().skip(1).take(6).collect();
    for (line, name) in section.iter().zip(&names[..5]) {
        assert!(line.contains("http1 on six took") && line.contains(name), "{text}");
    }
    assert_eq!(section[5], "    10 more pairs are too close to call: report.html has each");
}
