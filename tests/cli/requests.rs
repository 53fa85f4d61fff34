//! What requests and messages to somebody else's server look like: header fields and secrets among
//! them, method, statuses, places in paths and topics.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::rig::Place;
use crate::serving::Server;

/// A server of HTTP/1.1 that answers everything with one status, and what it was asked.
fn listening(status: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let requests = Arc::clone(&heard);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let requests = Arc::clone(&requests);
            std::thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    requests.lock().expect("a list").push(text);
                    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (format!("http://{address}"), heard)
}

fn recorded(place: &Place, secret: &str) -> bool {
    place
        .files_of_the_run()
        .iter()
        .any(|file| String::from_utf8_lossy(&std::fs::read(file).expect("a file")).contains(secret))
}

#[test]
fn fields_method_status_and_path_are_as_asked_and_secrets_stay_secret() {
    let place = Place::new("requests");
    let (url, heard) = listening("201 Created");
    place.write("secrets.txt", "X-Api-Key: from-a-file-77\n\nX-Two: second-88\n");
    let url = format!("{url}/farm/{{client}}/{{seq}}");
    let words = [
        &url,
        // Nothing but messages is heard.
        "--sys",
        "off",
        "-n",
        "20",
        "-c",
        "2",
        "--method",
        "PUT",
        "--status",
        "201",
        "-H",
        "X-Site: 7|8",
        "-H",
        "Authorization: Bearer open-sesame",
        "--secret-header",
        "X-Own: hidden-99",
        "-H",
        "@secrets.txt",
        "--json",
    ];
    let ended = place.compare(&words).with(0);
    assert_eq!(ended.json()["cells"][0]["ledger"]["delivered"], 20);
    let heard = heard.lock().expect("a list").clone();
    let lines: BTreeSet<&str> = heard.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(lines.len(), 20, "each message has a path of its own: {lines:?}");
    for line in ["PUT /farm/0/0 HTTP/1.1", "PUT /farm/1/9 HTTP/1.1"] {
        assert!(lines.contains(line), "{line}: {lines:?}");
    }
    for field in [
        "X-Site: 7|8\r\n",
        "Authorization: Bearer open-sesame\r\n",
        "X-Own: hidden-99\r\n",
        "X-Api-Key: from-a-file-77\r\n",
        "X-Two: second-88\r\n",
        "Content-Length: ",
    ] {
        assert!(heard.iter().all(|text| text.contains(field)), "{field}: {}", heard[0]);
    }
    for secret in ["open-sesame", "hidden-99", "from-a-file-77", "second-88"] {
        assert!(!recorded(&place, secret), "{secret} is in the run");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains(secret), "{secret} was printed");
    }
    assert!(recorded(&place, "X-Site: 7"), "what is no secret is recorded");
}

#[test]
fn a_plan_says_the_same_and_records_no_secret() {
    let place = Place::new("requests-plan");
    let (url, heard) = listening("404 Not Found");
    place.write(
        "plan.toml",
        &format!(
            "target = \"{url}/a\"\nload.messages = 6\nload.warmup = \"0s\"\nrepeat.at_least = 1\n\
             observe.sys = \"off\"\n\
             [http1]\nmethod = \"DELETE\"\nstatus = \"404\"\nheaders = \"Cookie: crumb-4711\"\n\
             secret_headers = \"X-Key: hush-hush\"\n"
        ),
    );
    let ended = place.weigh(&["run", "plan.toml", "--json"]).with(0);
    assert_eq!(ended.json()["cells"][0]["ledger"]["delivered"], 6);
    let heard = heard.lock().expect("a list").clone();
    assert!(heard.iter().all(|text| text.starts_with("DELETE /a HTTP/1.1\r\n")
        && text.contains("Cookie: crumb-4711\r\n")
        && text.contains("X-Key: hush-hush\r\n")));
    assert!(!recorded(&place, "crumb-4711") && !recorded(&place, "hush-hush"));
    place.weigh(&["run", "--resume", "latest"]).with(2).saying(&["--set http1."]);
}

#[test]
fn every_message_may_have_a_topic_of_its_own() {
    let place = Place::new("topics");
    for version in ["3.1.1", "5"] {
        let set = format!("mqtt.version={version}");
        let topic = ["--topic", "farm/{client}/{seq}", "--set", &*set];
        let words = [&["mqtt", "-q", "1", "-n", "60", "-c", "3", "--json"][..], &topic].concat();
        let ledger = &place.compare(&words).with(0).json()["cells"][0]["ledger"];
        assert_eq!((&ledger["delivered"], &ledger["lost"]), (&60.into(), &0.into()), "{ledger}");
    }
}

#[test]
fn http2_and_grpc_send_the_fields_too() {
    let place = Place::new("requests-http2");
    for protocol in ["http2", "grpc"] {
        let server = Server::start(&place, &[protocol]);
        let fields = ["-H", "X-Site: 7", "-H", "Authorization: Bearer open-sesame", "--json"];
        let words = [&[&*server.url, "-n", "30", "-s", "64B"][..], &fields].concat();
        let summary = place.compare(&words).with(0).json();
        assert_eq!(summary["cells"][0]["ledger"]["delivered"], 30, "{protocol}");
        server.end("TERM");
    }
}

#[test]
fn what_means_nothing_or_contradicts_itself_is_refused() {
    let place = Place::new("requests-refused");
    let server = Server::start(&place, &["http"]);
    let url = &*server.url;
    for (words, told) in [
        (&["tcp", "-H", "X: 1"][..], "belongs to http1, http2, http3, grpc, websocket and sse"),
        (&["http", "--topic", "a"], "belongs to mqtt"),
        (&["mqtt", "--status", "200"], "belongs to http1, http2, http3 and sse"),
        (&[url, "-H", "no-field"], "is not a header field"),
        (&[url, "-H", "Content-Length: 3"], "cannot be set"),
        (&[url, "-H", "@no-such-file"], "cannot be read"),
        (&[url, "--status", "1xx"], "is not a list of statuses"),
        (&[url, "--method", "BREW"], "POST"),
        (&["mqtt", "--topic", "a/{seq}", "-s", "8B"], "no room"),
        (&["mqtt", "--topic", "a/%x"], "unknown placeholder %x"),
    ] {
        place.compare(words).with(2).saying(&[told]);
    }
    assert!(place.runs().is_empty());
    server.end("TERM");
}
