//! The jobs: which tools do the same work against which target, with which command lines.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::counters::BODY_BYTES;
use super::measure::{Own, Tool};
use super::process;
use super::targets::{FRAME_BYTES, Kind};

/// What a job weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// HTTP POST of 64 bytes over this many kept connections.
    Http(u32),
    /// The same against the floor's sink, which is faster than nginx, so that the generator is
    /// the limit.
    HttpSink(u32),
    /// MQTT publish of 64 bytes by 60 clients at this QoS.
    Mqtt(u8),
    /// The same against the floor's sink; QoS 0 and 1 only.
    MqttSink(u8),
    /// Frames of 64 bytes, one in flight on each of this many connections, echoed.
    Tcp(u32),
    /// Memory per idle MQTT connection, with this many of them.
    Idle(u32),
    /// How exactly due times are kept at this many messages per second.
    Pacing(u32),
}

/// One job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// One line for the table.
    pub(crate) about: &'static str,
    /// What it weighs.
    pub(crate) work: Work,
}

/// All jobs, in the order they run.
pub(crate) const JOBS: &[Job] = &[
    job("http-64", "POST of 64 bytes, 64 kept connections, nginx", Work::Http(64)),
    job("http-1000", "POST of 64 bytes, 1,000 kept connections, nginx", Work::Http(1_000)),
    job("http-sink", "POST of 64 bytes, 64 kept connections, floor sink", Work::HttpSink(64)),
    job("mqtt-0", "publish of 64 bytes at QoS 0, 60 clients, Mosquitto", Work::Mqtt(0)),
    job("mqtt-1", "publish of 64 bytes at QoS 1, 60 clients, window 20, Mosquitto", Work::Mqtt(1)),
    job("mqtt-2", "publish of 64 bytes at QoS 2, 60 clients, window 20, Mosquitto", Work::Mqtt(2)),
    job("mqtt-sink", "publish of 64 bytes at QoS 1, window 20, floor sink", Work::MqttSink(1)),
    job("tcp-64", "64 bytes there and back, 64 connections, echo server", Work::Tcp(64)),
    job("idle", "20,000 idle MQTT connections, reference broker", Work::Idle(20_000)),
    job("pacing-1k", "send lag at 1,000 requests a second, reference server", Work::Pacing(1_000)),
    job("pacing-50k", "send lag at 50,000 requests a second", Work::Pacing(50_000)),
];

const fn job(name: &'static str, about: &'static str, work: Work) -> Job {
    Job { name, about, work }
}

impl Work {
    /// The server this work needs; `None` where `weigh` brings its own.
    pub(crate) fn target(self) -> Option<Kind> {
        match self {
            Work::Http(_) => Some(Kind::Nginx),
            Work::HttpSink(_) => Some(Kind::Sink("http")),
            Work::MqttSink(_) => Some(Kind::Sink("mqtt")),
            Work::Mqtt(_) => Some(Kind::Mosquitto),
            Work::Tcp(_) => Some(Kind::Echo),
            Work::Idle(_) | Work::Pacing(_) => None,
        }
    }
}

/// Where the programs and files are that tools are made of.
pub(crate) struct Places {
    /// The repository.
    pub(crate) root: PathBuf,
    /// The floor programs; empty if there is no C compiler.
    pub(crate) floor: PathBuf,
    /// The binary under test.
    pub(crate) weigh: PathBuf,
    /// Results and scratch files of the tools.
    pub(crate) scratch: PathBuf,
}

impl Places {
    /// The tools that can do `work` against a target on `port` for about `seconds`, as far as
    /// they are installed.
    pub(crate) fn tools(&self, work: Work, port: u16, seconds: u32) -> anyhow::Result<Vec<Tool>> {
        let tools = match work {
            Work::Http(connections) | Work::HttpSink(connections) => {
                self.http_tools(port, connections, seconds)
            }
            Work::Mqtt(qos) | Work::MqttSink(qos) => self.mqtt_tools(port, qos, seconds)?,
            Work::Tcp(connections) => self.tcp_tools(port, connections, seconds),
            Work::Idle(_) | Work::Pacing(_) => Vec::new(),
        };
        // The sink counts nothing, so a tool must.
        let counts =
            |tool: &Tool| !matches!(work, Work::MqttSink(_)) || tool.name != "mosquitto_pub";
        let is_there = |tool: &Tool| self.is_there(&tool.command[0]);
        Ok(tools.into_iter().filter(|tool| counts(tool) && is_there(tool)).collect())
    }

    fn is_there(&self, program: &str) -> bool {
        Path::new(program).is_file() || process::program(program).is_some()
    }

    fn weigh(&self, arguments: &str) -> Tool {
        let runs = self.scratch.join("runs");
        let mut command = vec![self.weigh.display().to_string(), "compare".to_owned()];
        command.extend(arguments.split_whitespace().map(str::to_owned));
        command.extend(["--warmup", "0s", "--reps", "1", "--json", "--runs"].map(str::to_owned));
        command.push(runs.display().to_string());
        Tool { name: "weigh".to_owned(), command, own: weigh_count }
    }

    fn floor(&self, name: &str, program: &str, arguments: &str) -> Tool {
        let program = self.floor.join(program).display().to_string();
        tool(name, &format!("{program} {arguments}"), floor_count)
    }

    fn http_tools(&self, port: u16, connections: u32, seconds: u32) -> Vec<Tool> {
        let url = format!("http://127.0.0.1:{port}/post");
        let script = self.root.join("benches/wrk-post.lua");
        let body = self.scratch.join("body64");
        vec![
            self.weigh(&format!("{url} -c {connections} -d {seconds}s -s 64B")),
            tool(
                "wrk",
                &format!("wrk -t1 -c{connections} -d{seconds}s -s {} {url}", script.display()),
                |text| number_after(text, "Requests/sec:").map(Own::Rate),
            ),
            tool(
                "h2load",
                &format!("h2load --h1 -t1 -c{connections} -D{seconds} -d {} {url}", body.display()),
                |text| number_after(text, "status codes:").map(Own::Count),
            ),
            self.floor("floor", "floor_http", &format!("{port} /post {connections} {seconds}")),
        ]
    }

    /// Counts are fixed for every tool alike and take about `seconds` at the rate that Mosquitto
    /// reaches on one core of a small machine.
    fn mqtt_tools(&self, port: u16, qos: u8, seconds: u32) -> anyhow::Result<Vec<Tool>> {
        let each = [5_000, 1_700, 700][usize::from(qos)] * seconds;
        let each = each.next_multiple_of(FLOOR_BATCH);
        let total = each * CLIENTS;
        let url = format!("mqtt://127.0.0.1:{port}");
        let shape = if qos == 0 { "--arrival burst".into() } else { format!("--window {WINDOW}") };
        let lines = self.scratch.join(format!("lines-{each}"));
        fs::write(&lines, format!("{}\n", "x".repeat(BODY_BYTES as usize)).repeat(each as usize))?;
        let publishers = format!(
            "for i in $(seq {CLIENTS}); do mosquitto_pub -h 127.0.0.1 -p {port} -t bench/t \
             -q {qos} -l < {} & done; wait",
            lines.display()
        );
        let mut tools = vec![
            self.weigh(&format!(
                "{url} --pattern publish -q {qos} -c {CLIENTS} -n {total} -s 64B {shape}"
            )),
            self.floor(
                "floor",
                "floor_mqtt",
                &format!("pub {port} {CLIENTS} {each} {qos} 1 {WINDOW}"),
            ),
            tool(
                "rumqttc-bench",
                &format!("rumqttc-bench {port} {CLIENTS} {each} {qos}"),
                |text| number_after(text, "rate").map(Own::Rate),
            ),
        ];
        if qos == 0 {
            tools.push(self.floor(
                "floor-batch",
                "floor_mqtt",
                &format!("pub {port} {CLIENTS} {each} 0 {FLOOR_BATCH}"),
            ));
            // Each of its clients subscribes too, so it does twice the work; it is the tool of
            // a well-known study.
            tools.push(tool(
                "mqtt-stresser",
                &format!(
                    "mqtt-stresser -broker tcp://127.0.0.1:{port} -num-clients {CLIENTS} \
                     -num-messages {} -constant-payload {} -timeout 60s -no-progress",
                    each / 8,
                    "x".repeat(BODY_BYTES as usize)
                ),
                |text| number_after(text, "Published Messages:").map(Own::Count),
            ));
        }
        if process::program("mosquitto_pub").is_some() {
            let command = ["sh", "-c", &publishers].map(str::to_owned).to_vec();
            tools.push(Tool { name: "mosquitto_pub".to_owned(), command, own: |_| None });
        }
        // rumqttc-bench speaks QoS 0 and 1 only.
        tools.retain(|tool| qos < 2 || tool.name != "rumqttc-bench");
        Ok(tools)
    }

    fn tcp_tools(&self, port: u16, connections: u32, seconds: u32) -> Vec<Tool> {
        vec![
            self.weigh(&format!(
                "tcp://127.0.0.1:{port} -c {connections} -d {seconds}s -s 64B --set tcp.echo=true"
            )),
            self.floor(
                "floor",
                "floor_tcp",
                &format!("ping {port} {FRAME_BYTES} {connections} {seconds}"),
            ),
        ]
    }
}

fn tool(name: &str, command: &str, own: fn(&str) -> Option<Own>) -> Tool {
    let command = command.split_whitespace().map(str::to_owned).collect();
    Tool { name: name.to_owned(), command, own }
}

/// `FLOOR http count=123 ...`
fn floor_count(text: &str) -> Option<Own> {
    let line = text.lines().find(|line| line.starts_with("FLOOR "))?;
    number_after(line, "count=").map(Own::Count)
}

/// What the ledgers of a `weigh/summary/1` say was sent.
fn weigh_count(text: &str) -> Option<Own> {
    let sent = |cell: &Value| cell["ledger"]["sent"].as_f64();
    summary(text)?["cells"].as_array()?.iter().map(sent).sum::<Option<f64>>().map(Own::Count)
}

/// The summary at the head of what `weigh --json` printed, with stderr behind it.
pub(crate) fn summary(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
}

/// The first number behind `label`.
fn number_after(text: &str, label: &str) -> Option<f64> {
    let rest = text[text.find(label)? + label.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Publishing clients of the MQTT jobs.
const CLIENTS: u32 = 60;
/// Unfinished messages per client at QoS 1 and 2.
const WINDOW: u32 = 20;
/// Frames per write of the floor's batched variant.
const FLOOR_BATCH: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_print_is_understood() {
        let floor = "request 150 B\nFLOOR http count=8000 wall=1.0 rate=8000 cpu=0.5\n";
        assert_eq!(floor_count(floor), Some(Own::Count(8000.0)));
        assert_eq!(number_after("Requests/sec:  183207.10\n", "Requests/sec:"), Some(183_207.1));
        let h2load = "status codes: 900 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        assert_eq!(number_after(h2load, "status codes:"), Some(900.0));
        let weigh = "{\"cells\": [{\"ledger\": {\"sent\": 7}}]}\nwarning: one\n";
        assert_eq!(weigh_count(weigh), Some(Own::Count(7.0)));
        assert_eq!(weigh_count("error: nothing\n"), None);
    }

    #[test]
    fn job_names_are_unique() {
        let mut names: Vec<&str> = JOBS.iter().map(|job| job.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), JOBS.len());
    }
}
