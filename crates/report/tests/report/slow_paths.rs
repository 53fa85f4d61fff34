//! What slow paths do to messages and packets: late is not lost, and sent again is not lost either.

use weigh_model::event::{Event, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_model::session::{PacketMark, SessionPacket, SessionPackets};
use weigh_report::page::{Provenance, page};
use weigh_report::pictures::Gallery;
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started};

/// A lane of which 9 of 12 messages came after the timeout.
fn late() -> Vec<Event> {
    let ledger = Ledger {
        messages: 12,
        scheduled: 12,
        sent: 12,
        acknowledged: 12,
        received: 12,
        delivered: Some(3),
        late: 9,
        lost: Some(0),
        ..Ledger::zero()
    };
    let metrics = &[("late_time_ns.max", 8.1e9)];
    let mut events = vec![started("closed")];
    events.extend(Told { ledger, metrics, ..Told::new("http1", None, "reference") }.events());
    events.extend(Told::new("tcp", None, "reference").events());
    events.push(Event::RunFinished { outcome: "done".to_owned() });
    events
}

#[test]
fn late_messages_have_a_column_and_the_timeout_to_type() {
    let summary = Summary::from_events(&late()).unwrap();
    let text = render(&summary, Style::plain(300));
    let sentence = "9 of 12 messages arrived late (after the timeout), the slowest after 8.10 s: \
                    type --timeout 20s";
    assert!(text.contains(sentence), "{text}");
    let heading = text.lines().find(|line| line.contains("delivered")).unwrap();
    assert!(heading.contains("late"), "{heading}");
    let row = text.lines().find(|line| line.trim_start().starts_with("http1")).unwrap();
    let figures: Vec<&str> = row.split_whitespace().collect();
    assert!(figures.windows(3).any(|three| three == ["12", "3", "9"]), "{row}");
}

#[test]
fn a_run_without_late_messages_has_no_such_column() {
    let mut events = vec![started("closed")];
    events.extend(Told::new("tcp", None, "reference").events());
    let text = render(&Summary::from_events(&events).unwrap(), Style::plain(300));
    let heading = text.lines().find(|line| line.contains("delivered")).unwrap();
    assert!(!heading.contains("late"), "{heading}");
}

#[test]
fn the_answer_of_the_page_calls_them_late_and_not_lost() {
    let (events, summary) = (late(), Summary::from_events(&late()).unwrap());
    let html = page(&summary, &events, &Provenance::default());
    let said = html.split("<li>").find(|line| line.starts_with("No message was lost of"));
    assert!(said.is_some_and(|line| line.contains("; 9 arrived after the timeout.</li>")));
    assert!(!html.contains("lost messages: "), "none was");
}

/// A path that dropped nothing lost nothing, however often a timer of 1 s ran out within 1.6 s.
#[test]
fn what_was_sent_again_too_early_is_not_called_lost() {
    let packet = |at_ns: u64, marks: Vec<PacketMark>| SessionPacket {
        at_ns,
        to: 1,
        bytes: 74,
        flags: "SYN".to_owned(),
        phase: "set_up".to_owned(),
        marks,
        ..SessionPacket::default()
    };
    let mut events = vec![started("closed")];
    let mut story = Told::new("tcp", None, "reference").events();
    for event in &mut story {
        let Event::TrialFinished(finished) = event else { continue };
        let TrialFinished { metrics, trial, scene, .. } = &mut **finished;
        metrics.insert("wire.too_early_packets".to_owned(), 1.0);
        metrics.insert("wire.radio.bytes_per_message".to_owned(), 300.0);
        metrics.insert("wire.radio.bytes_per_session".to_owned(), 900.0);
        scene.insert("path.link".to_owned(), "MAC 26, LLC 8: 34 B a packet".to_owned());
        events.push(Event::SessionPackets(Box::new(SessionPackets {
            trial: trial.clone(),
            parties: vec!["generator".to_owned(), "reference server".to_owned()],
            packets: vec![
                packet(0, vec![PacketMark::SentTooEarly]),
                packet(1_000_000_000, vec![PacketMark::Retransmission]),
            ],
            ..SessionPackets::default()
        })));
    }
    events.extend(story);
    let summary = Summary::from_events(&events).unwrap();
    let text = render(&summary, Style::plain(300));
    assert!(text.contains("retransmitted too early; the path dropped none"), "{text}");
    assert!(text.contains("on the air 300 B/msg, 900 B/session"), "{text}");
    assert!(text.contains("MAC 26, LLC 8: 34 B a packet"), "{text}");
    let pictures = Gallery::new(&summary, &events).pictures;
    let session = pictures.iter().find(|picture| picture.name.starts_with("session")).unwrap();
    assert!(session.note.contains("sent again too early"), "{}", session.note);
    assert!(!session.note.contains("lost in transit"), "{}", session.note);
    let first = &session.about["packets"][0];
    assert!(first.get("again").is_none() && first["marks"] == "not lost, sent again too early");
}
