//! What the target itself counted: no tool is asked how much it did where the target can tell.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::kinds::Counter;
use super::targets::Target;

impl Counter {
    /// The count before a measurement.
    pub(crate) fn before(self, target: &Target) -> anyhow::Result<Option<u64>> {
        match self {
            Counter::StubStatus => requests(target.port).map(Some),
            Counter::Sys => published(target.port).map(Some),
            Counter::File => taken(target).map(Some),
            Counter::Info => calls_of_set(target.port).map(Some),
            Counter::Varz => received(target.monitor).map(Some),
            Counter::None => Ok(None),
        }
    }

    /// The count after a measurement; the request that asks is taken off again. Mosquitto
    /// refreshes its topics only every few seconds, so they are read until they stand still.
    pub(crate) fn after(self, target: &Target) -> anyhow::Result<Option<u64>> {
        let port = target.port;
        match self {
            Counter::StubStatus => Ok(Some(requests(port)?.saturating_sub(1))),
            Counter::Info => calls_of_set(port).map(Some),
            Counter::None => Ok(None),
            Counter::File => settled(|| taken(target)).map(Some),
            Counter::Varz => settled(|| received(target.monitor)).map(Some),
            Counter::Sys => {
                sleep(SYS_REFRESH);
                let mut last = published(port)?;
                for _ in 0..SYS_READS_MAX {
                    sleep(SYS_REFRESH);
                    let now = published(port)?;
                    if now == last {
                        return Ok(Some(now));
                    }
                    last = now;
                }
                Ok(Some(last))
            }
        }
    }
}

/// A count once it no longer changes: what is in socket buffers when a tool ends is read then.
fn settled(mut count: impl FnMut() -> anyhow::Result<u64>) -> anyhow::Result<u64> {
    let mut last = count()?;
    loop {
        sleep(DRAINS);
        let now = count()?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
}

/// The field `in_msgs` of the page `/varz`.
fn received(port: u16) -> anyhow::Result<u64> {
    let mut stream = open(port)?;
    stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    let rest = page.split_once("\"in_msgs\":").map_or("", |(_, rest)| rest.trim_start());
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("no in_msgs in /varz: {page:?}"))
}

/// The third number of the line under `server accepts handled requests`.
fn requests(port: u16) -> anyhow::Result<u64> {
    let mut stream = open(port)?;
    stream.write_all(b"GET /stat HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    page.lines()
        .skip_while(|line| !line.contains("requests"))
        .nth(1)
        .and_then(|line| line.split_whitespace().nth(2))
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("no request count in stub_status: {page:?}"))
}

/// Calls of SET: `cmdstat_set:calls=7,usec=...`, a line that is not there before the first call.
fn calls_of_set(port: u16) -> anyhow::Result<u64> {
    let mut stream = open(port)?;
    // The server closes after QUIT, so that the answer has an end.
    stream.write_all(b"INFO commandstats\r\nQUIT\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    ensure!(text.contains("# Commandstats"), "no INFO of Redis: {text:?}");
    let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_set:calls="));
    let calls = line.and_then(|rest| rest.split(',').next()).unwrap_or("0");
    calls.parse().with_context(|| format!("no number of calls: {calls:?}"))
}

/// What the sink has taken in: asked for by a signal, read once the file is new and whole.
fn taken(target: &Target) -> anyhow::Result<u64> {
    let _ = fs::remove_file(&target.count_file);
    let pid = i32::try_from(target.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.context("the sink has no number")?, Signal::USR1)?;
    let start = Instant::now();
    while start.elapsed() < SINK_ANSWERS {
        let text = fs::read_to_string(&target.count_file).unwrap_or_default();
        if let Some(number) = text.strip_suffix('\n') {
            return number.parse().with_context(|| format!("the sink counted {number:?}"));
        }
        sleep(Duration::from_millis(5));
    }
    bail!("the sink does not write {}", target.count_file.display())
}

/// Messages the broker has taken in, from its retained `$SYS` message of body bytes: every body
/// of these jobs has the same size. MQTT 3.1.1.
fn published(port: u16) -> anyhow::Result<u64> {
    let mut stream = open(port)?;
    stream.write_all(b"\x10\x11\x00\x04MQTT\x04\x02\x00\x3c\x00\x05bench")?;
    let mut connack = [0u8; 4];
    stream.read_exact(&mut connack).context("the broker sent no CONNACK")?;
    ensure!(connack[3] == 0, "the broker refused the counter's session: {}", connack[3]);
    let remaining = u8::try_from(2 + 2 + SYS_TOPIC.len() + 1)?;
    let mut subscribe = vec![0x82, remaining, 0, 1, 0, u8::try_from(SYS_TOPIC.len())?];
    subscribe.extend_from_slice(SYS_TOPIC);
    subscribe.push(0);
    stream.write_all(&subscribe)?;
    let mut header = [0u8; 2];
    loop {
        stream.read_exact(&mut header).context("the broker keeps no $SYS counters")?;
        // Both packets that may come are shorter than 128 bytes: one length byte (2.2.3).
        let mut body = vec![0u8; usize::from(header[1] & 0x7f)];
        stream.read_exact(&mut body)?;
        if header[0] >> 4 == 3 {
            let value = body.get(2 + SYS_TOPIC.len()..).unwrap_or_default();
            let bytes: u64 = std::str::from_utf8(value)?.trim().parse().context("no number")?;
            return Ok(bytes / BODY_BYTES);
        }
    }
}

fn open(port: u16) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).context("asking the target's counter")?;
    stream.set_read_timeout(Some(Duration::from_secs(4)))?;
    Ok(stream)
}

const SYS_TOPIC: &[u8] = b"$SYS/broker/publish/bytes/received";
/// Bytes of every body in the MQTT jobs.
pub(crate) const BODY_BYTES: u64 = 64;
const SYS_REFRESH: Duration = Duration::from_millis(2_400);
/// What is in socket buffers when a tool ends is read within that time.
const DRAINS: Duration = Duration::from_millis(100);
const SINK_ANSWERS: Duration = Duration::from_secs(3);
const SYS_READS_MAX: u32 = 8;
