//! No child outlives us, however we end; and none ends with the thread that asked for it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find::find;
use weigh_testbed::managed::ManagedServer;
use weigh_testbed::process::{ManagedProcess, Start};

const ROLE: &str = "WEIGH_ORPHANS_ROLE";

/// Not a test by itself: the parent that is killed.
#[test]
fn role() {
    match std::env::var(ROLE).as_deref() {
        Ok("sleep") => hold(start_sleep, ManagedProcess::pid),
        Ok(target) => hold(|| start_server(target), ManagedServer::pid),
        Err(_) => {}
    }
}

fn hold<T: Send>(start: impl FnOnce() -> T + Send, pid: impl Fn(&T) -> u32) {
    // The thread that asks ends: a death signal tied to it would strike here.
    let held = std::thread::scope(|scope| scope.spawn(start).join().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    assert!(runs(pid(&held)));
    println!("\nchild:{}", pid(&held));
    std::thread::sleep(Duration::from_secs(1000));
}

fn start_sleep() -> ManagedProcess {
    ManagedProcess::start(&Start {
        program: "/bin/sleep".into(),
        arguments: vec!["1000".into()],
        environment: Vec::new(),
        folder: own_folder(),
        log: Some(own_folder().join("sleep.log")),
        cores: None,
        piped: false,
        door: None,
        enclosure: None,
    })
    .unwrap()
}

fn start_server(target: &str) -> ManagedServer {
    let catalogue = Catalogue::load(None).unwrap();
    let choice = catalogue.choose(target).unwrap();
    ManagedServer::start(choice, None, &own_folder(), None).unwrap()
}

fn own_folder() -> PathBuf {
    std::env::current_dir().unwrap()
}

#[test]
fn a_killed_parent_leaves_no_child() {
    leaves_nothing("sleep");
}

#[test]
fn a_killed_parent_leaves_no_server() {
    let catalogue = Catalogue::load(None).unwrap();
    for target in catalogue.targets() {
        // HTTP/3 is never without TLS, for which nobody has made certificates here.
        if target.speaks.iter().all(|own| own.protocol == "http3") {
            continue;
        }
        if find(target).is_some() {
            leaves_nothing(&target.name);
        } else {
            let is_in_ci =
                ["mosquitto", "nginx", "nats-mqtt", "nats-server"].contains(&target.name.as_str());
            let is_ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_ci || !is_in_ci, "{} is missing", target.name);
            println!("SKIPPED: {} is not installed: {}", target.name, target.find.install);
        }
    }
}

fn leaves_nothing(role: &str) {
    let folder = std::env::temp_dir().join(format!("weigh-orphan-{role}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let child: u32 = lines
        .find_map(|line| line.unwrap().strip_prefix("child:")?.parse().ok())
        .expect("the parent names its child");
    assert!(runs(child));
    let all = family(child);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    // A server in Erlang has processes of its own, which no signal of the kernel reaches.
    while let Some(left) = all.iter().find(|pid| runs(**pid)) {
        assert!(Instant::now() < deadline, "process {left} of {role} outlived its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A process with all its descendants (`/proc/PID/task/TID/children`, proc(5)).
fn family(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = std::fs::read_to_string(task.path().join("children"));
            let children = children.unwrap_or_default();
            all.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    all
}

/// A zombie that nobody reaps runs no more.
fn runs(pid: u32) -> bool {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
