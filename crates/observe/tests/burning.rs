//! Real processes that burn a known processor time, measured by their own clocks.
//!
//! The tests start this very program again in a role: it waits for a line, burns, says by its
//! own clock how much, and stays until its stdin ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use weigh_observe::cpu::{Accounting, CpuTree, monotonic_ns, own_process_ns, tick_ns};
use weigh_observe::memory;
use weigh_observe::sampler::Sampler;

const ROLE: &str = "WEIGH_BURNING_ROLE";
const BURN_MS: u64 = 400;

/// Not a test by itself: what the children of this file's tests do.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("burn") => stay(burn),
        Ok("threads") => stay(|| {
            let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(burn)).collect();
            threads.into_iter().for_each(|thread| drop(thread.join()));
            own_process_ns()
        }),
        Ok("staying children") => stay(|| {
            let mut children = [Role::start("burn"), Role::start("burn")];
            let burnt = children.iter_mut().map(Role::burn).sum();
            // They stay as long as we do.
            std::mem::forget(children);
            burnt
        }),
        Ok("ended children") => stay(|| {
            let mut children = [Role::start("burn"), Role::start("burn")];
            children.iter_mut().map(Role::burn).sum()
        }),
        Ok("memory") => stay(|| {
            let block = vec![1u8; 64 << 20];
            std::mem::forget(block);
            64 << 20
        }),
        _ => {}
    }
}

fn stay(what: impl FnOnce() -> u64) {
    let mut lines = std::io::stdin().lines();
    if lines.next().is_some() {
        println!("\nrole:{}", what());
        while lines.next().is_some() {}
    }
    std::process::exit(0);
}

/// Burns by the clock of the process, and tells what the process has used in all.
fn burn() -> u64 {
    let until = own_process_ns() + BURN_MS * 1_000_000;
    while own_process_ns() < until {
        std::hint::spin_loop();
    }
    own_process_ns()
}

struct Role {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Role {
    fn start(role: &str) -> Role {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "role", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Role { child, stdin, stdout }
    }

    fn burn(&mut self) -> u64 {
        writeln!(self.stdin.as_mut().unwrap(), "go").unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the role ended");
            if let Some(number) = line.strip_prefix("role:") {
                return number.trim().parse().unwrap();
            }
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        self.stdin = None;
        self.child.wait().unwrap();
    }
}

/// What a tree reads for a role against what the role says, within 2 % and `slack_ms`: the tree
/// also counts the little that a process uses beside its task.
fn compare(role: &str, slack_ms: u64) -> Accounting {
    let mut role = Role::start(role);
    let mut tree = CpuTree::new(role.child.id()).unwrap();
    let said_ns = role.burn();
    let reading = tree.read();
    let allowed_ns = said_ns / 50 + slack_ms * 1_000_000;
    assert!(said_ns >= BURN_MS * 1_000_000);
    assert!(
        reading.cpu_ns.abs_diff(said_ns) <= allowed_ns,
        "read {reading:?}, said {said_ns}, allowed {allowed_ns}"
    );
    reading.accounting
}

#[test]
fn one_process_is_read_to_the_nanosecond() {
    compare("burn", 10);
}

#[test]
fn threads_that_ended_unseen_are_counted() {
    compare("threads", 20);
}

#[test]
fn children_are_counted() {
    compare("staying children", 30);
}

#[test]
fn children_that_ended_unseen_are_counted() {
    // Two roundings down to ticks, of user and of system time, and the parent's own start.
    compare("ended children", 20 + 2 * tick_ns() / 1_000_000);
}

#[test]
fn children_that_ended_between_looks_are_not_counted_twice() {
    let mut role = Role::start("ended children");
    let mut tree = CpuTree::new(role.child.id()).unwrap();
    let said_ns = std::thread::scope(|scope| {
        let burning = scope.spawn(|| role.burn());
        let mut last_ns = 0;
        while !burning.is_finished() {
            let now_ns = tree.read().cpu_ns;
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
            std::thread::sleep(Duration::from_millis(5));
        }
        burning.join().unwrap()
    });
    let read_ns = tree.read().cpu_ns;
    assert!(read_ns.abs_diff(said_ns) <= said_ns / 50 + 40_000_000, "{read_ns} {said_ns}");
}

#[test]
fn a_sampler_weighs_a_window() {
    let mut role = Role::start("burn");
    let sampler = Sampler::start(role.child.id(), 1, Duration::from_millis(20)).unwrap();
    let before = sampler.sample().unwrap();
    let said_ns = role.burn();
    let after = sampler.sample().unwrap();
    let recording = sampler.stop().unwrap();
    let usage = recording.window(before.at_ns, after.at_ns).unwrap();
    assert!(usage.cpu_ns.abs_diff(said_ns) <= said_ns / 50 + 10_000_000, "{usage:?} {said_ns}");
    assert!(usage.percent_mean > 0.0 && usage.percent_max >= usage.percent_mean, "{usage:?}");
    assert!(usage.samples >= 2 && usage.memory_bytes_max > 0, "{usage:?}");
    assert!(usage.own_cpu_ns > 0 && usage.own_cpu_ns < monotonic_ns());
}

#[test]
fn memory_of_a_child_is_seen() {
    let mut role = Role::start("memory");
    let before = memory::proportional([role.child.id()]);
    let size = role.burn();
    let after = memory::proportional([role.child.id()]);
    assert!(after.bytes() >= before.bytes() + size * 9 / 10, "{before:?} {after:?}");
}
