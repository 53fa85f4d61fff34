//! `weigh probe` of real servers: what their configuration or their documentation says is found,
//! and nothing is left on them.

use std::process::Command;

use serde_json::Value;

use crate::foreign::{Counting, Installed, python};
use crate::rig::{Place, has};

/// What was found.
struct Found(Value);

impl Found {
    fn of(place: &Place, words: &[&str]) -> Found {
        Found(place.weigh(&[&["probe"], words, &["--json"]].concat()).with(0).json())
    }

    #[track_caller]
    fn get(&self, name: &str) -> &Value {
        let all = self.0["abilities"].as_array().expect("a list");
        all.iter().find(|own| own["name"] == name).unwrap_or_else(|| panic!("{name}: {}", self.0))
    }

    /// Fails unless each of these has this status.
    #[track_caller]
    fn stand(&self, status: &str, names: &[&str]) {
        for name in names {
            assert_eq!(self.get(name)["status"], status, "{}", self.get(name));
        }
    }

    #[track_caller]
    fn is(&self, name: &str, value: impl Into<Value>) {
        assert_eq!(self.get(name)["value"], value.into(), "{}", self.get(name));
    }
}

/// RabbitMQ's queues are of the types that it documents, and every queue of the probe is gone.
#[test]
fn rabbitmq_is_found_as_it_is_documented() {
    if !has("rabbitmq-server") {
        return;
    }
    let place = Place::new("probed-rabbitmq");
    let found = Found::of(&place, &["rabbitmq-amqp", "--payload-to", "20KB"]);
    let product = found.get("product")["value"].as_str().expect("its name");
    assert!(product.starts_with("RabbitMQ"), "{product}");
    let capabilities = found.get("capabilities")["value"].as_str().expect("names");
    assert!(capabilities.contains("publisher_confirms"), "{capabilities}");
    found.stand(
        "yes",
        &[
            "publisher_confirms",
            "mandatory_return",
            "transactions",
            "headers",
            "prefetch",
            "redelivery",
            "durable_queues",
            "quorum_queues",
            "stream_queues",
            "max_length",
            "reject_publish",
            "message_ttl",
            "message_bytes",
        ],
    );
    found.is("frame_bytes", 131_072);
    found.is("heartbeat", 60);
    found.is("message_bytes", 20_000);
    place.nobody_is_left();
}

/// JetStream is found where it is on, with its limits; its files are what a confirmation is known
/// to be in, and memory where the stream of a load is in memory.
#[test]
fn nats_server_is_found_with_and_without_jetstream() {
    if !has("nats-server") {
        return;
    }
    let place = Place::new("probed-nats");
    let file = "listen: \"127.0.0.1:PORT\"\nmax_payload: 50000\n\
                jetstream { store_dir: \"store\", max_mem: 10MB, max_file: 20MB }\n";
    let server = Installed::start(&place, "nats-server", &["-c", "server.conf"], file);
    let server = server.expect("it is installed");
    let url = server.url("nats");
    let found = Found::of(&place, &[&url, "-o", "nats.toml"]);
    found.stand(
        "yes",
        &[
            "publish",
            "wildcard_one_level",
            "wildcard_many_levels",
            "queue_groups",
            "headers",
            "no_responders",
            "verbose",
            "no_echo",
            "jetstream",
            "storage_file",
            "storage_memory",
            "deduplication",
            "pull_consumers",
        ],
    );
    found.is("payload_bytes", 50_000);
    // One server is no cluster.
    found.stand("refused", &["replicas"]);
    found.is("durability", "page-cache");
    let evidence = found.get("durability")["evidence"].as_str().expect("words");
    assert!(evidence.contains("more in files"), "{evidence}");
    let load = [&*url, "-n", "20", "--set", "nats.confirm=jetstream", "--pattern", "publish"];
    let probed = ["--abilities", "nats.toml"];
    let in_memory = ["--abilities", "nats.toml", "--set", "nats.storage=memory"];
    for (more, durability) in
        [(&[][..], "unknown"), (&probed, "page-cache"), (&in_memory, "memory")]
    {
        let summary = place.compare(&[&load[..], more, &["--json"]].concat()).with(0).json();
        assert_eq!(summary["cells"][0]["durability"], durability);
    }
    let large = [&*url, "-s", "60KB", "--abilities", "nats.toml"];
    place.compare(&large).with(2).saying(&["announces payload_bytes 50000"]);
    drop(server);
    let bare = Place::new("probed-nats-core");
    let file = "listen: \"127.0.0.1:PORT\"\n";
    let server = Installed::start(&bare, "nats-server", &["-c", "server.conf"], file);
    let url = server.as_ref().expect("it is installed").url("nats");
    let found = Found::of(&bare, &[&url, "-o", "nats.toml"]);
    found.stand("refused", &["jetstream"]);
    found.stand("untried", &["storage_file", "durability", "streams", "pull_consumers"]);
    found.is("payload_bytes", 1 << 20);
    let load = [&*url, "--set", "nats.confirm=jetstream", "--abilities", "nats.toml"];
    bare.compare(&load).with(2).saying(&["lacks jetstream", "type none, ok or flush"]);
}

/// The library websockets takes compression, one subprotocol, which it demands, and one origin, and
/// messages up to the size that it was given.
#[test]
fn the_library_websockets_is_found_as_it_was_set() {
    let Some(python) = python("WEIGH_PUSH_PY", "websockets, aiohttp") else { return };
    let place = Place::new("probed-websockets");
    place.write("server.py", WEBSOCKETS);
    let mut command = Command::new(python);
    command.arg(place.folder().join("server.py"));
    let server = Counting::start(command);
    let url = format!("{}/chat", server.url("websocket"));
    let found = Found::of(&place, &[&url, "--payload-to", "20KB", "-o", "ws.toml"]);
    let works = ["upgrade", "ping", "binary", "text", "fragments", "checks_utf8", "close"];
    found.stand("yes", &works);
    found.stand("yes", &["compression"]);
    found.is("subprotocols", "graphql-ws");
    found.stand("refused", &["any_origin", "without_subprotocol"]);
    found.is("message_bytes", 5_000);
    found.stand("less", &["message_bytes"]);
    let base = [&*url, "--abilities", "ws.toml", "--set", "websocket.confirm=echo"];
    let named = ["--set", "websocket.subprotocol=graphql-ws"];
    place.compare(&base).with(2).saying(&["websocket.subprotocol", "lacks without_subprotocol"]);
    let large = [&base[..], &named, &["-s", "6KB"]].concat();
    place.compare(&large).with(2).saying(&["takes at most 5000, not 6000"]);
    let fits = [&base[..], &named, &["-s", "4KB", "-n", "20", "--pattern", "request"]].concat();
    place.compare(&fits).with(0);
    server.end();
}

const WEBSOCKETS: &str = r#"
import asyncio
import sys
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed


async def handle(socket):
    try:
        async for message in socket:
            await socket.send(message)
    except ConnectionClosed:
        pass


async def main():
    origins = [None, 'https://own.example']
    async with serve(handle, '127.0.0.1', 0, subprotocols=['graphql-ws'], max_size=5000,
                     origins=origins) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
"#;

/// aiohttp sends what was posted, with ids that a subscriber may come back with.
#[test]
fn the_events_of_aiohttp_are_found_as_they_were_written() {
    let Some(python) = python("WEIGH_PUSH_PY", "websockets, aiohttp") else { return };
    let place = Place::new("probed-aiohttp");
    place.write("server.py", AIOHTTP);
    let mut command = Command::new(python);
    command.arg(place.folder().join("server.py"));
    let server = Counting::start(command);
    let url = format!("{}/events", server.url("sse"));
    let found = Found::of(&place, &[&url, "--payload-to", "20KB", "-o", "sse.toml"]);
    let works = ["stream", "publish", "events", "event_ids", "last_event_id", "any_origin"];
    found.stand("yes", &works);
    found.is("retry", 1_500);
    found.is("framing", "chunked");
    found.is("event_bytes", 5_000);
    found.stand("no", &["compression"]);
    let large = [&*url, "-s", "6KB", "--abilities", "sse.toml"];
    place.compare(&large).with(2).saying(&["takes at most 5000, not 6000"]);
    // A stream that nothing can be posted to sends events by itself, from the first one on.
    let url = format!("{}/clock", server.url("sse"));
    let found = Found::of(&place, &[&url]);
    found.stand("yes", &["stream", "events", "event_ids"]);
    found.stand("refused", &["publish"]);
    found.stand("no", &["last_event_id", "any_origin"]);
    found.stand("untried", &["event_bytes"]);
    server.end();
}

const AIOHTTP: &str = r#"
import asyncio
import sys
from aiohttp import web

past, listeners = [], []


async def begin(request, fields={}):
    answer = web.StreamResponse(headers={'Content-Type': 'text/event-stream', **fields})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    return answer


async def events(request):
    queue = asyncio.Queue()
    last = request.headers.get('Last-Event-ID')
    if last is not None:
        for event in past[int(last):]:
            queue.put_nowait(event)
    listeners.append(queue)
    answer = await begin(request, {'Access-Control-Allow-Origin': '*'})
    await answer.write(b'retry: 1500\n\n')
    try:
        while True:
            number, body = await queue.get()
            await answer.write(b'id: %d\ndata: ' % number + body + b'\n\n')
    finally:
        listeners.remove(queue)


async def post(request):
    event = (len(past) + 1, await request.read())
    past.append(event)
    for queue in listeners:
        queue.put_nowait(event)
    return web.Response(status=202)


async def clock(request):
    answer = await begin(request)
    for number in range(1, 1000):
        await answer.write(b'id: %d\ndata: tick\n\n' % number)
        await asyncio.sleep(0.05)


async def main():
    app = web.Application(client_max_size=5000)
    app.router.add_get('/events', events)
    app.router.add_post('/events', post)
    app.router.add_get('/clock', clock)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, '127.0.0.1', 0)
    await site.start()
    print(site._server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
"#;
