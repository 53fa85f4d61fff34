//! What a run tells of its wire: figures by phase and layer that add up, the same on the page, in
//! the terminal and in the files; one session packet by packet; and nowhere a figure without the
//! path and the offloads that it was taken with.

use serde_json::Value;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::session::{PacketGap, PacketMark, SessionPacket, SessionPackets};
use weigh_report::exports::{cells, packets};
use weigh_report::page::{Provenance, page};
use weigh_report::pictures::{Gallery, Kind, Picture};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started};

/// Bytes of a trial by phase: payload, protocol, TLS handshake, transport, IP, link, sent again.
type Trial = [[u64; 7]; 3];

const KEYS: [&str; 7] =
    ["payload", "protocol", "tls_handshake", "transport", "ip", "link", "repeated"];
const PHASES: [&str; 3] = ["set_up", "messages", "tear_down"];

/// 10 messages over 2 connections, the second repetition with a retransmission.
const PLAIN: [Trial; 3] = [
    [[0, 0, 0, 224, 120, 84, 0], [1000, 300, 0, 640, 400, 280, 0], [0, 0, 0, 192, 120, 84, 0]],
    [[0, 0, 0, 224, 120, 84, 0], [1000, 300, 0, 672, 420, 294, 130], [0, 0, 0, 192, 120, 84, 0]],
    [[0, 0, 0, 224, 120, 84, 0], [1000, 300, 0, 640, 400, 280, 0], [0, 0, 0, 192, 120, 84, 0]],
];
const MESSAGES: u64 = 10;
const CONNECTIONS: u64 = 2;

fn put(metrics: &mut std::collections::BTreeMap<String, f64>, trial: &Trial) {
    let mut add = |name: String, value: f64| metrics.insert(format!("wire.{name}"), value);
    for (phase, layers) in PHASES.iter().zip(trial) {
        let all: u64 = layers.iter().sum();
        for (key, bytes) in KEYS.iter().zip(layers) {
            add(format!("phases.{phase}.layers.{key}_bytes"), *bytes as f64);
        }
        add(format!("phases.{phase}.packets"), layers[5] as f64 / 14.0);
        add(format!("phases.{phase}.bytes_per_session"), all as f64 / CONNECTIONS as f64);
    }
    let all: u64 = trial.iter().flatten().sum();
    let content: u64 = trial.iter().map(|layers| layers[0] + layers[1]).sum();
    add("messages".to_owned(), MESSAGES as f64);
    add("connections".to_owned(), CONNECTIONS as f64);
    add("bytes_per_message".to_owned(), all as f64 / MESSAGES as f64);
    add("bytes_per_session".to_owned(), all as f64 / CONNECTIONS as f64);
    add("application.bytes_per_message".to_owned(), content as f64 / MESSAGES as f64);
    add("retransmitted_packets".to_owned(), f64::from(u8::from(trial[1][6] > 0)));
}

fn packet(at_ns: u64, up: bool, sizes: (u64, u64), flags: &str, name: &str) -> SessionPacket {
    SessionPacket {
        at_ns,
        from: u8::from(!up),
        to: u8::from(up),
        bytes: sizes.0,
        stream_bytes: sizes.1,
        flags: flags.to_owned(),
        phase: if flags == "ACK" { "messages" } else { "set_up" }.to_owned(),
        names: if name.is_empty() { vec![] } else { vec![name.to_owned()] },
        ..SessionPacket::default()
    }
}

fn session(trial: &str) -> Event {
    let mut lost = packet(21_000_000, true, (196, 130), "ACK", "PUBLISH QoS 1 #1");
    lost.marks = vec![PacketMark::SentAgain];
    let mut again = packet(201_000_000, true, (196, 130), "ACK", "PUBLISH QoS 1 #1");
    again.marks = vec![PacketMark::Retransmission];
    let packets = vec![
        packet(0, true, (74, 0), "SYN", ""),
        packet(20_060_000, false, (74, 0), "SYN, ACK", ""),
        lost,
        again,
        packet(221_000_000, false, (70, 4), "ACK", "PUBACK #1"),
        packet(221_010_000, true, (66, 0), "FIN, ACK", ""),
    ];
    Event::SessionPackets(Box::new(SessionPackets {
        trial: trial.to_owned(),
        parties: vec!["generator".to_owned(), "Mosquitto 2.0.18".to_owned()],
        tls: None,
        packets,
        gap: Some(PacketGap { before: 5, packets: 7, bytes: 800 }),
    }))
}

/// One lane that was listened to, three repetitions; the first has a session.
fn heard() -> Vec<Event> {
    let mut events = vec![started("constant")];
    for (repetition, trial) in (0..).zip(&PLAIN) {
        let told = Told { repetition, ..Told::new("mqtt", Some(1), "mosquitto") };
        let mut story = told.events();
        for event in &mut story {
            if let Event::TrialFinished(finished) = event {
                put(&mut finished.metrics, trial);
                describe(finished);
                if repetition == 0 {
                    events.push(session(&finished.trial));
                }
            }
        }
        events.extend(story);
    }
    events.push(Event::RunFinished { outcome: "done".to_owned() });
    events
}

fn describe(finished: &mut TrialFinished) {
    for (key, text) in [
        ("path", "internet"),
        ("path.up", "29ms 600us"),
        ("path.down", "29ms 600us + uniform 14ms"),
        ("carrier", "tap"),
        ("link", "Ethernet, 14 bytes without frame check sequence"),
        ("mtu_bytes", "1500"),
        ("offloads", "TSO off, GSO off, GRO off"),
    ] {
        finished.scene.insert(key.to_owned(), text.to_owned());
    }
}

fn summary() -> Summary {
    Summary::from_events(&heard()).unwrap()
}

fn picture(name: &str) -> Picture {
    let pictures = Gallery::new(&summary(), &heard()).pictures;
    pictures.into_iter().find(|picture| picture.name == name).expect(name)
}

/// What is drawn of each layer in a panel; the last one is what stands at the bar's end.
fn drawn(picture: &Picture, panel: u64) -> (Vec<(String, f64)>, f64) {
    let series = picture.option["series"].as_array().unwrap();
    let of_panel = series.iter().filter(|series| series["xAxisIndex"] == panel);
    let (mut layers, mut total) = (Vec::new(), f64::NAN);
    for series in of_panel {
        match series["name"].as_str().unwrap() {
            "" => total = series["data"][0]["total"].as_f64().unwrap(),
            name => layers.push((name.to_owned(), series["data"][0].as_f64().unwrap())),
        }
    }
    (layers, total)
}

#[test]
fn the_bars_are_the_metrics() {
    let cell = &summary().cells[0];
    let value = |metric: &str| cell.metrics[metric].value.unwrap();
    let close = |left: f64, right: f64| assert!((left - right).abs() < 2e-3, "{left} {right}");

    let message = picture("wire-message");
    assert_eq!(message.kind, Kind::Wire);
    let (layers, total) = drawn(&message, 0);
    close(total, value("wire.bytes_per_message"));
    close(layers.iter().map(|(_, bytes)| bytes).sum(), total);
    let names: Vec<&str> = layers.iter().map(|(name, _)| name.as_str()).collect();
    let present = ["payload", "protocol", "TCP headers", "IP headers", "Ethernet headers"];
    assert_eq!(names, [&present[..], &["sent again"]].concat(), "no layer that has no bytes");
    assert_eq!(message.option["legend"]["data"], serde_json::json!(names));
    close(layers[0].1, 100.0);
    close(layers[1].1, 30.0);
    // A retransmission of 130 bytes in one of three repetitions of ten messages.
    close(layers[5].1, 130.0 / 30.0);
    let (_, alone) = drawn(&message, 1);
    close(alone, value("wire.phases.messages.bytes_per_session") / 5.0);

    let session = picture("wire-session");
    let mut all = 0.0;
    for (panel, phase) in (0..).zip(PHASES) {
        let (layers, total) = drawn(&session, panel);
        close(total, value(&format!("wire.phases.{phase}.bytes_per_session")));
        close(layers.iter().map(|(_, bytes)| bytes).sum(), total);
        all += total;
    }
    close(all, value("wire.bytes_per_session"));
}

#[test]
fn a_layer_has_its_colour_and_its_place_everywhere() {
    let colours = |name: &str| -> Vec<Value> {
        let series = picture(name).option["series"].as_array().unwrap().clone();
        let of_first = series.iter().filter(|series| series["xAxisIndex"] == 0);
        of_first.map(|series| serde_json::json!([series["name"], series["color"]])).collect()
    };
    assert_eq!(colours("wire-message"), colours("wire-session"));
}

#[test]
fn a_session_is_drawn_packet_by_packet() {
    let picture = serde_json::to_value(picture("session-001")).unwrap();
    insta::assert_snapshot!(format!("{picture:#}"));
}

/// A journal from before sessions were kept, and one of a run without a wire.
#[test]
fn without_a_wire_nothing_is_drawn_or_said() {
    let mut events = vec![started("constant")];
    events.extend(Told::new("mqtt", Some(1), "mosquitto").events());
    let summary = Summary::from_events(&events).unwrap();
    let pictures = Gallery::new(&summary, &events).pictures;
    assert!(pictures.iter().all(|p| !matches!(p.kind, Kind::Wire | Kind::Session)));
    let text = page(&summary, &events, &Provenance::default());
    assert!(!text.contains("On the wire"));
    assert!(!render(&summary, Style::plain(100)).contains("wire"));
}

#[test]
fn the_terminal_shows_the_wire_at_100_columns() {
    let text = render(&summary(), Style::plain(100));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    insta::assert_snapshot!(text);
}

/// Path and offloads stand wherever figures of the wire do.
#[test]
fn no_figure_of_a_wire_stands_without_its_path_and_offloads() {
    let (summary, events) = (summary(), heard());
    let page = page(&summary, &events, &Provenance::default());
    let (_, section) = page.split_once("<section id=\"wire\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let mut exported = Vec::new();
    packets::write(&mut exported, &summary, &events).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    let csv = String::from_utf8(cells::csv(&summary)).unwrap();
    // Wide enough that no line is broken in the middle of it.
    for text in [section, &render(&summary, Style::plain(300)), &exported, &csv, &summary.to_json()]
    {
        for wanted in ["internet", "29ms 600us", "TSO off, GSO off, GRO off"] {
            assert!(text.contains(wanted), "{wanted} in {text}");
        }
    }
    assert!(csv.lines().next().unwrap().contains("scene.offloads"), "{csv}");
    // The table beside the picture has what is drawn: 10,528 bytes of three repetitions, divided by
    // 30 messages and by 6 sessions.
    for figure in ["<th scope=\"row\">mqtt qos=1", "<td>350.93</td>", "<td>1,754.67</td>"] {
        assert!(section.contains(figure), "{figure} in {section}");
    }
}

#[test]
fn packets_are_a_table_too() {
    let mut exported = Vec::new();
    packets::write(&mut exported, &summary(), &heard()).unwrap();
    insta::assert_snapshot!(String::from_utf8(exported).unwrap());
}

#[test]
fn the_event_goes_through_a_journal_unchanged() {
    let event = session("a");
    let line = serde_json::to_string(&event).unwrap();
    assert!(line.starts_with("{\"event\":\"session_packets\""), "{line}");
    assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
}
