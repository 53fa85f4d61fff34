//! Agents of the tests: as threads of this process, and as processes, which are this test again.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::Failure;
use weigh_fleet::{
    Agent, AgentFacts, AgentOptions, AllowList, BusOptions, Fleet, FleetError, FleetOptions,
    FleetOutcome, Order,
};

use super::nats::bus;
use super::workshop::Shop;

/// An agent in threads of this process. Dropping it stops it.
pub struct Thread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    pub fn start(options: AgentOptions) -> Result<Thread, FleetError> {
        let agent = Agent::new(options, Arc::new(Shop))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            agent.run(&stopped, &|_| {}).unwrap();
        });
        Ok(Thread { stop, thread: Some(thread) })
    }

    /// True once it has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

/// An agent with this rank that may load loopback addresses.
pub fn options(bus: BusOptions, rank: Option<u32>) -> AgentOptions {
    AgentOptions {
        bus,
        rank,
        allow: AllowList::parse(&["127.0.0.0/8"]).unwrap(),
        facts: AgentFacts { name: "host".to_owned(), ..AgentFacts::of_this_host() },
        version: VERSION.to_owned(),
        once: false,
    }
}

/// Agents with the ranks from 0, in threads.
pub fn threads(bus: &BusOptions, agents: u32) -> Vec<Thread> {
    (0..agents).map(|rank| Thread::start(options(bus.clone(), Some(rank))).unwrap()).collect()
}

/// What the coordinators of the tests ask for.
pub fn wanted(bus: BusOptions, agents: u32) -> FleetOptions {
    FleetOptions {
        wait: Duration::from_secs(30),
        ..FleetOptions::new(bus, agents, VERSION.to_owned())
    }
}

/// A fleet of all of them.
pub fn gather(bus: &BusOptions, agents: u32) -> Fleet {
    Fleet::gather(&wanted(bus.clone(), agents), &|_| {}).unwrap()
}

/// Runs a trial whose clock begins now.
pub fn run(
    fleet: &Fleet,
    order: &Order,
    observer: &Arc<dyn TrialObserver>,
) -> Result<FleetOutcome, Failure> {
    fleet.run(order, None, now_ns(), observer, &mut |_| {})
}

/// This host's `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the time is written here.
    #[expect(unsafe_code, reason = "the clock that the fleet places trials by")]
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// An agent that is a process of its own. Dropping it kills it.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts an agent behind this address of the bus, in a time namespace whose clock is ahead by
    /// so many seconds if one is named.
    pub fn start(at: SocketAddr, rank: u32, ahead_s: Option<u32>, folder: &Path) -> Process {
        let log = folder.join(format!("agent-{rank}-{}", now_ns()));
        let this = std::env::current_exe().unwrap();
        let command = match ahead_s {
            None => Command::new(&this),
            Some(ahead) => {
                let mut command = time_namespace(ahead);
                command.arg("--kill-child=SIGKILL").arg(&this);
                command
            }
        };
        Process::of(command, "agents::agent_process", (AGENT, format!("{at} {rank}")), log)
    }

    /// Starts this test once more as a process: `test` of it, which reads `variable`.
    pub fn of(mut command: Command, test: &str, variable: (&str, String), log: PathBuf) -> Process {
        let child = command
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(variable.0, variable.1)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&log).unwrap())
            .stderr(fs::File::create(log.with_extension("err")).unwrap())
            .spawn()
            .unwrap();
        Process { child, log }
    }

    /// Kills it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// What it said.
    pub fn said(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        read(&self.log) + &read(&self.log.with_extension("err"))
    }

    /// Waits until it has said this, so many times.
    pub fn await_said(&self, text: &str, times: usize) {
        let until = Instant::now() + Duration::from_secs(30);
        while self.said().matches(text).count() < times {
            assert!(Instant::now() < until, "{text:?} is not in: {}", self.said());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The beginning of a command in a time namespace whose clock is ahead by this number of seconds.
/// Other users than root need a user namespace around it.
pub fn time_namespace(ahead_s: u32) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("-Ur");
    }
    command.args(["-T", &format!("--monotonic={ahead_s}")]);
    command
}

/// Not a test of its own: what [`Process`] starts.
#[test]
fn agent_process() {
    let Ok(text) = std::env::var(AGENT) else { return };
    let (address, rank) = text.split_once(' ').unwrap();
    let options = options(bus(address.parse().unwrap()), Some(rank.parse().unwrap()));
    let agent = Agent::new(options, Arc::new(Shop)).unwrap();
    agent.run(&AtomicBool::new(false), &|text| println!("{text}")).unwrap();
}

const AGENT: &str = "WEIGH_TEST_FLEET_AGENT";
pub const VERSION: &str = "1.2.3 (abc)";

/// Starts a coordinator that is a process: it gathers two agents and runs a load of 4 s.
pub fn coordinator(at: SocketAddr, target: SocketAddr, folder: &Path) -> Process {
    let command = Command::new(std::env::current_exe().unwrap());
    let variable = (COORDINATOR, format!("{at} {target}"));
    Process::of(command, "agents::coordinator_process", variable, folder.join("coordinator"))
}

/// Not a test of its own: what [`coordinator`] starts.
#[test]
fn coordinator_process() {
    struct Says;
    impl TrialObserver for Says {
        fn window_began(&self, _: weigh_model::Nanos) {
            println!("load runs");
        }
        fn progress(&self, _: u32, _: weigh_engine::job::Progress) {}
    }
    let Ok(text) = std::env::var(COORDINATOR) else { return };
    let (address, target) = text.split_once(' ').unwrap();
    let bus = bus(address.parse().unwrap());
    let options = FleetOptions { silence: Duration::from_millis(1_500), ..wanted(bus, 2) };
    let fleet = Fleet::gather(&options, &|_| {}).unwrap();
    let mut order =
        super::workshop::steady(target.parse().unwrap(), weigh_model::Nanos::from_secs(4));
    order.trial.load.timeout = weigh_model::Nanos::from_secs(1);
    let observer: Arc<dyn TrialObserver> = Arc::new(Says);
    let _ = run(&fleet, &order, &observer);
}

const COORDINATOR: &str = "WEIGH_TEST_FLEET_COORDINATOR";
