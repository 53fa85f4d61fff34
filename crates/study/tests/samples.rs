//! Outputs of other tools: told apart by what stands in them, and read with the rules that they
//! break. `tests/samples/README.md` says where each comes from.

use std::path::Path;

use weigh_study::audit::{Audit, Source, audit};

#[test]
fn every_format_is_known_and_its_faults_are_found() {
    for (file, format, broken) in [
        // The generator was busy for an eighth of the time, and nothing else says so.
        ("wrk.txt", "wrk text", "L01 L19"),
        ("wrk-errors.txt", "wrk text", "L01 L12 L19"),
        ("wrk2.txt", "wrk text", "L17"),
        ("h2load.txt", "h2load text", "L19"),
        ("h2load-rps.txt", "h2load text", ""),
        ("autocannon.json", "autocannon JSON", "L05 L17 L19"),
        ("autocannon-amount.json", "autocannon JSON", "L01 L05 L17 L19"),
        ("mqtt-stresser.txt", "mqtt-stresser text", "L19"),
        ("oha.json", "oha JSON", "L12 L17 L19"),
        ("oha.txt", "oha text", "L19"),
        ("k6.txt", "k6 text", "L04 L17"),
        ("k6-export.json", "k6 summary JSON", "L12"),
        ("k6-handle-summary.json", "k6 summary JSON", ""),
        ("jmeter-steady.jtl", "JMeter .jtl, CSV", ""),
        ("jmeter-ramp.jtl", "JMeter .jtl, CSV", "L04 L12 L15"),
        ("jmeter-xml.jtl", "JMeter .jtl, XML", "L04 L12 L15"),
        ("jmeter-aggregate.csv", "JMeter aggregate report, CSV", "L12"),
    ] {
        let audit = audited(file);
        assert_eq!(audit.read, [(file.to_owned(), format.to_owned())]);
        let codes: Vec<&str> = audit.rules().into_iter().map(|rule| rule.code()).collect();
        assert_eq!(codes.join(" "), broken, "{file}\n{}", audit.to_text());
    }
}

/// Files that went through another system: a mark at the beginning, and line ends of two bytes.
#[test]
fn line_ends_and_byte_order_marks_change_nothing() {
    for file in ["wrk.txt", "h2load.txt", "oha.json", "k6.txt", "jmeter-ramp.jtl", "oha.txt"] {
        let text = read(file).replace('\n', "\r\n");
        let source = Source { name: file.to_owned(), text: format!("\u{feff}{text}") };
        assert_eq!(audit(&[source], &[]).unwrap().to_text(), audited(file).to_text(), "{file}");
    }
}

/// What a tool printed is read as it was meant, to the digit.
#[test]
fn figures_are_read_as_they_were_printed() {
    for (file, seen) in [
        ("wrk.txt", "wrk.txt:12 [wrk]: wrk: 8 clients / (59.8 µs mean)"),
        ("wrk-errors.txt", "100 % of the samples are errors"),
        ("autocannon-amount.json", "1.01 s on a grid of 1 s"),
        ("autocannon.json", "the p99.999 needs 368,887 samples, there were 138,958"),
        ("wrk2.txt", "the p99.999 needs 368,887 samples, there were 39,500"),
        ("oha.json", "the p99 needs 368 samples, there were 200"),
        ("oha.json", "5 % of the samples are errors"),
        ("k6.txt", "from 1 to 15 clients in one window"),
        ("k6-export.json", "2.5 % of the samples are errors"),
        ("jmeter-aggregate.csv", "42.83 % of the samples are errors"),
        ("jmeter-xml.jtl", "[JMeter]: JMeter: 3 connections for 3 messages, 1 each"),
    ] {
        let text = audited(file).to_text();
        assert!(text.contains(seen), "{file}: {seen}\n{text}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place_and_the_fix() {
    for (text, place, fix) in [
        ("", "x: the file is empty", "figures"),
        ("{\"a\": 1,", "x, line 1: not valid JSON", "again"),
        ("{\"a\": 1}", "its keys are a", "autocannon"),
        ("a,b\n1,2\n", "it begins with \"a,b\"", "study,table,series"),
        ("<testResults><httpSample t=\"1\"></testResults>", "x, line 1", "JMeter"),
        ("<html></html>", "no sample", ".jtl"),
        ("timeStamp,elapsed,label\n1,fast,a\n", "x, line 2", "milliseconds"),
        ("study,table,series,x,x_unit,y,y_unit\ns,t,stat=mean,,,1\n", "x, line 2", "empty"),
        ("[package]\nname = \"a\"\n", "it begins with \"[package]\"", "h2load"),
    ] {
        let source = Source { name: "x".to_owned(), text: text.to_owned() };
        let error = audit(&[source], &[]).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(fix), "{text:?}: {error}");
    }
}

fn audited(file: &str) -> Audit {
    audit(&[Source { name: file.to_owned(), text: read(file) }], &[]).unwrap()
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(file);
    std::fs::read_to_string(path).unwrap()
}
