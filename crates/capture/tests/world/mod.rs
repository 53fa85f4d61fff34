//! A world of its own for a test: a network namespace whose loopback interface has an MTU of 1500
//! and offloads as asked.

use std::io;
use std::path::PathBuf;
use std::process::Command;

/// How the loopback interface cuts and joins packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    On,
    Off,
}

/// Runs `body` in a new network namespace, which only this process is in: the test binary starts
/// itself again for the one test `name`. Where that is forbidden the test says so and is skipped.
pub fn inside(name: &str, offload: Offload, body: impl FnOnce()) {
    if std::env::var(INSIDE).as_deref() == Ok(name) {
        prepare(offload).expect("the loopback interface of an own namespace");
        stay_on_one_core();
        body();
        return;
    }
    let Some(ways) = ways_in() else {
        eprintln!("SKIPPED {name}: user and network namespaces are not permitted here");
        return;
    };
    let this = std::env::current_exe().expect("the test binary");
    let status = Command::new("unshare")
        .args(ways)
        .arg(this)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .status()
        .expect("unshare ran a moment ago");
    assert!(status.success(), "{name} failed in its namespace, see above");
}

/// True if a program is installed; else says that what needs it is skipped.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// A file of this test, gone when it is dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let file = format!("weigh-capture-{}-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(file))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Takes the loopback interface of the calling thread's namespace down.
pub fn loopback_down() -> io::Result<()> {
    request(SIOCSIFFLAGS, &0_u16.to_ne_bytes())
}

/// Between two cores the loopback interface delivers out of order now and then, and with it come
/// unexpected retransmissions.
fn stay_on_one_core() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None).expect("the own affinity");
    let first = (0..CpuSet::MAX_CPU).find(|core| allowed.is_set(*core)).expect("a core");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("a core that is allowed");
}

fn ways_in() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["--user", "--map-root-user", "--net"], &["--net"]];
    ways.into_iter().find(|way| {
        let tried = Command::new("unshare").args(*way).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    })
}

/// Brings up the loopback interface of the calling thread's namespace.
pub fn prepare(offload: Offload) -> io::Result<()> {
    let value = u32::from(offload == Offload::On);
    for command in [ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO] {
        let mut setting = [command, value];
        request(SIOCETHTOOL, &(setting.as_mut_ptr() as usize).to_ne_bytes())?;
    }
    request(SIOCSIFMTU, &1500_u32.to_ne_bytes())?;
    request(SIOCSIFFLAGS, &(libc::IFF_UP as u16).to_ne_bytes())
}

fn request(number: u64, value: &[u8]) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // struct ifreq, aligned as its pointer member wants it.
    let mut words = [0_u64; 5];
    words[0] = u64::from_ne_bytes(*b"lo\0\0\0\0\0\0");
    let mut field = [0; 8];
    field[..value.len()].copy_from_slice(value);
    words[2] = u64::from_ne_bytes(field);
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&socket);
    #[expect(unsafe_code, reason = "no safe crate here sets an interface's MTU and offloads")]
    // SAFETY: each of the requests reads one `struct ifreq` of 40 bytes, and SIOCETHTOOL one
    // `struct ethtool_value` behind its pointer, which the caller keeps alive.
    let answer = unsafe { libc::ioctl(descriptor, number as _, words.as_mut_ptr()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const INSIDE: &str = "WEIGH_WIRE_INSIDE";

// From linux/sockios.h and linux/ethtool.h.
const SIOCSIFFLAGS: u64 = 0x8914;
const SIOCSIFMTU: u64 = 0x8922;
const SIOCETHTOOL: u64 = 0x8946;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;
