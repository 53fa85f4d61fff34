//! Everything inside TLS: the reference servers, real ones, and OpenSSL as a stranger at the
//! other end.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::foreign::Installed;
use crate::rig::{Place, has, has_hosts};
use crate::serving::Server;

fn metric(cell: &Value, name: &str) -> Option<f64> {
    cell["metrics"][name]["value"].as_f64()
}

/// Full ones and resumed ones: whether the later connections resume depends on whether the first
/// has its ticket by then.
fn handshakes(cell: &Value) -> Option<f64> {
    Some(metric(cell, "tls_handshakes_full")? + metric(cell, "tls_handshakes_resumed")?)
}

#[test]
fn the_same_load_goes_without_and_with_tls() {
    let place = Place::new("tls-both");
    let words = ["mqtt", "http", "tcp", "--tls", "both", "-q", "1", "-n", "40", "--json"];
    let summary = place.compare(&words).with(0).json();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        let key = format!("{}.tls", cell["point"]["protocol"].as_str().unwrap());
        let is_on = cell["point"][&key] == "on";
        assert!(is_on || cell["point"][&key] == "off", "{}", cell["point"]);
        assert_eq!(cell["ledger"]["delivered"], 40, "{}", cell["point"]);
        assert_eq!(handshakes(cell).is_some_and(|count| count >= 4.0), is_on, "{cell}");
        assert_eq!(metric(cell, "tls_handshake_time_ns.p50").is_some(), is_on);
        assert!(!cell["doubts"].to_string().contains("unchecked"), "{}", cell["doubts"]);
    }
    place.keeps_secret("PRIVATE KEY");
    place.nobody_is_left();
}

/// A connection for every message: after the first of each client, sessions are resumed and cost
/// fewer bytes, unless resuming is off.
#[test]
fn sessions_are_resumed_or_not() {
    let place = Place::new("tls-resume");
    for version in ["1.2", "1.3"] {
        for resumes in ["true", "false"] {
            let set = format!("tcp.tls_resume={resumes}");
            let words = ["tcp", "--tls", version, "--set", &set, "--pattern", "session"];
            let load = ["-n", "40", "-c", "2", "--json"];
            let summary = place.compare(&[&words[..], &load[..]].concat()).with(0).json();
            let cell = &summary["cells"][0];
            let full = metric(cell, "tls_handshakes_full").unwrap();
            let resumed = metric(cell, "tls_handshakes_resumed").unwrap();
            assert!(full + resumed >= 40.0, "{full} full, {resumed} resumed");
            let most = if resumes == "true" { resumed > full } else { resumed == 0.0 };
            assert!(most, "TLS {version}, resumes {resumes}: {full} full, {resumed} resumed");
        }
    }
    place.nobody_is_left();
}

/// Tickets are taken by every shard of the server, whichever gave them.
#[test]
fn many_shards_share_what_resumes_sessions() {
    let place = Place::new("tls-shards");
    let words = ["tcp", "--tls", "1.3", "--pattern", "session", "--shards", "2"];
    let load = ["-n", "60", "-c", "4", "--json"];
    let summary = place.compare(&[&words[..], &load[..]].concat()).with(0).json();
    let cell = &summary["cells"][0];
    assert_eq!(cell["ledger"]["delivered"], 60);
    let resumed = metric(cell, "tls_handshakes_resumed").unwrap();
    assert!(resumed >= 40.0, "{resumed} of at least 60 resumed");
    place.nobody_is_left();
}

/// A run that ended early goes on with certificates of its own: the keys of the first are gone.
#[test]
fn a_run_inside_tls_is_resumed() {
    let place = Place::new("tls-run-resumed");
    place.write(
        "plan.toml",
        "name = \"inside\"\nseed = 1\n[load]\nmessages = 20\n[tcp]\ntls = \"1.3\"\n\
         [repeat]\nat_least = 1\nat_most = 1\n[vary]\nprotocol = [\"tcp\"]\n\
         \"load.connections\" = [1, 2]\n",
    );
    place.weigh(&["run", "plan.toml", "--json"]).with(0);
    let journal = place.runs()[0].join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let first = text.lines().position(|line| line.contains("\"trial_finished\"")).unwrap();
    let kept: Vec<&str> = text.lines().take(first + 1).collect();
    std::fs::write(&journal, kept.join("\n") + "\n").unwrap();
    let summary = place.weigh(&["run", "--resume", "latest", "--json"]).with(0).json();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["ledger"]["delivered"], 20, "{cell}");
        assert!(handshakes(cell).unwrap() >= 1.0, "{cell}");
    }
    place.nobody_is_left();
}

/// On the wire lies what rustls says that it has put there, and the content of a protocol is the
/// same to the byte whether TLS carries it or not.
#[test]
fn the_wire_shows_handshakes_and_records() {
    if !has_hosts("the_wire_shows_handshakes_and_records") {
        return;
    }
    let place = Place::new("tls-wire");
    let words = ["tcp", "--wire", "--tls", "both", "--pattern", "publish", "-c", "1"];
    let load = ["-n", "50", "--warmup", "0s", "--json"];
    let summary = place.compare(&[&words[..], &load[..]].concat()).with(0).json();
    let mut content = Vec::new();
    for cell in summary["cells"].as_array().unwrap() {
        let warnings = cell["doubts"].as_array().unwrap();
        assert!(warnings.iter().all(|warning| warning["code"] != "wire"), "{warnings:?}");
        let layer = |name: &str| metric(cell, &format!("wire.layers.{name}_bytes")).unwrap();
        content.push(layer("protocol") + layer("payload"));
        let is_on = cell["point"]["tcp.tls"] == "on";
        assert_eq!(layer("tls_handshake") > 600.0, is_on, "{cell}");
        // 22 bytes around each message, both ways (RFC 8446, section 5.2).
        assert_eq!(layer("tls_record") >= 2.0 * 50.0 * 22.0, is_on, "{cell}");
    }
    assert_eq!(content[0], content[1], "the protocol inside is the same");
    place.nobody_is_left();
}

/// Both servers are OpenSSL underneath; they are asked for certificates of ours too.
#[test]
fn real_servers_are_weighed_inside_tls() {
    let place = Place::new("tls-real");
    for (server, protocol) in [("mosquitto", "mqtt"), ("nginx", "http1")] {
        if !has(server) {
            println!("SKIPPED: {server} is not installed");
            continue;
        }
        for (version, mutual) in [("1.2", "true"), ("1.3", "false")] {
            let set = format!("{protocol}.tls_mutual={mutual}");
            let mut words = vec![server, "--tls", version, "--set", &set, "-n", "40", "--json"];
            if protocol == "mqtt" {
                words.extend(["-q", "1"]);
            }
            let summary = place.compare(&words).with(0).json();
            let cell = &summary["cells"][0];
            assert_eq!(cell["ledger"]["delivered"], 40, "{server} {version}");
            assert!(handshakes(cell).unwrap() >= 4.0, "{server} {version}");
        }
    }
    place.nobody_is_left();
}

/// A bad certificate is refused with its reason and its fix; one that is accepted without a check
/// gets a warning.
#[test]
fn certificates_are_never_accepted_silently() {
    let place = Place::new("tls-refusals");
    let words = ["mqtt", "--set", "mqtt.tls=on", "--certificates", "made"];
    let server = Server::start(&place, &words);
    assert!(server.url.starts_with("mqtts://127.0.0.1:"), "{}", server.url);
    let url = server.url.clone();
    let load = ["-q", "1", "-n", "20"];
    let told = |more: &[&str], said: &[&str]| {
        let words = [&[&*url][..], &load[..], more].concat();
        place.compare(&words).with(3).saying(said);
    };
    told(&[], &["authority is not known", "--cacert FILE"]);
    let elsewhere = ["--cacert", "made/ca.pem", "--set", "mqtt.tls_name=elsewhere"];
    told(&elsewhere, &["not for elsewhere but for localhost, 127.0.0.1", "tls_name"]);
    let plain = url.replace("mqtts", "mqtt");
    place.compare(&[&[&*plain][..], &load[..]].concat()).with(3);
    for (more, has_warning) in
        [(["--cacert", "made/ca.pem"], false), (["--insecure", "--json"], true)]
    {
        let mut words = [&[&*url][..], &load[..], &more[..]].concat();
        words.push(if has_warning { "--quiet" } else { "--json" });
        let summary = place.compare(&words).with(0).json();
        let cell = &summary["cells"][0];
        assert_eq!(cell["ledger"]["delivered"], 20);
        let warnings = cell["doubts"].to_string();
        assert_eq!(warnings.contains("certificates-unchecked"), has_warning, "{warnings}");
        assert_eq!(warnings.contains("authority is not known"), has_warning, "{warnings}");
    }
    server.end("TERM");
    place.nobody_is_left();
}

#[test]
fn what_contradicts_itself_is_refused_before_anything_starts() {
    let place = Place::new("tls-words");
    place.write("nonsense.pem", "no certificate at all\n");
    for (words, said) in [
        (&["mqtt", "--cacert", "nonsense.pem"][..], "--cacert: no target is measured with TLS"),
        (&["mqtt", "--insecure"], "--insecure: no target is measured with TLS"),
        (&["mqtts://localhost:1", "--tls", "off"], "uses TLS"),
        (&["mqtts://localhost:1", "--cacert", "nonsense.pem"], "contains no certificate"),
        (&["mqtts://localhost:1", "--cacert", "missing.pem"], "missing.pem: cannot be read"),
        (&["tcp", "--set", "tcp.tls_ca=a.pem"], "tcp.tls_ca: there is no TLS"),
        (&["tcp", "--tls", "on", "--set", "tcp.tls_cert=a.pem"], "belong together"),
        (&["tcp", "--tls", "on", "--cacert", "nonsense.pem"], "--cacert: applies to servers given"),
    ] {
        place.compare(words).with(2).saying(&[said]);
    }
    assert!(place.runs().is_empty(), "nothing was run");
    place.weigh(&["serve", "tcp", "--set", "tcp.tls=on"]).with(2).saying(&["--certificates DIR"]);
}

/// OpenSSL's own server, whose answers end with close_notify, and which waits for ours.
#[test]
fn answers_of_openssl_end_where_it_says_so() {
    let place = Place::new("tls-s-server");
    // Makes the certificates.
    let words = ["http", "--set", "http1.tls=on", "--certificates", "made"];
    let maker = Server::start(&place, &words);
    let files = ["-cert", "made/server.pem", "-key", "made/server.key"];
    let words = ["s_server", "-accept", "127.0.0.1:PORT", "-www", "-quiet"];
    let words = [&words[..], &files].concat();
    let Some(server) = Installed::start(&place, "openssl", &words, "") else { return };
    let url = server.url("https");
    let words = [&*url, "--cacert", "made/ca.pem", "--set", "http1.method=GET"];
    let load = ["--set", "http1.keep_alive=false", "-c", "1", "-n", "10", "--json"];
    let ended = place.compare(&[&words[..], &load[..]].concat());
    drop(server);
    maker.end("TERM");
    let summary = ended.with(0).json();
    assert_eq!(summary["cells"][0]["ledger"]["delivered"], 10, "{}", summary["cells"][0]);
}

/// OpenSSL's own client agrees with the reference server on version, protocol and certificate.
#[test]
fn openssl_speaks_with_the_reference_server() {
    if !has("openssl") {
        println!("SKIPPED: openssl is not installed");
        return;
    }
    let place = Place::new("tls-openssl");
    for (flag, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let words = ["http", "--set", "http1.tls=on", "--certificates", "made"];
        let server = Server::start(&place, &words);
        let address = server.url.trim_start_matches("https://");
        let mut client = Command::new("openssl")
            .args(["s_client", "-connect", address, flag, "-CAfile", "made/ca.pem"])
            .args(["-verify_return_error", "-servername", "localhost", "-alpn", "http/1.1"])
            .args(["-ign_eof", "-verify_hostname", "localhost"])
            .current_dir(place.folder())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        client.stdin.as_mut().unwrap().write_all(request).unwrap();
        let output = client.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for said in [version, "Verification: OK", "ALPN protocol: http/1.1", "HTTP/1.1 200"] {
            assert!(text.contains(said), "{version}: no {said:?} in {text}");
        }
        // A truncated session would be an error of OpenSSL 3 ("unexpected eof").
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!errors.contains("unexpected eof"), "{errors}");
        server.end("TERM");
    }
    place.nobody_is_left();
}
