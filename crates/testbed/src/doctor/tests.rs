//! The doctor on invented machines.

use weigh_model::event::HostFacts;

use super::*;
use crate::descriptors::DescriptorLimit;

fn good() -> Facts {
    Facts {
        host: HostFacts {
            kernel: "6.1.0".into(),
            cores: 4,
            governor: "performance".into(),
            clock_source: "tsc".into(),
            congestion_control: "cubic".into(),
            ..HostFacts::default()
        },
        physical_cores: Some(4),
        descriptors: DescriptorLimit { soft: 1024, hard: 20_000 },
        own_tables: true,
        files_free: u64::MAX,
        tracked_free: None,
        tcp_pages: Some((400_000, 600_000)),
        port_range: (32768, 60999),
        reserved_ports: 0,
        time_wait: 0,
        time_wait_reuse: 0,
        backlog: 4096,
        memory_available_bytes: 8 << 30,
        load: 0.1,
        precise_waiting: true,
        timer_slack_ns: Some(1),
        targets: vec![TargetFact {
            name: "mosquitto".into(),
            title: "Mosquitto".into(),
            version: None,
            install: "apt-get install mosquitto".into(),
        }],
    }
}

fn found(check: &str, demand: &Demand, facts: &Facts) -> Finding {
    let findings = examine(demand, facts);
    findings.into_iter().find(|finding| finding.check == check).unwrap()
}

#[test]
fn a_good_machine_has_nothing_to_fix() {
    let demand = Demand { connections: 60, subscribers: 1, ..Demand::default() };
    let findings = examine(&demand, &good());
    assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
    assert!(!forbids(&findings));
}

#[test]
fn more_connections_than_ports_are_refused() {
    let facts = Facts { descriptors: DescriptorLimit { soft: 1 << 20, hard: 1 << 20 }, ..good() };
    let mut demand = Demand { connections: 28_232, ..Demand::default() };
    assert_eq!(found("ports", &demand, &facts).level, Level::Ok);
    demand.subscribers = 1;
    let finding = found("ports", &demand, &facts);
    assert_eq!(finding.level, Level::Fatal);
    assert!(finding.fix.contains("at most 28,232") && finding.fix.contains("2 addresses"));
    assert!(forbids(&examine(&demand, &facts)));
    demand.source_addresses = 2;
    assert_eq!(found("ports", &demand, &facts).level, Level::Ok);
    let facts = Facts { reserved_ports: 28_232, ..facts };
    assert_eq!(found("ports", &demand, &facts).level, Level::Fatal);
}

/// Every limit names the number to change, and with that number it is enough.
#[test]
fn a_machine_too_small_for_a_hundred_thousand_says_which_number_to_change() {
    let demand = Demand {
        connections: 100_000,
        shards: 6,
        target_shards: 6,
        source_addresses: 16,
        ..Demand::default()
    };
    assert!(!forbids(&examine(&demand, &good())));
    let small = [
        ("files", Facts { files_free: 200_063, ..good() }, "200064"),
        ("connection-tracking", Facts { tracked_free: Some(99_999), ..good() }, "+ 100000"),
        ("descriptors", Facts { own_tables: false, ..good() }, "ulimit -Hn 100064"),
        ("target-descriptors", Facts { own_tables: false, ..good() }, "ulimit -Hn 100064"),
        ("ports", Facts { port_range: (60_000, 60_999), ..good() }, "from 100 addresses"),
    ];
    for (check, facts, number) in small {
        let finding = found(check, &demand, &facts);
        assert_eq!(finding.level, Level::Fatal, "{check}");
        assert!(finding.fix.contains(number), "{check}: {}", finding.fix);
    }
    let scarce = Facts { tcp_pages: Some((150_000, 250_000)), ..good() };
    assert_eq!(found("tcp-memory", &demand, &scarce).level, Level::Warning);
    let finding = found("tcp-memory", &demand, &Facts { tcp_pages: Some((1, 150_000)), ..good() });
    assert_eq!(finding.level, Level::Fatal);
    assert!(finding.fix.contains("\"200000 300000 400000\""), "{}", finding.fix);
    let enough = Facts { files_free: 200_064, tracked_free: Some(100_000), ..good() };
    assert!(!forbids(&examine(&demand, &enough)));
    let raised = DescriptorLimit { soft: 1024, hard: 100_064 };
    assert!(!forbids(&examine(
        &demand,
        &Facts { own_tables: false, descriptors: raised, ..good() }
    )));
    let many = Demand { shards: 5, ..demand };
    let fix = found("descriptors", &many, &good()).fix;
    assert!(fix.contains("at least 6 generator threads"), "{fix}");
}

#[test]
fn descriptors_are_counted_for_each_shard() {
    let mut demand = Demand { connections: 20_000, ..Demand::default() };
    let finding = found("descriptors", &demand, &good());
    assert_eq!(finding.level, Level::Fatal);
    assert!(finding.fix.contains("at least 2 generator threads"), "{}", finding.fix);
    demand.shards = 2;
    let finding = found("descriptors", &demand, &good());
    assert_eq!(finding.level, Level::Ok);
    assert!(finding.text.contains("raised by weigh"), "{}", finding.text);
    assert_eq!(found("target-descriptors", &demand, &good()).level, Level::Fatal);
    demand.target_shards = 2;
    assert_eq!(found("target-descriptors", &demand, &good()).level, Level::Ok);
    demand.local = false;
    assert!(examine(&demand, &good()).iter().all(|f| f.check != "target-descriptors"));
}

#[test]
fn a_connection_per_message_needs_ports_again_and_again() {
    let mut demand = Demand {
        connection_per_message: true,
        connections: 10,
        rate_per_s: Some(1000.0),
        duration: Some(Nanos::from_secs(30)),
        ..Demand::default()
    };
    assert_eq!(found("port-turnover", &demand, &good()).level, Level::Fatal);
    let reusing = Facts { time_wait_reuse: 2, ..good() };
    assert_eq!(found("port-turnover", &demand, &reusing).level, Level::Ok);
    demand.duration = Some(Nanos::from_secs(20));
    assert_eq!(found("port-turnover", &demand, &good()).level, Level::Ok);
    demand.rate_per_s = None;
    assert_eq!(found("port-turnover", &demand, &good()).level, Level::Warning);
    demand.messages = Some(600);
    assert_eq!(found("port-turnover", &demand, &good()).level, Level::Ok);
}

#[test]
fn what_disturbs_is_warned_of() {
    let host = HostFacts {
        cores: 1,
        governor: "powersave".into(),
        clock_source: "hpet".into(),
        congestion_control: "bbr".into(),
        ..HostFacts::default()
    };
    let facts = Facts { host, load: 3.0, timer_slack_ns: Some(50_000), backlog: 5, ..good() };
    let demand = Demand { connections: 6, ..Demand::default() };
    let checks: Vec<&str> = examine(&demand, &facts)
        .iter()
        .filter(|finding| finding.level == Level::Warning)
        .map(|finding| finding.check)
        .collect();
    let expected = [
        "timer-slack",
        "clock-source",
        "cores",
        "governor",
        "load",
        "backlog",
        "congestion-control",
    ];
    assert_eq!(checks, expected);
    let siblings = Facts { physical_cores: Some(1), ..good() };
    assert_eq!(found("cores", &Demand::default(), &siblings).level, Level::Warning);
    let shards = Demand { shards: 4, ..Demand::default() };
    assert_eq!(found("cores", &shards, &good()).level, Level::Warning);
}

#[test]
fn waiting_ports_are_warned_of() {
    let facts = Facts { time_wait: 28_000, ..good() };
    let demand = Demand { connections: 1000, ..Demand::default() };
    assert_eq!(found("ports", &demand, &facts).level, Level::Warning);
    let facts = Facts { time_wait_reuse: 1, ..facts };
    assert_eq!(found("ports", &demand, &facts).level, Level::Ok);
}

#[test]
fn what_cannot_work_is_refused() {
    // Works, at a price.
    let old = Facts { precise_waiting: false, ..good() };
    assert_eq!(found("kernel", &Demand::default(), &old).level, Level::Warning);
    let many = Demand { messages: Some(1 << 32), ..Demand::default() };
    assert_eq!(found("memory", &many, &good()).level, Level::Fatal);
    let missing = Demand { targets: vec!["mosquitto".into()], ..Demand::default() };
    let finding = found("installed", &missing, &good());
    assert_eq!((finding.level, finding.fix.as_str()), (Level::Fatal, "apt-get install mosquitto"));
}

#[test]
fn every_trouble_has_a_fix() {
    let facts = Facts { descriptors: DescriptorLimit { soft: 1, hard: 1 }, ..good() };
    let demand = Demand { connections: u64::MAX, shards: 0, ..Demand::default() };
    for finding in examine(&demand, &facts) {
        assert!(finding.level == Level::Ok || !finding.fix.is_empty(), "{finding:?}");
    }
}

#[test]
fn shards_are_as_many_as_descriptors_need() {
    assert_eq!(shards_needed(60, 20_000), 1);
    assert_eq!(shards_needed(20_000, 20_000), 2);
    assert_eq!(shards_needed(19_500, 20_000), 1);
    assert_eq!(shards_needed(u64::MAX, 0), 64);
}

/// Connections that stand are opened a few at a time; those of messages come as they come.
#[test]
fn only_what_is_opened_at_once_has_to_be_accepted_at_once() {
    let standing = Demand { connections: 20_000, shards: 2, ..Demand::default() };
    assert_eq!(found("backlog", &standing, &good()).level, Level::Ok);
    let by_message = Demand { connection_per_message: true, ..standing };
    assert_eq!(found("backlog", &by_message, &good()).level, Level::Warning);
}
