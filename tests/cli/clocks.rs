//! The clocks of two hosts, as far as one host can be two: its wall clock asked over loopback, and
//! files of stamps whose truth is known.

use std::fmt::Write;
use std::io::{BufRead, BufReader};

use crate::rig::{Place, signal, wait};

/// One host has one clock: the offset is 0, and the bound must contain that.
#[test]
fn a_clock_is_not_ahead_of_itself() {
    let place = Place::new("one-clock");
    let mut server = place.spawn(&["clock", "serve"]);
    let mut lines = BufReader::new(server.stdout.take().expect("its stdout")).lines();
    let said = lines.next().expect("a line").expect("text");
    let address = said.strip_prefix("listening on udp://").expect("where").to_owned();
    let words = ["clock", &address, "--every", "10ms", "--for", "500ms", "-o", "x.csv", "--json"];
    let clocks = place.weigh(&words).with(0).json();
    let number = |key: &str| clocks["clocks"][key].as_f64().unwrap_or_else(|| panic!("{clocks}"));
    for moment in ["offset_ns_first", "offset_ns_last"] {
        assert!(number(moment).abs() <= number("offset_bound_ns"), "{clocks}");
    }
    assert!(number("drift_ppm").abs() <= number("drift_bound_ppm"), "{clocks}");
    let kept = std::fs::read_to_string(place.folder().join("x.csv")).expect("exchanges");
    assert_eq!(kept.lines().count() as u64, 1 + clocks["answered"].as_u64().expect("a count"));
    let text =
        place.weigh(&["clock", &address, "--every", "10ms", "--for", "100ms"]).with(0).stdout;
    assert!(text.contains("other clock ahead") && text.contains("bound"), "{text}");
    signal("TERM", server.id());
    assert!(lines.any(|line| line.is_ok_and(|line| line.starts_with("answered "))));
    wait(server);
}

/// The other clock is 50 ms ahead and gains 100 ppm; 3 ms there and 1 ms back, and some messages
/// take 7 ms.
fn stamps(place: &Place, from_s: i64, to_s: i64) {
    let start = 1_795_219_200_000_000_000i64;
    let other = |own: i64| own + 50_000_000 + (own - start) / 10_000;
    let mut exchanges = "sent_ns,reached_ns,answered_ns,received_ns\n".to_owned();
    for step in from_s * 10..to_s * 10 {
        let sent = start + step * 100_000_000;
        let (reached, received) = (other(sent + 1_500_000), sent + 2_000_000);
        let _ = writeln!(exchanges, "{sent},{reached},{reached},{received}");
    }
    place.write("exchanges.csv", &exchanges);
    let mut messages = "sent_ns,received_ns,topic\n".to_owned();
    for step in 0..500 {
        let sent = start + 1_000_000_000 + step * 10_000_000;
        let delay = if step % 50 == 0 { 7_000_000 } else { 3_000_000 };
        let _ = writeln!(messages, "{sent},{},farm", other(sent + delay));
    }
    place.write("messages.csv", &messages);
}

#[test]
fn one_way_delays_come_with_their_bound_or_not_at_all() {
    let place = Place::new("one-way");
    stamps(&place, 0, 10);
    let words = ["clock", "one-way", "messages.csv", "--exchanges", "exchanges.csv"];
    let json = place.weigh(&[&words[..], &["--json"]].concat()).with(0).json();
    let bound = json["clock_bound_ns"].as_f64().expect("a bound");
    assert!((1_000_000.0..1_100_000.0).contains(&bound), "half of 2 ms: {json}");
    for (figure, truth) in
        json["delays"].as_array().expect("delays").iter().zip([3e6, 3e6, 3e6, 7e6])
    {
        let value = figure["value"].as_f64().expect("a value");
        assert!((value - truth).abs() <= bound, "{figure}");
        // The clocks' error is the same for all: half of the 1 ms that the ways differ by.
        assert!((value - truth + 5e5).abs() < 50_000.0, "{figure}");
    }
    let spread = json["spread"]["value"].as_f64().expect("a spread");
    assert!((spread - 4e6).abs() <= json["spread"]["bound"].as_f64().expect("its bound") + 1e3);
    let text = place.weigh(&words).with(0).stdout;
    assert!(text.contains("one_way_time_ns.p50") && text.contains("(clocks)"), "{text}");
    place.weigh(&words[..3]).with(99).saying(&["L20", "--exchanges"]);
    // Stamps of another clock, a hundred seconds behind.
    let text = std::fs::read_to_string(place.folder().join("messages.csv")).expect("messages");
    place.write("early.csv", &text.replace(",17952192", ",17952191"));
    let early = place.weigh(&["clock", "one-way", "early.csv", "--exchanges", "exchanges.csv"]);
    early.with(99).saying(&["L20", "before it was sent"]);
    stamps(&place, 0, 4);
    place.weigh(&words).with(99).saying(&[
        "L20",
        "before, during and after",
        "last exchange ended",
    ]);
    stamps(&place, 3, 10);
    place.weigh(&words).with(99).saying(&["L20", "first exchange came"]);
}

/// A delay of 3 ms, and clocks that are known to 20 ms.
#[test]
fn a_delay_below_the_bound_is_refused() {
    let place = Place::new("below-the-bound");
    stamps(&place, 0, 10);
    let text = std::fs::read_to_string(place.folder().join("exchanges.csv")).expect("exchanges");
    let mut slow = "sent_ns,reached_ns,answered_ns,received_ns\n".to_owned();
    for line in text.lines().skip(1) {
        let at: Vec<i64> = line.split(',').map(|text| text.parse().expect("a time")).collect();
        // Asked 18 ms earlier and told 18 ms later.
        let (sent, received) = (at[0] - 18_000_000, at[3] + 18_000_000);
        let _ = writeln!(slow, "{sent},{},{},{received}", at[1], at[2]);
    }
    place.write("exchanges.csv", &slow);
    let words = ["clock", "one-way", "messages.csv", "--exchanges", "exchanges.csv", "--json"];
    let json = place.weigh(&words).with(99).json();
    for figure in json["delays"].as_array().expect("delays") {
        assert!(figure["value"].is_null(), "{figure}");
        let reason = figure["refused"].as_str().expect("a reason");
        assert!(reason.starts_with("L20: the clocks are known to within"), "{reason}");
    }
    // In five seconds of such exchanges drift is not known either.
    let reason = json["spread"]["refused"].as_str().expect("a reason");
    assert!(reason.starts_with("L20: drift alone could cause"), "{reason}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let place = Place::new("clock-errors");
    place.write("bad.csv", "sent_ns,received_ns\n1,2\n1,x\n");
    let words = ["clock", "one-way", "bad.csv", "--exchanges", "bad.csv"];
    place.weigh(&words).with(2).saying(&["bad.csv: line 3, column received_ns", "\"x\""]);
    place.weigh(&["clock"]).with(2);
    place.weigh(&["clock", "127.0.0.1"]).with(2).saying(&["127.0.0.1:PORT"]);
    place.weigh(&["clock", "192.0.2.1:9"]).with(2).saying(&["--i-may-load-this"]);
    place.weigh(&["clock", "127.0.0.1:9", "--every", "1ms"]).with(2).saying(&["10ms"]);
    place
        .weigh(&["clock", "127.0.0.1:9", "--every", "10ms"])
        .with(3)
        .saying(&["weigh clock serve"]);
}
