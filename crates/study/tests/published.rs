//! The five published studies, as they stand in `studies/`: the rules that are broken in each must
//! be found, and no others. Nothing in the audit knows a study; only the figures decide.

use std::path::Path;

use weigh_study::audit::{Audit, Source, audit, facts};

#[test]
fn every_broken_rule_of_a_published_study_is_found_and_no_other() {
    for (study, broken) in [
        ("hydroponics", "L05 L06 L07 L08 L09 L10 L13 L15 L16 L19"),
        ("flespi", "L13 L16 L20"),
        ("tcp-mqtt", "L13 L14 L18"),
        ("rpc-lab", "L01 L02 L03 L11 L13 L15 L16"),
        ("jmeter-lab", "L01 L04 L08 L12 L13 L15 L19"),
    ] {
        let audit = audited(study, true);
        assert_eq!(codes(&audit), broken, "{study}\n{}", audit.to_text());
    }
}

/// Without what the authors' code and text say beside the tables, less can be told.
#[test]
fn the_tables_alone_show_most_of_it() {
    for (study, broken) in [
        ("hydroponics", "L05 L06 L07 L08 L09 L10 L13"),
        ("flespi", "L13 L20"),
        ("tcp-mqtt", "L18"),
        ("rpc-lab", "L02 L11 L13"),
        ("jmeter-lab", "L01 L04 L08 L13 L19"),
    ] {
        let audit = audited(study, false);
        assert_eq!(codes(&audit), broken, "{study}\n{}", audit.to_text());
    }
}

/// CPU and times of MQTT and HTTP: the arithmetic of every finding.
#[test]
fn hydroponics_is_found_with_its_arithmetic() {
    says(
        "hydroponics",
        &[
            "all 11 times along messages are whole multiples of 1 s plus 343.5 ms (deviation \
             12.71 ms)",
            "8.51 % of the stated 5,000 would be 425.5 messages",
            "of the 5,040 in Table 2 it is 429",
            "429, 1,422, 545, 1,363, 573, 1,038 arrived: the counts do not go with what was sent \
             (correlation 0.16)",
            "the maximum is 22.7 % (Table 15), below the mean of 28.35 % (Table 13)",
            "the maximum is 95.3 % (Table 14), below the mean of 97 % (Table 10)",
            "whether its times end when messages were handed over or when they arrived is not",
            "MQTT took 1.371 s and HTTP 56.343 s, but of the first 3.46 % arrived",
            "94 % of HTTP is at 491.8/s, 28.35 % of MQTT at 11,919/s: 24.24x apart",
            "from 21.68 % to 94 % along messages the runs take from 3.315 s to \
             20.335 s",
            "messages are 1.762 ms apart at 97 % (Table 16), so that one takes 1.709 ms of \
             the processor; 17.75 % at 5 clients is then 103.9/s, a cycle of 48.14 ms",
            "in a closed loop the number of clients sets the share",
            "no loss at 1,625 messages, 6.67 % at 1,750: a step of 7.143 %",
            "1680 messages is called the most without loss, but all of 1,760 arrived in Table 19",
            "97 % in Table 10 and 94 % in Table 12, 3.093 % apart",
            "from 0.002 to 0.2857 (7 messages a client at the end)",
            "MQTT has as many as the socket takes in flight, HTTP 1",
            "not stated whether the generator of the load ran on the same processor",
            "5 of 5 totals are messages / clients, rounded up, x clients",
            "14 of 14 percentages are received / expected to the last digit",
        ],
    );
}

/// Polling against pushing, and a battery.
#[test]
fn flespi_is_found_with_its_arithmetic() {
    says(
        "flespi",
        &[
            "http has one poll at a time, of a period that is not stated, in flight, \
             mqtt every message",
            "one at a time, 1,000 messages wait 1 min 5.9 s for round trips of 65.902 ms alone",
            "two-way exchanges alone bound an offset to 32.95 ms",
            "are compared on one run each",
            "2000 mAh are 10 Wh at the stated 5 V, and 7.4 Wh if they are rated at",
            "2000 mAh over 159 min is a mean current of 755 mA",
            "2000 mAh over 170 min is a mean current of 706 mA",
            "2000 mAh over 353 min is a mean current of 340 mA",
            "2000 mAh over 381 min is a mean current of 315 mA",
            "lasts 1.069x as long as curl(HTTPS); with the 15 % of speed that is 1.23x",
            "lasts 1.079x as long as curl(HTTPS); with the 15 % of speed that is 1.241x",
        ],
    );
}

/// Header bytes and times of TCP and MQTT.
#[test]
fn tcp_mqtt_is_found_with_its_arithmetic() {
    says(
        "tcp-mqtt",
        &[
            "tcp: header bytes said to be constant from 1 to 1,000,000 bytes of payload; the \
             latter needs 685 segments, 13,700 header bytes at least instead of 20",
            "mqtt: header bytes are constant with the payload here and growing in Figure 4",
            "times of mqtt (relays on its path: 1) and tcp (0), without a control relay that only \
             copies",
            "the intervals are over 150 consecutive transfers: one run",
            "from 150 independent log-normal values (sigma 1) contains their mean in 92.",
        ],
    );
}

/// Throughput from latencies, and backgrounds that ended early.
#[test]
fn rpc_lab_is_found_with_its_arithmetic() {
    says(
        "rpc-lab",
        &[
            "10 clients / (503.5 µs mean) gives 19,861/s, the table says 1,986/s: 0.1x",
            "10 clients / (928.2 µs mean) gives 10,774/s, the table says 1,077/s",
            "HTTP 1,986/s is below RPC 18,101/s; by clients over latency it is 19,861/s \
             against 18,116/s: the order is the reverse",
            "1,000,000 messages of 503.5 us over 10 clients take 50.35 s, the table says 8 min to \
             16 min; the sum of their latencies is 8 min 23.5 s",
            "1,000 clients, each every 100 ms, offers 10,000/s, 9,985/s was reached: 99.85 %",
            "the background was on for 35.03 % of the window; while it was on the mean was about \
             1.207 ms, +30.0 % and not +8.8 %",
            "47.8 us against 55.2 us is -13.4 %, and the next of 5 runs of the same test lies \
             within +-36.99 %",
            "513.8 us against 503.5 us is +2.0 %, and the next of 7 runs",
            "503.5 us is HTTP of 10 clients at once, 55.2 us is RPC of 1",
            "HTTP: one connection for every message",
            "9.1 ratio: 503.5 us / 55.2 us is 9.121",
        ],
    );
    let worked = audited("rpc-lab", true).studies.remove(0).worked;
    assert_eq!(worked.iter().filter(|one| one.holds == Some(true)).count(), 12);
}

/// Ramps, errors in the mean, and a generator beside its target.
#[test]
fn jmeter_lab_is_found_with_its_arithmetic() {
    says(
        "jmeter-lab",
        &[
            "the table says 677/s: 0.501x, 50.1 in flight (half is the mean of a ramp",
            "49.98 in flight",
            "49.48 in flight",
            "(3 ms mean + 20 ms pause) gives 4,348/s, the table says 1,017/s: 0.2339x, 23.39 in",
            "a ramp of 1 min 40 s to 100 clients, which ends after 49.4 s",
            "a ramp of 50 s to 450 clients, 100 % of the window of 50 s",
            "70583/s counts messages handed over, 677/s of HTTP messages answered",
            "0 % errors say nothing about messages that are only handed over",
            "42.83 % of the samples are errors, and nothing says that they are not in the mean",
            "588/s against HTTP 677/s is -13.1 %, and two runs of HTTP gave 489.4 and 678: \
             38.54 % apart",
            "651/s against HTTP 677/s is -3.8 %",
            "HTTP: one connection for every message",
            "100000/s is called a limit, without evidence that the generator was not the limit",
            "3531270 samples at 70,583/s is a window of 50.03 s",
        ],
    );
}

/// Every sentence stands in a finding or among what was worked out.
fn says(study: &str, sentences: &[&str]) {
    let audit = audited(study, true);
    let findings =
        audit.findings.iter().flat_map(|finding| [&finding.seen].into_iter().chain(&finding.also));
    let worked = audit.studies.iter().flat_map(|body| body.worked.iter().map(|one| &one.said));
    let all: Vec<&String> = findings.chain(worked).collect();
    for sentence in sentences {
        assert!(all.iter().any(|seen| seen.contains(sentence)), "{sentence}\n{}", audit.to_text());
    }
}

/// The audit of a study's folder: all of it, or the rows of its paper without anything beside.
fn audited(name: &str, is_all: bool) -> Audit {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(name);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let is_own = |line: &&str| is_all || !line.contains("-upstream,");
    let text: Vec<String> =
        read("published.csv").lines().filter(is_own).map(|line| format!("{line}\n")).collect();
    let source = Source { name: "published.csv".to_owned(), text: text.concat() };
    let facts = facts::read("facts.toml", &read("facts.toml")).unwrap();
    audit(&[source], if is_all { &facts } else { &[] }).unwrap()
}

fn codes(audit: &Audit) -> String {
    let codes: Vec<&str> = audit.rules().into_iter().map(|rule| rule.code()).collect();
    codes.join(" ")
}
