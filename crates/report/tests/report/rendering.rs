//! What a reader sees of a run, held as snapshots: the table in its widths and styles, and the
//! summary that the table is made from.

use weigh_model::event::Event;
use weigh_report::Summary;
use weigh_report::summary::Verdict;
use weigh_report::table::{Style, render};

use crate::story::{Told, run, started};

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
    assert!(render(&empty, Style::plain(100)).contains("nothing was weighed"));
}
