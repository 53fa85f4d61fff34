//! The stages of a pipeline in a report: a line each, and a waterfall whose bars follow one
//! another.

use weigh_model::event::Event;
use weigh_report::page::{Provenance, page};
use weigh_report::pictures::{Gallery, Kind};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started};

/// Three repetitions by the broker, and as many of a server without stages.
fn run() -> Vec<Event> {
    let mut events = vec![started("constant")];
    for repetition in 0..3 {
        let mut told = Told {
            repetition,
            metrics: &[
                ("stage.generator.hop_time_ns.mean", 20_000.0),
                ("stage.generator.hop_time_ns.p99", 90_000.0),
                ("stage.broker.hop_time_ns.mean", 300_000.0),
                ("stage.broker.hop_time_ns.p99", 900_000.0),
                ("stage.gateway.hop_time_ns.mean", 500_000.0),
                ("stage.gateway.held_time_ns.mean", 3_500_000.0),
                ("stage.store.hop_time_ns.mean", 2_000_000.0),
                ("stage.store.hop_time_ns.p99", 9_000_000.0),
                ("stage.store.cpu_us_per_message", 12.5),
                ("stage.store.memory_bytes.max", 8_388_608.0),
                ("delivery_time_ns.mean", 2_820_000.0),
            ],
            ..Told::new("mqtt", Some(1), "pipeline")
        };
        told.ledger.delivered = Some(9_990);
        told.ledger.received = 9_990;
        told.ledger.lost = Some(10);
        told.ledger.causes.insert(weigh_model::ledger::Cause::SubscriberDisconnected, 10);
        told.ledger.last_seen.insert("broker".to_owned(), 10);
        events.extend(told.events().map(|event| match event {
            Event::TrialFinished(mut trial) => {
                let words = "reference broker > gateway > store > memory";
                trial.scene.insert("pipeline".to_owned(), words.to_owned());
                Event::TrialFinished(trial)
            }
            other => other,
        }));
        let other = Told { repetition, ..Told::new("http1", None, "reference") };
        events.extend(other.events());
    }
    events
}

#[test]
fn the_table_has_a_line_for_every_stage() {
    let summary = Summary::from_events(&run()).unwrap();
    let text = render(&summary, Style::plain(200));
    let from = text.find("reference broker > gateway > store > memory").expect("its heading");
    let lines: Vec<&str> = text[from..].lines().collect();
    let row = |name: &str| {
        let found = lines.iter().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    assert!(row("broker").contains("300") && row("broker").contains("900"), "{text}");
    assert!(row("gateway").contains("3.50"), "held: {text}");
    let store = row("store");
    assert!(
        store.contains("2.00") && store.contains("12.5") && store.contains("8.00 MiB"),
        "{store}"
    );
    assert!(text.contains("the missing ones were seen last at: 30 broker"), "{text}");
    let ascii = render(&summary, Style { is_ascii: true, ..Style::plain(200) });
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn the_bars_of_a_way_follow_one_another() {
    let events = run();
    let summary = Summary::from_events(&events).unwrap();
    let gallery = Gallery::new(&summary, &events);
    let ways: Vec<_> = gallery.pictures.iter().filter(|p| p.kind == Kind::Way).collect();
    assert_eq!(ways.len(), 1, "one cell went through stages");
    let option = &ways[0].option;
    let stages = serde_json::json!(["generator", "broker", "gateway", "store"]);
    assert_eq!(option["yAxis"]["data"], stages);
    let data = |series: usize| option["series"][series]["data"].clone();
    assert_eq!(data(0), serde_json::json!([0, 20_000, 320_000, 820_000]));
    assert_eq!(data(1), serde_json::json!([20_000, 300_000, 500_000, 2_000_000]));
    assert_eq!(data(2), data(0), "the tails begin where the means do");
    let html = page(&summary, &events, &Provenance::default());
    for part in ["Stage by stage", "data-picture=\"way-", "the gateway to its arrival at the next"]
    {
        assert!(html.contains(part), "{part}");
    }
}
