//! The tools: with which command line each does the work of a job.

use std::fs;
use std::path::Path;

use super::brokers::{self, REDIS_CLIENTS};
use super::counters::BODY_BYTES;
use super::jobs::{Field, Job, KEEPING, SINGLE, UNRECORDED, Work};
use super::kinds::Kind;
use super::measure::Tool;
use super::places::Places;
use super::process;
use super::targets::FRAME_BYTES;
use super::words;

/// A tool of a job, and who may be left out.
pub(crate) struct Entry {
    /// The tool.
    pub(crate) tool: Tool,
    /// True for ours and the floor, which every run has.
    pub(crate) is_own: bool,
}

impl Places {
    /// The tools of a job against a target on `port`, each for about `seconds`, whether they are
    /// installed or not.
    pub(crate) fn tools(&self, job: &Job, port: u16, seconds: u32) -> anyhow::Result<Vec<Entry>> {
        let mut tools = Vec::new();
        let arguments = self.own_arguments(job.work, port, seconds);
        tools.push(self.weigh("weigh", &self.weigh, &arguments));
        if let Some(before) = &self.before {
            tools.push(self.weigh("weigh-before", before, &arguments));
        }
        if job.field == Field::Recording {
            let unrecorded = self.unrecorded.as_deref().unwrap_or(Path::new("unrecorded"));
            tools.push(self.weigh(UNRECORDED, unrecorded, &arguments));
            let keeping = format!("{arguments} --keep-messages");
            tools.push(self.weigh(KEEPING, &self.weigh, &keeping));
            return Ok(tools.into_iter().map(Entry::own).collect());
        }
        if let Work::Mqtt { window, qos, .. } = job.work
            && (window > 1 || qos == 0)
        {
            let fewer = self.single_arguments(job.work, port, seconds);
            tools.push(self.weigh(SINGLE, &self.weigh, &fewer));
        }
        tools.extend(self.floors(job.work, port, seconds));
        let mut entries: Vec<Entry> = tools.into_iter().map(Entry::own).collect();
        let peers = match job.work {
            Work::Http { connections, .. } => self.http_peers(port, connections, seconds)?,
            Work::Https { connections, is_new_each } => {
                self.https_peers(port, connections, is_new_each, seconds)
            }
            Work::Mqtt { .. } => self.mqtt_peers(job.work, port, seconds)?,
            Work::Tcp(connections) => tcp_peers(port, connections, seconds),
            Work::Streams { is_grpc: true, connections, each } => {
                self.grpc_peers(port, (connections, each), seconds)?
            }
            Work::Streams { is_grpc: false, connections, each } => {
                self.http2_peers(port, (connections, each), seconds)
            }
            Work::Http3 { connections, each } => {
                vec![self.h2load_h3(port, (connections, each), seconds)]
            }
            Work::Amqp { window } => vec![self.perf_test(port, window, seconds)],
            Work::Nats { clients } => vec![brokers::nats_bench(port, clients, seconds)],
            Work::Redis { window } => vec![brokers::redis_benchmark(port, window, seconds)],
            Work::Kafka { .. } => vec![self.kafka_producer(port, seconds)],
            // coap-client of libcoap sends at most one request a second: it is not a load tool. For
            // AMQP 1.0 none can be had from a package client (Qpid's quiver is in no registry).
            Work::Coap(_)
            | Work::WebSocket(_)
            | Work::Amqp1 { .. }
            | Work::Idle(_)
            | Work::Pacing(_) => Vec::new(),
        };
        entries.extend(peers.into_iter().map(|tool| Entry { tool, is_own: false }));
        Ok(entries)
    }

    fn weigh(&self, name: &str, program: &Path, arguments: &str) -> Tool {
        let mut command = vec![program.display().to_string(), "compare".to_owned()];
        command.extend(arguments.split_whitespace().map(str::to_owned));
        command.extend(["--warmup", "0s", "--reps", "1", "--json", "--runs"].map(str::to_owned));
        command.push(self.scratch.join("runs").display().to_string());
        Tool { name: name.to_owned(), command, own: words::weigh, needs: None, target: None }
    }

    fn own_arguments(&self, work: Work, port: u16, seconds: u32) -> String {
        match work {
            Work::Http { connections, .. } => {
                format!("http://127.0.0.1:{port}/post -c {connections} -d {seconds}s -s 64B")
            }
            Work::Https { connections, is_new_each } => {
                let shape = if is_new_each {
                    " --pattern session --set http1.tls_resume=false"
                } else {
                    ""
                };
                format!(
                    "https://127.0.0.1:{port}/post --insecure -c {connections} -d {seconds}s \
                     -s 64B{shape}"
                )
            }
            Work::Mqtt { qos, window, is_sink } => {
                let total = messages_each(qos, window, is_sink, Pace::Coalesced) * seconds;
                publish(port, qos, window, total)
            }
            Work::Tcp(connections) => format!(
                "tcp://127.0.0.1:{port} -c {connections} -d {seconds}s -s 64B --set tcp.echo=true"
            ),
            Work::Streams { is_grpc, connections, each } => {
                let (scheme, path) = if is_grpc { ("grpc", "") } else { ("h2c", "/messages") };
                format!(
                    "{scheme}://127.0.0.1:{port}{path} -c {connections} --window {each} \
                     -d {seconds}s -s 64B"
                )
            }
            Work::Http3 { connections, each } => format!(
                "h3://127.0.0.1:{port}/messages --insecure -c {connections} --window {each} \
                 -d {seconds}s -s 64B"
            ),
            Work::Amqp { window } => format!(
                "amqp://guest:guest@127.0.0.1:{port} --pattern publish -c 1 --window {window} \
                 -d {seconds}s -s 64B"
            ),
            Work::Amqp1 { window } => format!(
                "amqp1://127.0.0.1:{port} --pattern publish -c 1 --window {window} \
                 -d {seconds}s -s 64B"
            ),
            Work::Nats { clients } => {
                let total = u64::from(brokers::NATS_EACH * seconds) * u64::from(clients);
                format!(
                    "nats://127.0.0.1:{port} --pattern publish --set nats.confirm=none \
                     -c {clients} -n {total} -s 64B --arrival burst"
                )
            }
            Work::Redis { window } => format!(
                "redis://127.0.0.1:{port} --pattern publish --set redis.command=set \
                 -c {REDIS_CLIENTS} --window {window} -d {seconds}s -s 64B"
            ),
            Work::Kafka { window } => format!(
                "kafka://127.0.0.1:{port} --pattern publish --set kafka.acks=all -c 1 \
                 --window {window} -d {seconds}s -s 64B"
            ),
            Work::Coap(connections) => format!(
                "coap://127.0.0.1:{port}/messages --pattern publish --set coap.type=con \
                 -c {connections} -d {seconds}s -s 64B"
            ),
            Work::WebSocket(connections) => format!(
                "websocket://127.0.0.1:{port} --pattern publish --set websocket.confirm=reply \
                 -c {connections} -d {seconds}s -s 64B"
            ),
            Work::Idle(_) | Work::Pacing(_) => String::new(),
        }
    }

    fn single_arguments(&self, work: Work, port: u16, seconds: u32) -> String {
        let Work::Mqtt { qos, window, is_sink } = work else { return String::new() };
        let total = messages_each(qos, window, is_sink, Pace::Single) * seconds;
        publish(port, qos, window, total) + " --single-writes"
    }

    fn floor(&self, name: &str, program: &str, arguments: &str) -> Tool {
        let program = self.floor.join(program).display().to_string();
        Tool::new(name, &format!("{program} {arguments}"), words::floor)
    }

    fn floors(&self, work: Work, port: u16, seconds: u32) -> Vec<Tool> {
        match work {
            Work::Http { connections, .. } => {
                let arguments = format!("{port} /post {connections} {seconds}");
                // The simple loop, which writes each answer's request at once, and the one that
                // reads all that is there first: the least that is known.
                let simple = format!("{arguments} 1 64 0 each");
                vec![
                    self.floor("floor-simple", "floor_http", &simple),
                    self.floor("floor", "floor_http", &arguments),
                ]
            }
            Work::Mqtt { qos, window, is_sink } => {
                let publish = |name, batch: u32, pace| {
                    let each = messages_each(qos, window, is_sink, pace) * seconds;
                    let each = each.next_multiple_of(batch);
                    let arguments = format!("pub {port} {CLIENTS} {each} {qos} {batch} {window}");
                    self.floor(name, "floor_mqtt", &arguments)
                };
                let mut floors = vec![publish("floor", 1, Pace::Single)];
                let batch = if qos == 0 { FLOOR_BATCH } else { window.min(FLOOR_BATCH) };
                if batch > 1 {
                    floors.push(publish("floor-batch", batch, Pace::Coalesced));
                }
                floors
            }
            Work::Tcp(connections) => {
                let arguments = format!("ping {port} {FRAME_BYTES} {connections} {seconds}");
                vec![self.floor("floor", "floor_tcp", &arguments)]
            }
            Work::Coap(connections) => {
                let arguments = format!("{port} {connections} {seconds} 64");
                vec![self.floor("floor", "floor_coap", &arguments)]
            }
            Work::WebSocket(connections) => {
                let arguments = format!("{port} {connections} {seconds} 64");
                vec![self.floor("floor", "floor_websocket", &arguments)]
            }
            Work::Https { .. }
            | Work::Streams { .. }
            | Work::Http3 { .. }
            | Work::Amqp { .. }
            | Work::Amqp1 { .. }
            | Work::Nats { .. }
            | Work::Redis { .. }
            | Work::Kafka { .. }
            | Work::Idle(_)
            | Work::Pacing(_) => Vec::new(),
        }
    }

    fn http_peers(&self, port: u16, n: u32, seconds: u32) -> anyhow::Result<Vec<Tool>> {
        let url = format!("http://127.0.0.1:{port}/post");
        let bench = |name: &str| self.root.join("benches").join(name).display().to_string();
        let body = "x".repeat(BODY_BYTES as usize);
        let file = self.scratch.join("body64").display().to_string();
        let goals = self.scratch.join("vegeta-goals");
        fs::write(&goals, format!("POST {url}\n"))?;
        let goals = goals.display();
        let k6_environment =
            format!("CONNECTIONS={n} SECONDS={seconds} URL={url} K6_NO_USAGE_REPORT=true");
        let jmeter = bench("jmeter-http.jmx");
        let (wrk_script, k6_script) = (bench("wrk-post.lua"), bench("k6-post.js"));
        Ok(vec![
            Tool::new(
                "wrk",
                &format!("wrk -t1 -c{n} -d{seconds}s -s {wrk_script} {url}"),
                words::rate,
            ),
            zrk(&url, &body, n, seconds),
            Tool::new(
                "h2load",
                &format!("h2load --h1 -t1 -c{n} -D{seconds} -d {file} {url}"),
                words::h2load,
            ),
            Tool::new(
                "ab",
                &format!("ab -q -k -c {n} -t {seconds} -n 100000000 -p {file} -T text/plain {url}"),
                words::ab,
            ),
            Tool::new(
                "oha",
                &format!("oha --no-tui -c {n} -z {seconds}s -m POST -d {body} {url}"),
                words::rate,
            ),
            Tool::new(
                "bombardier",
                &format!("bombardier -c {n} -d {seconds}s -m POST -b {body} -p r {url}"),
                words::bombardier,
            ),
            Tool::new(
                "autocannon",
                &format!("autocannon -c {n} -d {seconds} -m POST -b {body} -j --no-progress {url}"),
                words::autocannon,
            ),
            Tool::new(
                "hey",
                &format!("hey -c {n} -z {seconds}s -m POST -d {body} {url}"),
                words::rate,
            ),
            Tool::new(
                "vegeta",
                &format!(
                    "vegeta attack -targets {goals} -rate 0 -max-workers {n} -workers {n} \
                     -connections {n} -max-connections {n} -duration {seconds}s -body {file} \
                     -output /dev/null"
                ),
                |_| None,
            ),
            Tool::new("k6", &format!("env {k6_environment} k6 run --quiet {k6_script}"), words::k6),
            Tool::new(
                "jmeter",
                &format!("jmeter -n -t {jmeter} -Jconns={n} -Jsecs={seconds} -Jport={port}"),
                words::jmeter,
            ),
        ])
    }

    /// Nobody checks the certificate here: wrk and s_time never do.
    fn https_peers(&self, port: u16, n: u32, is_new_each: bool, seconds: u32) -> Vec<Tool> {
        if is_new_each {
            let command =
                format!("openssl s_time -connect 127.0.0.1:{port} -new -www /post -time {seconds}");
            return vec![Tool::new("openssl", &command, |_| None)];
        }
        let url = format!("https://127.0.0.1:{port}/post");
        let script = self.root.join("benches/wrk-post.lua").display().to_string();
        let body = "x".repeat(BODY_BYTES as usize);
        let file = self.scratch.join("body64").display().to_string();
        vec![
            Tool::new("wrk", &format!("wrk -t1 -c{n} -d{seconds}s -s {script} {url}"), words::rate),
            zrk(&url, &body, n, seconds),
            Tool::new(
                "h2load",
                &format!("h2load --h1 -t1 -c{n} -D{seconds} -d {file} {url}"),
                words::h2load,
            ),
        ]
    }

    fn mqtt_peers(&self, work: Work, port: u16, seconds: u32) -> anyhow::Result<Vec<Tool>> {
        let Work::Mqtt { qos, window, is_sink } = work else { return Ok(Vec::new()) };
        let each = |pace| messages_each(qos, window, is_sink, pace) * seconds;
        let lines_each = each(Pace::Library);
        let lines = self.scratch.join(format!("lines-{lines_each}"));
        let body = "x".repeat(BODY_BYTES as usize);
        if !lines.exists() {
            fs::write(&lines, format!("{body}\n").repeat(lines_each as usize))?;
        }
        let publishers = format!(
            "for i in $(seq {CLIENTS}); do mosquitto_pub -h 127.0.0.1 -p {port} -t bench/t \
             -q {qos} -M {window} -l < {} & done; wait",
            lines.display()
        );
        let slow = each(Pace::Slow);
        let mut tools = vec![
            Tool::new(
                "rumqttc-bench",
                &format!("rumqttc-bench {port} {CLIENTS} {lines_each} {qos} {window}"),
                words::rumqttc,
            ),
            Tool {
                name: "mosquitto_pub".to_owned(),
                command: ["sh", "-c", &publishers].map(str::to_owned).to_vec(),
                own: |_| None,
                needs: None,
                target: None,
            },
            // The bench of the crate mqtt5: each of its publishers keeps one message in flight.
            Tool::new(
                "mqttv5",
                &format!(
                    "mqttv5 bench -H 127.0.0.1 -p {port} --mode throughput --duration {seconds} \
                     --warmup 0 --publishers {CLIENTS} --subscribers 0 --qos {qos} \
                     --payload-size {BODY_BYTES}"
                ),
                words::mqttv5,
            ),
            // It keeps one message in flight for each client, whatever the window.
            Tool::new(
                "mqtt-benchmark",
                &format!(
                    "mqtt-benchmark --broker tcp://127.0.0.1:{port} --topic bench/t --size 64 \
                     --clients {CLIENTS} --count {slow} --qos {qos} --message-interval 0 \
                     --format json --quiet"
                ),
                words::mqtt_benchmark,
            ),
        ];
        if !is_sink {
            // Each of its clients subscribes too, so it does twice the work; it is the tool of
            // a well-known study.
            let arguments = format!(
                "mqtt-stresser -broker tcp://127.0.0.1:{port} -num-clients {CLIENTS} \
                 -num-messages {} -constant-payload {body} -timeout 60s -rampup-delay 0s \
                 -no-progress -publisher-qos {qos} -subscriber-qos {qos}",
                slow / 2
            );
            tools.push(Tool::new("mqtt-stresser", &arguments, words::mqtt_stresser));
        }
        Ok(tools)
    }

    /// h2load sends prepared frames and knows nothing of gRPC: it counts answers with status 200.
    fn grpc_peers(
        &self,
        port: u16,
        (connections, each): (u32, u32),
        seconds: u32,
    ) -> anyhow::Result<Vec<Tool>> {
        let address = format!("127.0.0.1:{port}");
        let protos = self.root.join("crates/protocols/proto").display().to_string();
        let body = "x".repeat(BODY_BYTES as usize);
        // Field 1 of length 64, behind the five bytes that gRPC puts before a message.
        let message = [&[0, 0, 0, 0, 66, 0x0a, 64][..], body.as_bytes()].concat();
        let file = self.scratch.join("grpc64");
        fs::write(&file, message)?;
        let file = file.display();
        let script = self.root.join("benches/k6-grpc.js").display().to_string();
        let calls = connections * each;
        Ok(vec![
            Tool::new(
                "h2load",
                &format!(
                    "h2load -t1 -c{connections} -m{each} -D{seconds} -d {file} \
                     -H content-type:application/grpc -H te:trailers \
                     http://{address}/weigh.store.v1.Store/Append"
                ),
                words::h2load,
            ),
            Tool::new(
                "ghz",
                &format!(
                    "ghz --insecure --proto {protos}/store.proto --call \
                     weigh.store.v1.Store.Append -c {calls} --connections {connections} \
                     -z {seconds}s -d {{\"reading\":\"{READING_BASE64}\"}} {address}"
                ),
                words::ghz,
            ),
            Tool::new(
                "k6",
                &format!(
                    "env CONNECTIONS={calls} SECONDS={seconds} ADDRESS={address} \
                     PROTOS={protos} READING={READING_BASE64} K6_NO_USAGE_REPORT=true \
                     k6 run --quiet {script}"
                ),
                words::k6_grpc,
            ),
        ])
    }

    fn http2_peers(&self, port: u16, (connections, each): (u32, u32), seconds: u32) -> Vec<Tool> {
        let file = self.scratch.join("body64").display().to_string();
        let command = format!(
            "h2load -t1 -c{connections} -m{each} -D{seconds} -d {file} \
             -H content-type:application/json http://127.0.0.1:{port}/messages"
        );
        vec![Tool::new("h2load", &command, words::h2load)]
    }

    /// True if the program of the tool is there, and what it runs.
    pub(crate) fn is_there(&self, tool: &Tool) -> bool {
        if tool.needs.as_ref().is_some_and(|own| !own.exists()) {
            return false;
        }
        let program = words::program_of(&tool.command);
        Path::new(program).is_file() || process::program(program).is_some()
    }
}

impl Entry {
    fn own(tool: Tool) -> Entry {
        Entry { tool, is_own: true }
    }
}

/// It has a rate and no closed loop: a rate that no server reaches keeps all connections busy.
fn zrk(url: &str, body: &str, n: u32, seconds: u32) -> Tool {
    let load = format!("-t 1 -c {n} -d {seconds}s -R 10000000 -m POST -b {body} -k --plain");
    Tool::new("zrk", &format!("zrk {load} {url}"), |_| None)
}

fn tcp_peers(port: u16, connections: u32, seconds: u32) -> Vec<Tool> {
    if connections > 1 {
        return Vec::new();
    }
    let own_server = |mut tool: Tool, kind| {
        tool.target = Some(kind);
        tool
    };
    vec![
        own_server(
            Tool::new(
                "sockperf",
                &format!(
                    "sockperf ping-pong --tcp -i 127.0.0.1 -p {port} -m 64 -t {seconds} --mps max"
                ),
                words::sockperf,
            ),
            Kind::Sockperf,
        ),
        own_server(
            Tool::new(
                "netperf",
                &format!("netperf -H 127.0.0.1 -p {port} -t TCP_RR -l {seconds} -P 0 -- -r 64,64"),
                words::netperf,
            ),
            Kind::Netperf,
        ),
    ]
}

fn publish(port: u16, qos: u8, window: u32, each: u32) -> String {
    let total = u64::from(each) * u64::from(CLIENTS);
    let shape = if qos == 0 { "--arrival burst".into() } else { format!("--window {window}") };
    format!(
        "mqtt://127.0.0.1:{port} --pattern publish -q {qos} -c {CLIENTS} -n {total} -s 64B {shape}"
    )
}

/// How a tool writes, which decides how many messages take it a second.
#[derive(Clone, Copy)]
enum Pace {
    /// Many frames to a write.
    Coalesced,
    /// A library that coalesces what it can.
    Library,
    /// A write for every frame.
    Single,
    /// A load tool that does more than to send.
    Slow,
}

/// Messages of each client that take about a second on one core of a small machine. The tools need
/// not do equally many, for it is the cost of one that is compared.
fn messages_each(qos: u8, window: u32, is_sink: bool, pace: Pace) -> u32 {
    match (qos, is_sink, pace) {
        (_, _, Pace::Slow) => [1_500, 900, 450][usize::from(qos)],
        (0, true, Pace::Coalesced) => 150_000,
        (0, _, Pace::Coalesced) => 15_000,
        (0, _, Pace::Library) => 15_000,
        (0, _, Pace::Single) => 6_500,
        (1, true, Pace::Coalesced) if window > 1 => 30_000,
        (1, true, Pace::Library) if window > 1 => 5_000,
        (1, true, _) => 3_600,
        (1, false, _) => 2_600,
        (_, true, Pace::Coalesced) if window > 1 => 12_000,
        (_, true, _) => 2_000,
        (_, false, _) => 1_200,
    }
}

/// 64 times the letter x, as JSON writes bytes of protobuf.
const READING_BASE64: &str =
    "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eA==";
/// Publishing clients of the MQTT jobs.
const CLIENTS: u32 = 60;
/// Frames per write of the floor's batched variant, at most.
const FLOOR_BATCH: u32 = 64;
