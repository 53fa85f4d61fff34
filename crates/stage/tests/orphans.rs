//! No child outlives us, however we end; and none ends with the thread that asked for it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weigh_stage::process::{ManagedProcess, Start};

const ROLE: &str = "WEIGH_ORPHANS_ROLE";

/// Not a test by itself: the parent that is killed.
#[test]
fn role() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let starter = std::thread::spawn(|| {
        let folder = std::env::temp_dir();
        let log = folder.join(format!("weigh-orphans-{}.log", std::process::id()));
        ManagedProcess::start(&Start {
            program: "/bin/sleep".into(),
            arguments: vec!["1000".into()],
            environment: Vec::new(),
            folder,
            log,
            cores: None,
            piped: false,
        })
        .unwrap()
    });
    let mut process = starter.join().unwrap();
    // The thread that asked has ended; a death signal tied to it would be there by now.
    assert_eq!(process.wait_ended(Duration::from_millis(200)), None);
    std::fs::remove_file(process.log()).unwrap();
    println!("\nchild:{}", process.pid());
    std::thread::sleep(Duration::from_secs(1000));
}

#[test]
fn a_killed_parent_leaves_no_child() {
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, "parent")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let child: u32 = lines
        .find_map(|line| line.unwrap().strip_prefix("child:")?.parse().ok())
        .expect("the parent names its child");
    assert!(runs(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while runs(child) {
        assert!(Instant::now() < deadline, "process {child} outlived its parent");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A zombie that nobody reaps runs no more.
fn runs(pid: u32) -> bool {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
