//! `weigh fleet`: a bus that other hosts reach only with its token, and launchers that start all
//! agents and leave none behind. What stands for an agent here is a script.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::rig::{Place, has, signal, until, wait};
use crate::serving::Server;

/// A bus of `weigh fleet up`.
fn up(place: &Place, arguments: &[&str]) -> Server {
    Server::begin(place, &[&["fleet", "up"], arguments].concat())
}

fn port(up: &Server) -> u16 {
    up.url.rsplit_once(':').expect("a port").1.parse().expect("a number")
}

/// What the server says to a client with these options: its own line, and the answer to a ping.
fn greeted(port: u16, options: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the bus listens");
    let mut lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
    let info = lines.next().expect("a line").expect("text");
    stream.write_all(format!("CONNECT {options}\r\nPING\r\n").as_bytes()).expect("it reads");
    (info, lines.next().expect("an answer").expect("text"))
}

#[test]
fn a_bus_on_loopback_has_jetstream_and_leaves_nothing() {
    if !has("nats-server") {
        return;
    }
    let place = Place::new("fleet-up");
    let bus = up(&place, &["--listen", "127.0.0.1:0"]);
    let (info, answer) = greeted(port(&bus), "{\"verbose\":false}");
    assert!(info.contains("\"jetstream\":true"), "{info}");
    assert_eq!(answer, "PONG");
    let server = place.processes().into_iter().find(|(_, line)| line.contains("--config"));
    let (_, line) = server.expect("the server is a process of its own");
    let folder = Path::new(line.trim().rsplit_once(' ').unwrap().1).parent().unwrap().to_owned();
    assert!(folder.join("store").is_dir());
    assert_eq!(bus.end("TERM").0, Some(0));
    assert!(!folder.exists(), "{}", folder.display());
    place.nobody_is_left();
}

#[test]
fn a_bus_for_other_hosts_needs_its_token_which_no_process_list_shows() {
    if !has("nats-server") {
        return;
    }
    let place = Place::new("fleet-token");
    let mut bus = up(&place, &["--listen", "0.0.0.0:0"]);
    let line = bus.line();
    let token = line.strip_prefix("export WEIGH_BUS_TOKEN=").expect("the token").to_owned();
    assert_eq!(token.len(), 32);
    let with = |token: &str| {
        greeted(port(&bus), &format!("{{\"verbose\":false,\"auth_token\":\"{token}\"}}")).1
    };
    assert_eq!(with(&token), "PONG");
    assert!(with("0123456789abcdef0123456789abcdef").contains("Authorization Violation"));
    assert!(greeted(port(&bus), "{}").1.contains("Authorization Violation"));
    let processes = place.processes();
    assert!(processes.iter().all(|(_, line)| !line.contains(&token)), "{processes:?}");
    assert_eq!(bus.end("TERM").0, Some(0));

    place.write("token", "this-is-a-token-of-the-user\n");
    let mut bus = up(&place, &["--listen", "127.0.0.1:0", "--token-file", "token"]);
    assert!(bus.line().starts_with("NATS "), "no token is printed");
    assert!(greeted(port(&bus), "{}").1.contains("Authorization Violation"));
    let own = "{\"verbose\":false,\"auth_token\":\"this-is-a-token-of-the-user\"}";
    assert_eq!(greeted(port(&bus), own).1, "PONG");
    assert_eq!(bus.end("TERM").0, Some(0));
    place.nobody_is_left();
}

#[test]
fn what_is_wrong_with_a_bus_is_said_once() {
    let place = Place::new("fleet-wrong");
    place.write("short", "abc\n");
    let words = ["fleet", "up", "--token-file"];
    place.weigh(&[&words[..], &["short"]].concat()).with(2).saying(&["not a token", "16 to 128"]);
    place.weigh(&[&words[..], &["absent"]].concat()).with(2).saying(&["absent: No such file"]);
    if !has("nats-server") {
        return;
    }
    let mut bus = up(&place, &["--listen", "127.0.0.1:0"]);
    let address = format!("127.0.0.1:{}", port(&bus));
    let refused = place.weigh(&["fleet", "up", "--listen", &address]).with(3);
    refused.saying(&["address already in use", "help: "]);
    // A bus whose server dies ends too.
    let server = place.processes().into_iter().find(|(_, line)| line.contains("--config"));
    signal("KILL", server.expect("the server").0);
    let mut errors = String::new();
    bus.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.contains("the bus ended with signal 9"), "{errors}");
    assert_eq!(bus.child.wait().unwrap().code(), Some(3));
    place.nobody_is_left();
}

#[test]
fn launchers_are_printed_or_refused_with_what_to_type() {
    let place = Place::new("fleet-print");
    let of = |launcher: &str, more: &[&str]| {
        let bus = ["--bus", "nats://bus:4222", "--may-load", "broker:1883"];
        place.weigh(&[&["fleet", "print", launcher], &bus[..], more].concat())
    };
    if !cfg!(feature = "fleet") {
        of("slurm", &["--agents", "2"]).with(2).saying(&["--features full"]);
        return;
    }
    let image = ["--image", "weigh:1"];
    let two = ["--agents", "2"];
    let job = of("kubernetes", &[&image[..], &two[..]].concat()).with(0).stdout;
    assert!(job.contains("completionMode: Indexed\n") && job.contains("  completions: 2\n"));
    let file = of("compose", &[&image[..], &two[..]].concat()).with(0).stdout;
    assert!(file.contains("  agent-0001:\n"), "{file}");
    for (name, text) in [
        ("slurm", of("slurm", &two).with(0).stdout),
        ("ssh", of("ssh", &["--host", "a", "--host", "b"]).with(0).stdout),
    ] {
        place.write(name, &text);
        let checked = place.program("bash", &["-n", name]).output().expect("bash");
        assert!(checked.status.success(), "{name}:\n{text}");
    }
    of("kubernetes", &two).with(2).saying(&["--image"]);
    of("slurm", &[&image[..], &two[..]].concat()).with(2).saying(&["--image"]);
    let both = [&two[..], &["--nkey", "a", "--creds", "b"]].concat();
    of("slurm", &both).with(2).saying(&["--creds"]);
    of("ssh", &["--host=-oProxyCommand=x"]).with(2).saying(&["--host"]);
    let certified = [&two[..], &["--bus-cert", "own.pem", "--bus-key", "own.key"]].concat();
    let script = of("slurm", &certified).with(0).stdout;
    assert!(script.contains("--bus-cert own.pem --bus-key own.key"), "{script}");
    of("slurm", &[&two[..], &["--bus-cert", "own.pem"]].concat()).with(2).saying(&["--bus-key"]);
    // As many as a run takes.
    let many = ["--agents", "1001"];
    of("slurm", &many).with(2).saying(&["from 1 to 1000"]);
    let run = ["tcp", "--fleet", "nats://127.0.0.1:1"];
    place.compare(&[&run[..], &many].concat()).with(2).saying(&["from 1 to 1000"]);
    of("slurm", &["--agents", "1000"]).with(0);
}

/// A program that stands for ssh: it leaves options and host out, and runs the line as the shell of
/// a host does, in a session of its own.
const SSH: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nexec setsid sh -c \"$3\"\n";

/// A program that stands for an agent: it says its rank and stays until it is ended.
const STAYS: &str = "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n: >\"started-$1\"\n\
    trap 'exit 143' TERM\nwhile :; do sleep 0.05; done\n";

/// Writes a program into the place's folder.
pub fn program(place: &Place, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    place.write(name, text);
    let path = place.folder().join(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

/// The printed script with ssh, started in the place's folder, with an agent of this text.
fn by_ssh(place: &Place, agent: &str) -> Child {
    program(place, "ssh", SSH);
    let agent = program(place, "an agent", agent);
    let agent = agent.to_str().unwrap();
    let words = ["fleet", "print", "ssh", "--bus", "nats://bus:4222", "--may-load", "broker:1883"];
    let hosts = ["--host", "one", "--host", "two", "--agents", "3", "--binary", agent];
    let script = place.weigh(&[&words[..], &hosts[..]].concat()).with(0).stdout;
    place.write("start.sh", &script);
    let path = format!("{}:{}", place.folder().display(), std::env::var("PATH").unwrap());
    let mut command = place.program("bash", &["start.sh"]);
    command.env("PATH", path);
    command.spawn().expect("bash")
}

#[test]
fn agents_started_by_ssh_end_with_their_script_however_it_ends() {
    if !cfg!(feature = "fleet") {
        return;
    }
    for name in ["TERM", "KILL"] {
        let place = Place::new("fleet-ssh");
        let script = by_ssh(&place, STAYS);
        for rank in 0..3 {
            let file = place.folder().join(format!("started-{rank}"));
            until(&format!("agent {rank} starts"), || file.exists());
        }
        signal(name, script.id());
        let code = (name == "TERM").then_some(143);
        assert_eq!(wait(script).code, code, "after SIG{name}");
        place.nobody_is_left();
    }
}

#[test]
fn a_failed_agent_ends_the_others_and_its_code_is_the_script_s() {
    if !cfg!(feature = "fleet") {
        return;
    }
    let place = Place::new("fleet-ssh-failed");
    let agent = STAYS.replace("trap ", "[ \"$1\" != 1 ] || exit 7\ntrap ");
    let script = by_ssh(&place, &agent);
    assert_eq!(wait(script).code, Some(7));
    place.nobody_is_left();

    let place = Place::new("fleet-ssh-done");
    let script = by_ssh(&place, "#!/bin/sh\necho \"done $*\"\n");
    let ended = wait(script).with(0);
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{}", ended.stdout);
    for (rank, line) in lines.iter().enumerate() {
        let words = "done agent --bus nats://bus:4222 --may-load broker:1883 --once --rank";
        assert_eq!(*line, format!("{words} {rank}"));
    }
    place.nobody_is_left();
}
