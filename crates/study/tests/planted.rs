//! A clean, complete table raises nothing; twenty-one changes of it, each of which plants the fault
//! of one rule, raise exactly that rule.

use weigh_model::Rule;
use weigh_model::warnings::Severity;
use weigh_study::audit::{Audit, Source, audit};

#[test]
fn a_complete_table_is_clean_and_every_rule_could_be_asked() {
    let audit = audited(CLEAN);
    assert!(audit.findings.is_empty(), "{}", audit.to_text());
    assert_eq!(audit.unasked, [], "a rule that is not asked finds nothing");
}

#[test]
fn every_planted_fault_is_caught_by_its_own_rule() {
    let plants = plants();
    let planted: Vec<Rule> = plants.iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(planted, Rule::ALL);
    for (rule, clean, faulty) in plants {
        assert!(CLEAN.contains(clean), "{rule}: {clean} is not in the table");
        let audit = audited(&CLEAN.replace(clean, faulty));
        let found: Vec<Rule> = audit.rules().into_iter().collect();
        assert_eq!(found, [rule], "{rule}\n{}", audit.to_text());
        assert!(audit.to_text().contains(rule.means()) && audit.to_text().contains(rule.instead()));
        // The number of clients is not stated there: it may have been one.
        let is_open = rule == Rule::L02;
        let severity = if is_open { Severity::Warning } else { rule.severity() };
        assert!(audit.findings.iter().all(|finding| finding.severity == severity), "{rule}");
    }
}

#[test]
fn the_document_has_every_finding_with_place_and_advice() {
    let (_, clean, faulty) = plants()[9];
    let audit = audited(&CLEAN.replace(clean, faulty));
    let json: serde_json::Value = serde_json::from_str(&audit.to_json()).unwrap();
    assert_eq!(json["schema"], "weigh/audit/1");
    let finding = &json["findings"][0];
    assert_eq!((&finding["code"], &finding["severity"]), (&"L10".into(), &"doubt".into()));
    assert_eq!(finding["place"]["table"], "Search");
    assert!(finding["place"]["line"].as_u64() > Some(1) && finding["instead"].is_string());
}

#[test]
fn a_filter_leaves_one_rule() {
    let (_, clean, faulty) = plants()[19];
    let mut audit = audited(&CLEAN.replace(clean, faulty));
    audit.keep(&[Rule::L19]);
    assert!(audit.findings.is_empty());
}

/// The rule, what stands in the clean table, and what takes its place.
fn plants() -> [(Rule, &'static str, &'static str); 21] {
    [
        (Rule::L01, "9990,1/s", "4990,1/s"),
        (Rule::L02, "clients=1;stat", "stat"),
        (Rule::L03, "generator=20%;stat=throughput", "generator=20%;stat=capacity"),
        (Rule::L04, "ramp=0s", "ramp=10s"),
        (Rule::L05, CLEAN_TIMES, TICKING_TIMES),
        (Rule::L06, "8.5,percent", "8.51,percent"),
        (Rule::L07, "max_cpu,,,14.0", "max_cpu,,,11.0"),
        (Rule::L08, "protocol=MQTT;complete=confirmed", "protocol=MQTT;complete=handed over"),
        (Rule::L09, "clients=60;rate=500/s", "clients=60"),
        (Rule::L10, "1030,1/s,99.1,percent", "1300,1/s,99.1,percent"),
        (Rule::L11, "background_share=100%", "background_share=35%"),
        (Rule::L12, "error,,,0,percent", "error,,,0.5,percent"),
        (Rule::L13, "repetitions,,,10,runs", "repetitions,,,1,runs"),
        (Rule::L14, "28912,B", "1552,B"),
        (Rule::L15, "10,connections", "59000,connections"),
        (
            Rule::L16,
            "protocol=HTTP;complete=confirmed;durability=memory;in_flight=1",
            HTTP_WITH_MORE_IN_FLIGHT,
        ),
        (Rule::L17, "60000,samples", "300,samples"),
        (Rule::L18, "protocol=relay", "protocol=other"),
        (Rule::L19, "generator=30%;trials=5", "trials=5"),
        (Rule::L20, "clock_bound=10us;", ""),
        (Rule::L21, "MQTT;complete=confirmed;durability=memory", MQTT_ON_DISK),
    ]
}

fn audited(table: &str) -> Audit {
    let source = Source { name: "table.csv".to_owned(), text: table.to_owned() };
    audit(&[source], &[]).unwrap()
}

const MQTT_ON_DISK: &str = "MQTT;complete=confirmed;durability=fsync";

const HTTP_WITH_MORE_IN_FLIGHT: &str =
    "protocol=HTTP;complete=confirmed;durability=memory;in_flight=20";

const CLEAN: &str = include_str!("samples/complete.csv");

const CLEAN_TIMES: &str = "\
s,Times,protocol=HTTP;stat=total_transfer_time,1000,messages,3.315,s
s,Times,protocol=HTTP;stat=total_transfer_time,2000,messages,5.918,s
s,Times,protocol=HTTP;stat=total_transfer_time,3000,messages,9.102,s
s,Times,protocol=HTTP;stat=total_transfer_time,4000,messages,12.541,s
s,Times,protocol=HTTP;stat=total_transfer_time,5000,messages,15.733,s
s,Times,protocol=HTTP;stat=total_transfer_time,6000,messages,18.227,s
s,Times,protocol=HTTP;stat=total_transfer_time,7000,messages,21.654,s
s,Times,protocol=HTTP;stat=total_transfer_time,8000,messages,25.076,s
";

const TICKING_TIMES: &str = "\
s,Times,protocol=HTTP;stat=total_transfer_time,1000,messages,3.315,s
s,Times,protocol=HTTP;stat=total_transfer_time,2000,messages,5.341,s
s,Times,protocol=HTTP;stat=total_transfer_time,3000,messages,9.338,s
s,Times,protocol=HTTP;stat=total_transfer_time,4000,messages,12.343,s
s,Times,protocol=HTTP;stat=total_transfer_time,5000,messages,15.336,s
s,Times,protocol=HTTP;stat=total_transfer_time,6000,messages,18.329,s
s,Times,protocol=HTTP;stat=total_transfer_time,7000,messages,21.351,s
s,Times,protocol=HTTP;stat=total_transfer_time,8000,messages,25.347,s
";
