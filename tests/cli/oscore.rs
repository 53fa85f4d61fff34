//! CoAP inside OSCORE: the reference server, and aiocoap at the other end.

use std::io::Read;

use serde_json::Value;

use crate::foreign::{Process, free_udp_port, python};
use crate::rig::{Place, cells, figure, has_hosts, ledgers_are_whole, until};
use crate::serving::Server;

const ON: [&str; 2] = ["--set", "coap.oscore=on"];

fn are_whole(place: &Place, messages: u64) {
    ledgers_are_whole(place, messages);
    for cell in cells(&place.summary()) {
        let name = &cell["name"];
        assert!(name.as_str().is_some_and(|name| name.contains("oscore=on")), "{name}");
    }
}

/// The patterns of CoAP, several trials at one server, and a key that stays out of the record.
#[test]
fn the_same_load_goes_inside_oscore() {
    for (pattern, more) in [
        ("publish", &[][..]),
        ("session", &[]),
        ("deliver", &["--set", "coap.notify_queue=1000"]),
        ("poll", &["--period", "50ms", "-R", "200/s"]),
    ] {
        let place = Place::new(&format!("oscore-{pattern}"));
        let words = ["coap", "--pattern", pattern, "-n", "60", "-c", "3"];
        let key = ["--set", "coap.oscore_secret=a secret of the run"];
        place.compare(&[&words[..], more, &ON, &key].concat()).with(0);
        are_whole(&place, 60);
        for event in place.journal() {
            if event["event"] == "trial_finished" {
                let server = &event["server"];
                let dropped = server["dropped"].as_object().is_none_or(serde_json::Map::is_empty);
                assert!(dropped && server["unique"] == 60, "{pattern}: {server}");
            }
        }
        place.keeps_secret("secret of the run");
        place.nobody_is_left();
    }
}

/// One server, two runs: the second has other IDs, and nothing is a replay; with given IDs its
/// numbers begin above.
#[test]
fn a_server_that_stays_takes_the_next_run() {
    let place = Place::new("oscore-stays");
    let ids = ["--set", "coap.oscore_sender_id=hex:01", "--set", "coap.oscore_recipient_id=hex:81"];
    let server = Server::start(&place, &[&["coap"], &ON[..]].concat());
    let run = |url: &str, more: &[&str]| {
        let other = Place::new("oscore-run");
        let words = [&format!("{url}/messages"), "--pattern", "publish", "-n", "20", "-c", "2"];
        other.compare(&[&words[..], &ON, more].concat()).with(0);
    };
    run(&server.url, &[]);
    run(&server.url, &[]);
    let (_, report) = server.end("TERM");
    assert!(!report.contains("oscore_"), "{report}");
    let server = Server::start(&place, &[&["coap"], &ON[..], &ids].concat());
    run(&server.url, &ids);
    run(&server.url, &[&ids[..], &["--set", "coap.oscore_sequence=5000"]].concat());
    let (_, report) = server.end("TERM");
    assert!(!report.contains("oscore_"), "{report}");
}

#[test]
fn contradictions_are_named() {
    let place = Place::new("oscore-wrong");
    let refused = |words: &[&str], parts: &[&str]| {
        let words = [&["coap", "-n", "5", "--pattern", "publish"], words].concat();
        place.compare(&words).with(2).saying(parts);
    };
    refused(&["--set", "coap.oscore_window=64"], &["coap.oscore_window", "coap.oscore=on"]);
    let half = ["--set", "coap.oscore_sender_id=hex:01"];
    refused(&[&ON[..], &half].concat(), &["coap.oscore_recipient_id", "belong together"]);
    let key = ["--set", "coap.oscore_secret=hex:0"];
    refused(&[&ON[..], &key].concat(), &["coap.oscore_secret", "pairs of hexadecimal digits"]);
    let many =
        ["--set", "coap.oscore_sender_id=hex:fe", "--set", "coap.oscore_recipient_id=hex:01"];
    refused(&[&ON[..], &many, &["-c", "9"]].concat(), &["coap.oscore_sender_id", "fewer IDs"]);
}

/// A security context as aiocoap keeps it; its own ID and that of the other end.
fn context(place: &Place, name: &str, own: &str, other: &str, secret: &str) {
    std::fs::create_dir_all(place.folder().join(name)).expect("a folder");
    let settings = serde_json::json!({
        "sender-id_hex": own,
        "recipient-id_hex": other,
        "secret_ascii": secret,
        "salt_hex": "9e7ca92223786340",
    });
    place.write(&format!("{name}/settings.json"), &settings.to_string());
}

/// What is needed of aiocoap.
const WITH_OSCORE: &str = "aiocoap.oscore_sitewrapper";

const SECRET: &str = "shared with aiocoap";

const SHARED: [&str; 2] = ["--set", "coap.oscore_secret=shared with aiocoap"];

/// A client of aiocoap stores, reads, observes and sends blocks; one with another key is refused.
#[test]
fn the_client_of_aiocoap_is_served_inside_oscore() {
    let Some(python) = python("WEIGH_AIOCOAP", WITH_OSCORE) else { return };
    let place = Place::new("oscore-client");
    place.write("client.py", CLIENT);
    context(&place, "known", "01", "5301", SECRET);
    context(&place, "wrong", "02", "5303", SECRET);
    context(&place, "other", "03", "5303", "another secret");
    let server = Server::start(&place, &[&["coap"], &ON[..], &SHARED].concat());
    let url = format!("{}/messages", server.url);
    let ask = |context: &str| {
        let words = ["-W", "ignore", "client.py", &url, context];
        let output = place.program(&python, &words).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let fault = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{fault}");
        said
    };
    assert_eq!(ask("known/"), "2.04 Changed; observed: b'two'; blocks: 5000");
    // Its request verifies: only the answer has the key of another end.
    assert_eq!(ask("wrong/"), "no answer that verifies");
    assert_eq!(ask("none"), "4.01 Unauthorized: OSCORE is required");
    assert_eq!(ask("other/"), "4.00 Bad Request: Decryption failed");
    let (code, report) = server.end("TERM");
    assert_eq!(code, Some(0), "{report}");
    let report: Value = serde_json::from_str(report.trim()).expect("the last line is JSON");
    assert!(report.to_string().contains("\"oscore_missing\":1"), "{report}");
}

const CLIENT: &str = r#"
import asyncio, sys
from aiocoap import Context, Message, GET, POST, NON, oscore

async def main(url, basedir):
    context = await Context.create_client_context()
    if basedir != 'none':
        known = {url + '*': {'oscore': {'basedir': basedir}}}
        context.client_credentials.load_from_dict(known)
    ask = lambda **more: context.request(Message(uri=url, **more)).response
    try:
        first = await asyncio.wait_for(ask(code=POST, payload=b'one'), 5)
    except oscore.NotAProtectedMessage as error:
        first = error.plain_message
    except oscore.ProtectionInvalid:
        return print('no answer that verifies')
    if not first.code.is_successful():
        return print(f'{first.code}: {first.payload.decode()}')
    registered = context.request(Message(code=GET, uri=url, observe=0))
    await registered.response
    heard = asyncio.get_running_loop().create_future()
    registered.observation.register_callback(
        lambda message: heard.done() or heard.set_result(message.payload))
    await ask(code=POST, payload=b'two', mtype=NON)
    payload = await asyncio.wait_for(heard, 5)
    await ask(code=POST, payload=b'x' * 5000)
    whole = await ask(code=GET)
    print(f'{first.code}; observed: {payload}; blocks: {len(whole.payload)}')

asyncio.run(main(*sys.argv[1:]))
"#;

/// A server of aiocoap and its port. Another test may take a port that was free: then it is started
/// again.
fn aiocoap(place: &Place, python: &str) -> (Process, String) {
    for _ in 0..3 {
        let port = free_udp_port().to_string();
        let mut command = place.program(python, &["-W", "ignore", "server.py", &port]);
        // By default it also listens for TCP, on ports that connections of other tests may have.
        command.env("AIOCOAP_SERVER_TRANSPORT", "oscore:udp6");
        let mut server = Process(command.spawn().expect("it starts"));
        let mut is_over = false;
        until("the server is ready, or has ended", || {
            is_over = server.try_wait().is_ok_and(|ended| ended.is_some());
            is_over || place.folder().join("ready").exists()
        });
        if !is_over {
            return (server, port);
        }
        let mut said = String::new();
        server.stderr.take().map(|mut stream| stream.read_to_string(&mut said));
        println!("aiocoap ended at port {port}: {said}");
    }
    panic!("aiocoap does not start");
}

/// A server of aiocoap takes every message of both types, with blocks, and notifies.
#[test]
fn the_server_of_aiocoap_is_measured_inside_oscore() {
    let Some(python) = python("WEIGH_AIOCOAP", WITH_OSCORE) else { return };
    let place = Place::new("oscore-server");
    place.write("server.py", SERVER);
    for index in 1..=4 {
        let (name, own) = (format!("context{index}"), format!("8{index}"));
        context(&place, &name, &own, &format!("0{index}"), SECRET);
    }
    let (server, port) = aiocoap(&place, &python);
    let url = format!("coap://127.0.0.1:{port}/messages");
    let ids = ["--set", "coap.oscore_sender_id=hex:01", "--set", "coap.oscore_recipient_id=hex:81"];
    for (kind, pattern, first, more) in [
        ("con", "publish", "0", &["-s", "120B"][..]),
        ("non", "publish", "1000", &["-s", "120B"]),
        ("con", "publish", "2000", &["-s", "3KB"]),
        ("non", "deliver", "3000", &["-y", "2", "-R", "20/s", "--topology", "fan-out"]),
    ] {
        let other = Place::new(&format!("oscore-server-{first}"));
        let (kind, first) = (format!("coap.type={kind}"), format!("coap.oscore_sequence={first}"));
        let words = [&*url, "--pattern", pattern, "-n", "40", "-c", "2"];
        let set = ["--set", &kind, "--set", &first];
        other.compare(&[&words[..], &ON, &SHARED, &ids, &set, more].concat()).with(0);
        let messages = if pattern == "deliver" { 80 } else { 40 };
        are_whole(&other, messages);
    }
    let other = Place::new("oscore-server-key");
    // It does not answer such a message that is not confirmable.
    let words = [&*url, "--pattern", "publish", "-n", "5", "-c", "1", "--set", "coap.type=con"];
    let key = ["--set", "coap.oscore_secret=another", "--set", "coap.oscore_sequence=9000"];
    let refused = other.compare(&[&words[..], &ON, &ids, &key].concat());
    refused.with(98).saying(&["4.00 Bad Request", "compare the keys"]);
    drop(server);
}

const SERVER: &str = r#"
import asyncio, sys
from aiocoap import Context, Message, CHANGED, CONTENT, credentials, resource
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

class Messages(resource.ObservableResource):
    newest = b''

    async def render_get(self, request):
        return Message(payload=self.newest)

    async def render_post(self, request):
        self.newest = request.payload
        self.updated_state(Message(code=CONTENT, payload=self.newest))
        return Message(code=CHANGED)

async def main(port):
    site = resource.Site()
    site.add_resource(['messages'], Messages())
    known = credentials.CredentialsMap()
    known.load_from_dict(
        {f':{index}': {'oscore': {'basedir': f'context{index}/'}} for index in range(1, 5)})
    await Context.create_server_context(
        OscoreSiteWrapper(site, known), bind=('127.0.0.1', int(port)), server_credentials=known)
    open('ready', 'w').close()
    await asyncio.get_running_loop().create_future()

asyncio.run(main(sys.argv[1]))
"#;

/// Every byte of a message inside OSCORE: 16 more than without, and 11 in its answer.
#[test]
fn bytes_of_oscore_are_those_of_the_protocol() {
    if !has_hosts("bytes_of_oscore_are_those_of_the_protocol") {
        return;
    }
    let place = Place::new("oscore-wire");
    let words = ["compare", "coap", "--pattern", "publish", "-s", "100B", "-n", "10", "--wire"];
    let more = ["-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    place.weigh(&[&words[..], &more, &ON].concat()).with(0);
    for cell in cells(&place.summary()) {
        let of = |name: &str| figure(cell, &format!("wire.{name}_bytes"));
        let name = &cell["name"];
        assert_eq!(of("sent.layers.payload"), 1_000.0, "{name}");
        assert_eq!(of("sent.layers.protocol"), 10.0 * (20.0 + 16.0), "{name}");
        assert_eq!(of("received.layers.protocol"), 10.0 * (8.0 + 11.0), "{name}");
        assert!(!cell["doubts"].to_string().contains("wire"), "{name}: {}", cell["doubts"]);
    }
}
