//! Who listens on the wires of a trial: captures on both hops and the kernels' own counters.

use std::fmt::Display;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_capture::account::Notes;
use weigh_capture::doubt::Doubt as Missed;
use weigh_capture::files::with_secrets;
use weigh_capture::kernel::{Agreement, KernelAccount, KernelWatch};
use weigh_capture::{Account, Capture, Counting, Filter, Options, Settings, Tap, WireError};
use weigh_model::{Doubt, Load, Pattern};
use weigh_testbed::hosts::{Host, Offloads, Scene};

use crate::exit::{Exit, Stop};
use crate::targets::stage::{RELAY, Stage, TARGET, is_client};

/// Who listens.
pub struct Hearing {
    clients: Capture,
    watches: Vec<KernelWatch>,
    /// On the second hop, from the relay to the target.
    second: Option<Capture>,
    keys: Option<Keys>,
}

/// What of a trial is listened to.
pub struct Listened<'l> {
    /// Whether its connections are inside TLS.
    pub is_secured: bool,
    /// What is kept of single packets.
    pub notes: Notes,
    /// Its load, by which buffers are made.
    pub load: &'l Load,
}

/// What was heard.
pub struct Heard {
    /// On the wires of the clients.
    pub account: Account,
    /// What the clients' kernels counted.
    pub kernel: KernelAccount,
    /// Between the relay and the target.
    pub second: Option<Account>,
}

impl Hearing {
    /// Listens on the wires of the generator and of the subscribers, and asks their kernels what
    /// their sockets did: two witnesses that know nothing of each other. Behind a relay listens on
    /// its wire too.
    ///
    /// # Errors
    /// If a wire cannot be listened on.
    pub fn begin(
        scene: &Scene,
        port: u16,
        stage: &Stage,
        trial: Listened<'_>,
    ) -> Result<Hearing, Stop> {
        let Listened { is_secured, notes, load } = trial;
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
            watches.push(watch);
        }
        let keys = stage.file.as_ref().filter(|_| is_secured).and_then(|file| Keys::of(file));
        let clients = Capture::of(taps, options).map_err(|error| wrong(&error))?;
        let behind = || listen_behind(scene, stage.offloads, (is_secured, load));
        let second = stage.has_relay.then(behind).transpose()?;
        Ok(Hearing { clients, watches, second, keys })
    }

    /// Ends it: what was heard, and what went wrong.
    pub fn stop(self) -> (Option<Heard>, Vec<Doubt>) {
        let mut doubts = Vec::new();
        let mut broke = |error: WireError| {
            doubts.push(Doubt::Wire(error.to_string(), "repeat the trial"));
        };
        let account = self.clients.stop().map_err(&mut broke).ok();
        let kernel = stop(self.watches).map_err(&mut broke).ok();
        let second = self.second.and_then(|own| own.stop().map_err(&mut broke).ok());
        if let Some(keys) = self.keys {
            doubts.extend(keys.embed().err());
        }
        let heard = account.zip(kernel);
        (heard.map(|(account, kernel)| Heard { account, kernel, second }), doubts)
    }
}

impl Heard {
    /// Processor time of all who listened, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        let second = self.second.as_ref().map_or(0, |account| account.own_cpu_ns);
        self.account.own_cpu_ns + second + self.kernel.own_cpu_ns
    }
}

/// What makes the figures of a hop doubtful. What passed by a capture makes them too small, and
/// takes them away.
pub fn missed(account: &Account, hop: &str) -> Vec<Doubt> {
    let doubt = |doubt: Missed| {
        let (seen, advice) = (format!("{hop}{}", doubt.text()), doubt.advice());
        match doubt {
            Missed::Dropped { .. } | Missed::CaptureBroke { .. } | Missed::Unseen { .. } => {
                Doubt::CaptureLoss(seen, advice)
            }
            _ => Doubt::Wire(seen, advice),
        }
    };
    account.doubts().into_iter().map(doubt).collect()
}

/// What the kernels did not tell of connections that were captured and are over.
pub fn untold(kernel: &KernelAccount, found: &Agreement) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    if kernel.notices_lost || found.untold > 0 {
        let why = match kernel.notices_lost {
            true => ": it had more notices than their buffer holds",
            false => "",
        };
        doubts.push(Doubt::Wire(
            format!(
                "the kernel told nothing of {} of {} captured connections{why}; they are in no \
                 comparison with it",
                found.untold,
                found.untold + found.compared
            ),
            "the capture stands; raise net.core.rmem_max, or open fewer connections a second",
        ));
    }
    if kernel.samples_dropped > 0 {
        doubts.push(Doubt::Wire(
            format!("{} samples of TCP found no room", kernel.samples_dropped),
            "what TCP knew of the path lacks the end of the trial: measure shorter, or fewer \
             connections",
        ));
    }
    doubts
}

/// How a hop is listened to. Records of TLS can only be followed where all of them is seen.
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

/// Memory for a third of a second of many packets of which so much is copied: the kernel has to
/// clear all of it before every trial. Where a trial has less to say, for all that it has to say.
fn ring_bytes(snap_bytes: u32, load: &Load) -> usize {
    let much = |snap_bytes: u32| PACKETS * (FRAME_BYTES + snap_bytes.min(PACKET_BYTES)) as usize;
    let all = said_bytes(load).map_or(usize::MAX, |bytes| bytes.max(much(HEADERS_BYTES)));
    much(snap_bytes).min(all).next_multiple_of(RING_STEP)
}

/// What a trial puts on a wire at most, each message in a session of its own; `None` where nobody
/// knows how many there will be, or how large: a warm-up has as many as come.
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

/// Listens on the relay's wire to what is not of the first hop: what the relay and the target say
/// to each other.
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

/// What the kernels of all hosts counted.
fn stop(watches: Vec<KernelWatch>) -> Result<KernelAccount, WireError> {
    let mut all = KernelAccount::default();
    for watch in watches {
        all.join(watch.stop()?);
    }
    Ok(all)
}

fn wrong(error: &dyn Display) -> Stop {
    Stop::new(Exit::Internal, error)
}

/// The keys of a trial's TLS connections, which whoever asks for them finds in the capture too.
struct Keys {
    capture: PathBuf,
    log: PathBuf,
    /// How long the log was before the trial.
    before: u64,
}

impl Keys {
    /// `None` where nobody asks for keys.
    fn of(capture: &Path) -> Option<Keys> {
        let log = PathBuf::from(std::env::var_os("SSLKEYLOGFILE")?);
        let before = std::fs::metadata(&log).map_or(0, |found| found.len());
        Some(Keys { capture: capture.to_owned(), log, before })
    }

    /// Puts those that were written during the trial in front of the packets.
    fn embed(&self) -> Result<(), Doubt> {
        let wrong = |error: &dyn Display| {
            let seen = format!("{}: the keys are not in it: {error}", self.capture.display());
            Doubt::Wire(seen, "read it with the file of keys, which stands in SSLKEYLOGFILE")
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

/// What is copied of a packet that is only counted: all headers, and enough of the content to see
/// that it is no TLS.
const HEADERS_BYTES: u32 = 128;

/// What is copied where packets are to be named too: a head of HTTP, or several packets in one.
const NAMED_BYTES: u32 = 512;

/// As many as our forwarder carries in a third of a second; what finds no room is counted, and a
/// doubt.
const PACKETS: usize = 40_000;

/// What the kernel keeps beside what it copies of a packet, rounded up: `struct tpacket3_hdr` and
/// the address of packet(7).
const FRAME_BYTES: u32 = 128;

/// The payload of an Ethernet frame and its header, where all of a packet is copied.
const PACKET_BYTES: u32 = 1_514;

const RING_STEP: usize = 1 << 20;

/// More than a body of our own contents has, and than a session with TLS takes beside it.
const CONTENT_BYTES: u64 = 4 << 10;
const SESSION_BYTES: u64 = 32 << 10;

/// How often sockets are asked: with 10,000 of them it takes a few percent of a core.
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
        assert_eq!(ring_bytes(whole, &warm), second, "nobody knows how many come before");
        assert_eq!(ring_bytes(whole, &few), headers);
        let some = Load { size: Some(Bytes(1 << 20)), messages: Some(20), ..few.clone() };
        assert_eq!(ring_bytes(whole, &some), 21 << 20, "20 of 1 MiB and 32 KiB");
        let many = Load { messages: Some(1_000_000), ..few.clone() };
        assert_eq!(ring_bytes(whole, &many), second);
        let file = Load { pattern: Pattern::Transfer, ..few };
        assert_eq!(ring_bytes(whole, &file), second, "nobody knows how large it is");
    }
}
