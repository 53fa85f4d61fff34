//! Captures on the hops of a trial, and the kernels' own counters.

use std::fmt::Display;
use std::io::{Read, Seek, SeekFrom};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weigh_model::numbers::count;

use weigh_capture::account::{Notes, Transport};
use weigh_capture::files::with_secrets;
use weigh_capture::kernel::{Agreement, KernelAccount, KernelWatch};
use weigh_capture::warning::Warning as Missed;
use weigh_capture::{Account, Capture, Counting, Filter, Options, Settings, Tap, WireError};
use weigh_model::{Load, Pattern, Warning};
use weigh_testbed::hosts::{Host, Offloads, Scene};

use crate::exit::{Exit, Stop};
use crate::targets::hosts::{RELAY, Stage, TARGET, is_client};

/// Running captures of a trial.
pub struct Listeners {
    clients: Capture,
    /// With the address of their host.
    watches: Vec<(IpAddr, KernelWatch)>,
    /// On the second hop, from the relay to the target.
    second: Option<Capture>,
    keys: Option<Keys>,
}

/// Packets to capture of a trial.
pub struct Listening<'l> {
    /// True if its connections use TLS.
    pub is_secured: bool,
    /// Records of single packets.
    pub notes: Notes,
    /// Its load, which decides the size of buffers.
    pub load: &'l Load,
}

/// Results of the captures.
pub struct Heard {
    /// Traffic of the clients.
    pub account: Account,
    /// Counts of the clients' kernels.
    pub kernel: KernelAccount,
    /// Traffic between the relay and the target.
    pub second: Option<Account>,
}

impl Listeners {
    /// Captures on the wires of the generator and the subscribers, and reads their sockets' kernel
    /// counters: two independent counts. With a relay it captures behind it too.
    ///
    /// # Errors
    /// A wire that cannot be captured.
    pub fn begin(
        scene: &Scene,
        port: u16,
        stage: &Stage,
        trial: Listening<'_>,
    ) -> Result<Listeners, Stop> {
        let Listening { is_secured, notes, load } = trial;
        if let Some(folder) = stage.file.as_ref().and_then(|file| file.parent()) {
            std::fs::create_dir_all(folder).map_err(|error| {
                Stop::new(Exit::Record, format!("{}: cannot be made: {error}", folder.display()))
            })?;
        }
        let mut options = options(Filter::port(port), stage.offloads, is_secured, notes);
        if let Some(file) = &stage.file {
            options.file = Some(file.clone());
            options.snap_bytes = Options::new(Host::INTERFACE, Settings::default()).snap_bytes;
        }
        options.ring_bytes = ring_bytes(options.snap_bytes, load);
        let start = || -> Result<_, WireError> {
            Ok((Tap::open(&options)?, KernelWatch::start(&[port], Some(TCP_EVERY))?))
        };
        let (mut taps, mut watches) = (Vec::new(), Vec::new());
        for host in scene.hosts().iter().filter(|host| is_client(host)) {
            let started = host.inside(|| Ok(start())).map_err(|error| wrong(&error))?;
            let (tap, watch) = started.map_err(|error| wrong(&error))?;
            taps.push(tap);
            watches.push((host.address().into(), watch));
        }
        let keys = stage.file.as_ref().filter(|_| is_secured).and_then(|file| Keys::of(file));
        let clients = Capture::of(taps, options).map_err(|error| wrong(&error))?;
        let behind = || listen_behind(scene, stage.offloads, (is_secured, load));
        let second = stage.has_relay.then(behind).transpose()?;
        Ok(Listeners { clients, watches, second, keys })
    }

    /// Stops; returns the results and warnings.
    pub fn stop(self) -> (Option<Heard>, Vec<Warning>) {
        let mut warnings = Vec::new();
        let mut broke = |error: WireError| {
            warnings.push(Warning::Wire(error.to_string(), "repeat the trial"));
        };
        let account = self.clients.stop().map_err(&mut broke).ok();
        let kernel = stop(self.watches, account.as_ref()).map_err(&mut broke).ok();
        let second = self.second.and_then(|own| own.stop().map_err(&mut broke).ok());
        if let Some(keys) = self.keys {
            warnings.extend(keys.embed().err());
        }
        let heard = account.zip(kernel);
        (heard.map(|(account, kernel)| Heard { account, kernel, second }), warnings)
    }
}

impl Heard {
    /// CPU time of all captures, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        let second = self.second.as_ref().map_or(0, |account| account.own_cpu_ns);
        self.account.own_cpu_ns + second + self.kernel.own_cpu_ns
    }
}

/// Warnings on the figures of a hop. Packets that the capture missed make them too small, and
/// remove them.
pub fn missed(account: &Account, hop: &str) -> Vec<Warning> {
    let warning = |warning: Missed| {
        let (seen, advice) = (format!("{hop}{}", warning.text()), warning.advice());
        match warning {
            Missed::Dropped { .. } | Missed::CaptureBroke { .. } | Missed::Unseen { .. } => {
                Warning::CaptureLoss(seen, advice)
            }
            _ => Warning::Wire(seen, advice),
        }
    };
    account.warnings().into_iter().map(warning).collect()
}

/// Warns of captured connections that have ended and were not in the kernels' notices.
pub fn untold(kernel: &KernelAccount, found: &Agreement) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if kernel.notices_lost || found.untold > 0 {
        let why = match kernel.notices_lost {
            true => ": it had more notices than their buffer holds",
            false => "",
        };
        warnings.push(Warning::Wire(
            format!(
                "the kernel reported nothing on {} of {} captured connections{why}; they are left \
                 out of the comparison with it",
                found.untold,
                found.untold + found.compared
            ),
            "the capture is complete; raise net.core.rmem_max, or open fewer connections a second",
        ));
    }
    if kernel.samples_dropped > 0 {
        warnings.push(Warning::Wire(
            format!(
                "{} samples of TCP were dropped, because the buffer was full",
                count(kernel.samples_dropped)
            ),
            "the figures of TCP lack the end of the trial: measure a shorter time, or fewer \
             connections",
        ));
    }
    warnings
}

/// Options of a hop's capture. TLS records can only be followed if all bytes are captured.
fn options(filter: Filter, offloads: Offloads, is_secured: bool, notes: Notes) -> Options {
    let counting = match offloads {
        Offloads::Off => Counting::OnTheWire,
        Offloads::AsCaptured => Counting::AsCaptured,
    };
    let settings = Settings { filter, counting, notes, ..Settings::default() };
    let mut options = Options::new(Host::INTERFACE, settings);
    if !is_secured {
        options.snap_bytes = if notes == Notes::default() { HEADERS_BYTES } else { NAMED_BYTES };
    }
    options
}

/// Buffer for a third of a second of many packets with this many bytes each, since the kernel
/// clears all of it before every trial; or for the whole trial, if that is less.
fn ring_bytes(snap_bytes: u32, load: &Load) -> usize {
    let much = |snap_bytes: u32| PACKETS * (FRAME_BYTES + snap_bytes.min(PACKET_BYTES)) as usize;
    let all = said_bytes(load).map_or(usize::MAX, |bytes| bytes.max(much(HEADERS_BYTES)));
    much(snap_bytes).min(all).next_multiple_of(RING_STEP)
}

/// Maximum traffic of a trial in bytes, with a session for each message; `None` if the number or
/// size of messages is unknown: a warm-up has no fixed number.
fn said_bytes(load: &Load) -> Option<usize> {
    if load.warmup.0 > 0 {
        return None;
    }
    let body = match load.size {
        Some(size) => size.0,
        None if load.pattern == Pattern::Transfer => return None,
        None => CONTENT_BYTES,
    };
    let wires = 1 + u64::from(load.subscribers);
    let all = load.messages?.saturating_mul(body + SESSION_BYTES).saturating_mul(wires);
    usize::try_from(all).ok()
}

/// Captures the relay's wire without the first hop: the traffic of relay and target.
fn listen_behind(
    scene: &Scene,
    offloads: Offloads,
    (is_secured, load): (bool, &Load),
) -> Result<Capture, Stop> {
    let target = scene.host(TARGET).map_err(|error| wrong(&error))?;
    let filter = Filter { ports: Vec::new(), addresses: vec![target.address().into()] };
    let mut options = options(filter, offloads, is_secured, Notes::default());
    options.ring_bytes = ring_bytes(options.snap_bytes, load);
    let relay = scene.host(RELAY).map_err(|error| wrong(&error))?;
    let started = relay.inside(|| Ok(Capture::start(options)));
    started.map_err(|error| wrong(&error))?.map_err(|error| wrong(&error))
}

/// Counts of the kernels of all hosts: of all sockets whose connections were captured.
fn stop(
    watches: Vec<(IpAddr, KernelWatch)>,
    captured: Option<&Account>,
) -> Result<KernelAccount, WireError> {
    let mut all = KernelAccount::default();
    for (host, watch) in watches {
        let connections = captured.map_or(&[][..], |account| &account.connections);
        let of_host = connections.iter().filter(|connection| {
            connection.transport == Transport::Tcp && connection.initiator.ip() == host
        });
        all.join(watch.stop(of_host.count())?);
    }
    Ok(all)
}

fn wrong(error: &dyn Display) -> Stop {
    Stop::new(Exit::Internal, error)
}

/// The TLS keys of a trial, which are embedded in the capture if the user asks for keys.
struct Keys {
    capture: PathBuf,
    log: PathBuf,
    /// Length of the key log before the trial.
    before: u64,
}

impl Keys {
    /// `None` if no keys are asked for.
    fn of(capture: &Path) -> Option<Keys> {
        let log = PathBuf::from(std::env::var_os("SSLKEYLOGFILE")?);
        let before = std::fs::metadata(&log).map_or(0, |found| found.len());
        Some(Keys { capture: capture.to_owned(), log, before })
    }

    /// Embeds the keys that were written during the trial before the packets.
    fn embed(&self) -> Result<(), Warning> {
        let wrong = |error: &dyn Display| {
            let seen = format!("{}: the keys are not in it: {error}", self.capture.display());
            Warning::Wire(seen, "read it with the key file that SSLKEYLOGFILE names")
        };
        let keys = self.written().map_err(|error| wrong(&error))?;
        if keys.is_empty() {
            return Ok(());
        }
        let opened = self.capture.with_extension("opened");
        with_secrets(&self.capture, &opened, &keys).map_err(|error| wrong(&error))?;
        std::fs::rename(&opened, &self.capture).map_err(|error| wrong(&error))
    }

    fn written(&self) -> std::io::Result<Vec<u8>> {
        let mut log = std::fs::File::open(&self.log)?;
        log.seek(SeekFrom::Start(self.before))?;
        let mut keys = Vec::new();
        log.read_to_end(&mut keys)?;
        Ok(keys)
    }
}

/// Bytes copied of a packet that is only counted: all headers, and enough content to see that it is
/// not TLS.
const HEADERS_BYTES: u32 = 128;

/// Bytes copied if packets are named too: a head of HTTP, or several of the protocol's packets.
const NAMED_BYTES: u32 = 512;

/// Packets that the forwarder carries in a third of a second; packets beyond that are counted and
/// cause a warning.
const PACKETS: usize = 40_000;

/// Bytes that the kernel adds to its copy of a packet, rounded up: `struct tpacket3_hdr` and the
/// address of packet(7).
const FRAME_BYTES: u32 = 128;

/// Payload and header of an Ethernet frame, if all of a packet is copied.
const PACKET_BYTES: u32 = 1_514;

const RING_STEP: usize = 1 << 20;

/// More bytes than a body of built-in contents has, and than a TLS session adds.
const CONTENT_BYTES: u64 = 4 << 10;
const SESSION_BYTES: u64 = 32 << 10;

/// Interval at which sockets are read: with 10,000 of them it takes a few percent of a core.
const TCP_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use weigh_model::Nanos;
    use weigh_model::units::Bytes;
    use weigh_plan::LoadWords;

    use super::*;

    #[test]
    fn a_ring_holds_a_part_of_a_second_or_all_that_is_said() {
        let words = LoadWords::default().decide("any", &[Pattern::Publish]);
        let timed = words.expect("the defaults are a load");
        let whole = Options::new(Host::INTERFACE, Settings::default()).snap_bytes;
        let (second, headers) = (63 << 20, 10 << 20);
        assert_eq!(ring_bytes(whole, &timed), second, "40,000 packets of 1,642 bytes");
        assert_eq!(ring_bytes(HEADERS_BYTES, &timed), headers, "40,000 of 256");
        let few = Load { duration: None, messages: Some(10), warmup: Nanos(0), ..timed.clone() };
        let warm = Load { warmup: Nanos(1), ..few.clone() };
        assert_eq!(ring_bytes(whole, &warm), second, "the number of earlier ones is unknown");
        assert_eq!(ring_bytes(whole, &few), headers);
        let some = Load { size: Some(Bytes(1 << 20)), messages: Some(20), ..few.clone() };
        assert_eq!(ring_bytes(whole, &some), 21 << 20, "20 of 1 MiB and 32 KiB");
        let many = Load { messages: Some(1_000_000), ..few.clone() };
        assert_eq!(ring_bytes(whole, &many), second);
        let file = Load { pattern: Pattern::Transfer, ..few };
        assert_eq!(ring_bytes(whole, &file), second, "its size is unknown");
    }
}
