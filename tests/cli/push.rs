//! Push to many by WebSocket and server-sent events, end to end: compared with MQTT and polling,
//! against servers of Python, with clients of Python and Node at the reference servers.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::foreign::{Counting, python};
use crate::rig::{Place, cells, figure, has, has_hosts};
use crate::serving::Server;
use crate::wire::tshark;

fn port(url: &str) -> String {
    url.rsplit(':').next().expect("a port").to_owned()
}

/// One load to many subscribers over four ways; every copy arrives, and guarantees are as stated.
#[test]
fn pushes_are_compared_with_mqtt_and_a_long_poll() {
    let place = Place::new("push-compare");
    let words = ["websocket", "sse", "mqtt", "--pattern", "deliver", "-q", "1", "-n", "100"];
    let more = ["-s", "120B", "-c", "2", "-y", "20", "--topology", "fan-out"];
    place.compare(&[&words[..], &more].concat()).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 4);
    for cell in cells(&summary) {
        let (point, ledger) = (&cell["point"], &cell["ledger"]);
        assert_eq!(
            (&ledger["sent"], &ledger["delivered"]),
            (&2000.into(), &2000.into()),
            "{point}"
        );
        let guarantee = match point["websocket.confirm"].as_str() {
            Some("none") => "at most once",
            _ => "at least once",
        };
        assert_eq!(cell["guarantee"], guarantee, "{point}");
    }
    for finished in place.of_kind("trial_finished") {
        assert_eq!(finished["server"]["unique"], 100, "{}", finished["point"]);
        assert_eq!(finished["server"]["forwarded"], 2000, "{}", finished["point"]);
    }
}

#[test]
fn every_pattern_and_confirmation_is_carried() {
    for words in [
        &["websocket", "--pattern", "request", "--set", "websocket.confirm=echo"][..],
        &["websocket", "--pattern", "publish", "--set", "websocket.confirm=pong"],
        &["websocket", "--pattern", "session", "-c", "2"],
        &["websocket", "--pattern", "publish", "--set", "websocket.fragment_bytes=16"],
        &["websocket", "--pattern", "deliver", "--set", "websocket.kind=text", "--window", "8"],
        &["websocket", "--pattern", "deliver", "--topology", "pairs", "-c", "4", "-y", "4"],
        &["sse", "--pattern", "publish"],
        &["sse", "--pattern", "deliver", "--topology", "pairs", "-c", "4", "-y", "4"],
        &["sse", "--pattern", "deliver", "--set", "sse.server_framing=close"],
        &["sse", "--pattern", "deliver", "--set", "sse.server_event=reading", "--window", "8"],
    ] {
        let place = Place::new("push-patterns");
        place.compare(&[words, &["-n", "120", "-s", "64B"]].concat()).with(0);
        for cell in cells(&place.summary()) {
            let ledger = &cell["ledger"];
            assert_eq!((&ledger["sent"], &ledger["lost"]), (&120.into(), &0.into()), "{words:?}");
            assert_eq!(ledger["no_subscriber"].as_u64().unwrap_or(0), 0, "{words:?}");
        }
    }
}

/// A subscriber that stops reading is cut off, or misses messages: all were acknowledged, and every
/// loss has its cause.
#[test]
fn what_a_slow_subscriber_loses_has_a_cause() {
    let place = Place::new("push-stall");
    place.write("plan.toml", STALL);
    place.weigh(&["run", "plan.toml"]).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 4);
    for cell in cells(&summary) {
        let (point, ledger) = (&cell["point"], &cell["ledger"]);
        let protocol = point["protocol"].as_str().expect("a protocol");
        let count = |name: &str| ledger[name].as_u64().unwrap_or(0);
        assert!(count("lost") > 0, "{point}: {ledger}");
        assert_eq!(count("acknowledged"), count("sent"), "{point}: {ledger}");
        let drops = point[&format!("{protocol}.server_slow")] == "drop";
        // A subscriber of events comes back, and misses what the server no longer has.
        let cause = match drops || protocol == "sse" {
            true => "server_dropped",
            false => "subscriber_disconnected",
        };
        assert_eq!(ledger["causes"][cause].as_u64(), Some(count("lost")), "{point}: {ledger}");
    }
}

/// The servers' queues and the buffers of both kernels hold less than the load of the stalled time.
const STALL: &str = r#"
[load]
pattern = "deliver"
rate = "3000/s"
size = "16KB"
duration = "3s"
warmup = "0s"
stall = "2s"
connections = 2
subscribers = 1
[repeat]
at_least = 1
[[case]]
protocol = "websocket"
target = "reference"
websocket.confirm = "reply"
websocket.server_queue_bytes_max = 1000000
[[case]]
protocol = "websocket"
target = "reference"
websocket.confirm = "reply"
websocket.server_queue_bytes_max = 1000000
websocket.server_slow = "drop"
[[case]]
protocol = "sse"
target = "reference"
sse.server_queue_bytes_max = 1000000
[[case]]
protocol = "sse"
target = "reference"
sse.server_queue_bytes_max = 1000000
sse.server_slow = "drop"
"#;

#[cfg(feature = "tls")]
#[test]
fn they_run_inside_tls() {
    let place = Place::new("push-tls");
    let words = ["websocket", "sse", "--pattern", "deliver", "-n", "100", "--tls", "on"];
    place.compare(&words).with(0);
    let summary = place.summary();
    assert_eq!(cells(&summary).len(), 3);
    for cell in cells(&summary) {
        assert_eq!(cell["ledger"]["delivered"], 100, "{}", cell["ledger"]);
    }
    place.nobody_is_left();
}

/// Each protocol at the server of another: the error names what answered, and what to type.
#[test]
fn what_is_at_the_port_instead_is_named() {
    let place = Place::new("push-nowhere");
    for (protocol, server, said) in [
        ("websocket", "http", "check the path of the URL"),
        ("websocket", "sse", "check the path of the URL"),
        ("websocket", "tcp", "WebSocket upgrade"),
        ("websocket", "mqtt", "WebSocket upgrade"),
        ("sse", "http", "answers 404 to a request for events"),
        ("sse", "websocket", "answers 426 to a request for events"),
        ("sse", "mqtt", "without an answer to the request for events"),
    ] {
        let server = Server::start(&place, &[server]);
        let url = format!("{protocol}://127.0.0.1:{}", port(&server.url));
        let ended = place.compare(&[&url, "--pattern", "deliver", "-n", "5", "--timeout", "1s"]);
        assert_ne!(ended.code, Some(0), "{protocol}: {}", ended.stdout);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(said), "{protocol} says not {said}: {text}");
    }
    let refused = place.compare(&["websocket://127.0.0.1:1", "-n", "5"]);
    refused.with(3).saying(&["websocket://127.0.0.1:1", "connection refused"]);
}

/// Answers that no server should give, each to one client after the other.
#[test]
fn garbage_at_each_layer_is_named() {
    let place = Place::new("push-garbage");
    for (protocol, answer, said) in [
        ("websocket", &b"220 mail ESMTP\r\n"[..], "another protocol"),
        ("websocket", b"HTTP/1.1 101 Yes\r\n\r\n", "does not say Upgrade"),
        ("websocket", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "answered 503"),
        ("sse", b"220 mail ESMTP\r\n", "another protocol"),
        ("sse", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>", "not text/event-stream"),
        ("sse", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "redirects are not followed"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("{protocol}://{}", listener.local_addr().expect("its address"));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer);
                let _ = stream.read(&mut [0; 4096]);
            }
        });
        let ended = place.compare(&[&url, "--pattern", "deliver", "-n", "5", "--timeout", "1s"]);
        assert_ne!(ended.code, Some(0), "{}", ended.stdout);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(said), "{protocol} says not {said}: {text}");
    }
}

/// The library websockets echoes, answers pings, and sends each message to all: its own count is
/// the ledger's.
#[test]
fn the_server_of_the_library_websockets_is_measured() {
    let Some(python) = python("WEIGH_PUSH_PY", "websockets, aiohttp") else { return };
    let place = Place::new("push-websockets");
    place.write("server.py", WEBSOCKETS_SERVER);
    let server = Counting::start(place.program(&python, &["server.py"]));
    for (path, confirm, pattern, more) in [
        ("echo", "echo", "request", &[][..]),
        ("echo", "reply", "publish", &["--set", "websocket.kind=text"]),
        ("echo", "pong", "publish", &["--set", "websocket.fragment_bytes=50"]),
        ("all", "pong", "deliver", &["-y", "5", "--topology", "fan-out"]),
        ("all", "none", "deliver", &["-y", "5", "--topology", "fan-out", "-R", "200/s"]),
    ] {
        let url = format!("{}/{path}", server.url("websocket"));
        let set = format!("websocket.confirm={confirm}");
        let words =
            [&*url, "--pattern", pattern, "-n", "150", "-s", "120B", "--set", &set, "--json"];
        let summary = place.compare(&[&words[..], more].concat()).with(0).json();
        let ledger = &cells(&summary)[0]["ledger"];
        let copies = if pattern == "deliver" { 5 } else { 1 };
        assert_eq!(ledger["lost"], 0, "{confirm}: {ledger}");
        assert_eq!(ledger["sent"], 150 * copies, "{confirm}: {ledger}");
    }
    assert_eq!(server.end(), "750");
}

const WEBSOCKETS_SERVER: &str = r#"
import asyncio
import sys
from websockets.asyncio.server import broadcast, serve
from websockets.exceptions import ConnectionClosed

listeners, count = set(), 0

async def handle(socket):
    global count
    path = socket.request.path
    if path == '/all':
        listeners.add(socket)
    try:
        async for message in socket:
            count += 1
            if path == '/all':
                broadcast(listeners - {socket}, message)
            else:
                await socket.send(message)
    except ConnectionClosed:
        pass
    finally:
        listeners.discard(socket)

async def main():
    async with serve(handle, '127.0.0.1', 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        print(count, flush=True)

asyncio.run(main())
"#;

/// The library websockets as client: it offers compression and gets none, publishes in fragments,
/// hears all, pings, and is told why it is closed.
#[test]
fn clients_of_the_library_websockets_are_served() {
    let Some(python) = python("WEIGH_PUSH_PY", "websockets, aiohttp") else { return };
    let place = Place::new("push-websockets-client");
    place.write("client.py", WEBSOCKETS_CLIENT);
    let words = ["websocket", "--set", "websocket.message_bytes_max=1000"];
    let server = Server::start(&place, &words);
    let output = place
        .program(&python, &["-W", "ignore", "client.py", &port(&server.url)])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "extensions []\nheard one b'two' three\nanswers 2 2 2\necho again\npong True\n\
                    closed 1009 a message of 2000 bytes, and at most 1000 are accepted\n\
                    closed 1008 a subscriber sends no messages\nstatus 404";
    assert_eq!(said.trim(), expected);
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
    assert!(report.to_string().contains("\"received\":4"), "{report}");
}

const WEBSOCKETS_CLIENT: &str = r#"
import asyncio
import sys
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

url = f'ws://127.0.0.1:{sys.argv[1]}'

async def main():
    async with connect(url + '/subscribe') as first, connect(url + '/subscribe') as second, \
            connect(url + '/messages/reply') as publisher:
        print('extensions', first.protocol.extensions)
        answers = []
        for message in ('one', b'two', ['th', 'ree']):
            await publisher.send(message)
            answers.append(await publisher.recv())
        heard = [await first.recv() for _ in range(3)]
        assert heard == [await second.recv() for _ in range(3)]
        print('heard', *heard)
        print('answers', *answers)
    async with connect(url + '/messages/echo') as publisher:
        await publisher.send('again')
        print('echo', await publisher.recv())
        pong = await publisher.ping()
        print('pong', await asyncio.wait_for(pong, 5) >= 0)
        await publisher.send(b'x' * 2000)
        try:
            await publisher.recv()
        except ConnectionClosed as error:
            print('closed', error.rcvd.code, error.rcvd.reason)
    async with connect(url + '/subscribe') as subscriber:
        await subscriber.send('hello')
        try:
            await subscriber.recv()
        except ConnectionClosed as error:
            print('closed', error.rcvd.code, error.rcvd.reason.split(':')[0])
    try:
        await connect(url + '/nowhere')
    except InvalidStatus as error:
        print('status', error.response.status_code)

asyncio.run(main())
"#;

/// aiohttp sends events to all, and counts what was posted. It ends each stream after 40 events:
/// the subscriber comes back with Last-Event-ID and misses none.
#[test]
fn the_events_of_aiohttp_are_measured() {
    let Some(python) = python("WEIGH_PUSH_PY", "websockets, aiohttp") else { return };
    let place = Place::new("push-aiohttp");
    place.write("server.py", AIOHTTP_SERVER);
    let server = Counting::start(place.program(&python, &["server.py"]));
    let url = server.url("sse") + "/events";
    let words = [&*url, "--pattern", "deliver", "-n", "150", "-s", "120B", "-y", "5"];
    let more = ["--topology", "fan-out", "--set", "sse.publish_path=/publish"];
    place.compare(&[&words[..], &more].concat()).with(0);
    let summary = place.summary();
    let ledger = &cells(&summary)[0]["ledger"];
    assert_eq!((&ledger["sent"], &ledger["lost"]), (&750.into(), &0.into()), "{ledger}");
    assert_eq!(ledger["acknowledged"], 750, "{ledger}");
    assert_eq!(server.end(), "150");
}

const AIOHTTP_SERVER: &str = r#"
import asyncio
import os
import sys
from aiohttp import web

history = []
changed = asyncio.Condition()

async def events(request):
    answer = web.StreamResponse(headers={'Content-Type': 'text/event-stream; charset=utf-8'})
    await answer.prepare(request)
    await answer.write(b': welcome\r\n\r\n')
    place = int(request.headers.get('Last-Event-ID', len(history)))
    for _ in range(40):
        async with changed:
            await changed.wait_for(lambda: place < len(history))
        text = ''.join(f'data:{line}\r\n' for line in history[place].split('\n'))
        place += 1
        await answer.write(f'id: {place}\r\nevent: reading\r\n{text}\r\n'.encode())
    return answer

async def publish(request):
    body = await request.text()
    async with changed:
        history.append(body)
        changed.notify_all()
    return web.Response(status=204)

async def main():
    app = web.Application()
    app.add_routes([web.get('/events', events), web.post('/publish', publish)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, '127.0.0.1', 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(len(history), flush=True)
    os._exit(0)

asyncio.run(main())
"#;

/// Node's fetch and curl at the reference server: a stream, a lost connection, and the rest of it.
#[test]
fn node_and_curl_read_the_events() {
    if !has("node") || !has("curl") {
        return;
    }
    let place = Place::new("push-node");
    place.write("client.mjs", NODE_CLIENT);
    let words = ["sse", "--set", "sse.server_event=reading", "--set", "sse.server_retry=2s"];
    let server = Server::start(&place, &words);
    let base = format!("http://127.0.0.1:{}/events", port(&server.url));
    let output = place.program("node", &["client.mjs", &base]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "200 text/event-stream\nretry: 2000\n\nid: 1\nevent: reading\ndata: one\ndata: \
                    line\n\n\nretry: 2000\n\nid: 2\nevent: reading\ndata: two\n\n";
    assert_eq!(said, expected);
    let status = ["-s", "-o", "out", "-w", "%{http_code}", "-d", "\r", "-H", "Expect:"];
    let output = place.program("curl", &[&status[..], &[&*base]].concat()).output();
    assert_eq!(String::from_utf8_lossy(&output.expect("it runs").stdout), "400");
    let (code, last) = server.end("TERM");
    assert_eq!(code, Some(0), "{last}");
    let report: Value = serde_json::from_str(last.trim()).expect("the last line is JSON");
    assert!(report.to_string().contains("\"received\":2"), "{report}");
}

const NODE_CLIENT: &str = r#"
const url = process.argv[2];
const post = body => fetch(url, { method: 'POST', body });
const read = async (headers, events) => {
  const stop = new AbortController();
  const answer = await fetch(url, { headers, signal: stop.signal });
  let text = '';
  const decoder = new TextDecoder();
  const reader = answer.body.getReader();
  const more = async () => {
    while (text.split('\n\n').length <= events + 1) {
      text += decoder.decode((await reader.read()).value, { stream: true });
    }
    stop.abort();
    return text;
  };
  return { answer, more };
};
const first = await read({}, 1);
console.log(first.answer.status, first.answer.headers.get('content-type'));
await post('one\nline');
console.log(await first.more());
await post('two');
const second = await read({ 'Last-Event-ID': '1' }, 1);
process.stdout.write(await second.more());
"#;

/// Every byte of a message by layer; tshark finds the same frames and events.
#[test]
fn bytes_are_counted_by_layer_and_tshark_agrees() {
    let test = "push_bytes_are_counted_by_layer_and_tshark_agrees";
    if !has_hosts(test) || !has("tshark") {
        return;
    }
    let place = Place::new("push-wire");
    let words = ["compare", "websocket", "sse", "--pattern", "publish", "-s", "100B", "-n", "10"];
    let more = ["--wire", "--pcap", "-Q", "--reps", "1", "--warmup", "0s", "-c", "1"];
    place.weigh(&[&words[..], &more].concat()).with(0);
    let summary = place.summary();
    for cell in cells(&summary) {
        let metric = |name: &str| figure(cell, &format!("wire.sent.layers.{name}_bytes"));
        assert_eq!(metric("payload"), 1000.0, "{}", cell["point"]);
    }
    for finished in place.of_kind("trial_finished") {
        if finished["point"]["protocol"] != "websocket" {
            continue;
        }
        let file = place.pcap(&finished);
        let (decode, field) = (["-d", "tcp.port==1-65535,http"], ["websocket.payload_length"]);
        let rows = tshark(&file, "websocket.opcode == 2", &field, &decode);
        let frames: usize = rows.iter().map(|row| row[0].matches("100").count()).sum();
        assert_eq!(frames, 10, "{rows:?}");
    }
}
