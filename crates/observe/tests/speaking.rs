//! An agent and who asks it, over loopback: what it says is what the kernel says here, and who does
//! not know it hears nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weigh_model::lookout::AgentAddress;
use weigh_observe::cpu::{CpuTree, monotonic_ns, tick_ns};
use weigh_observe::remote::{Agent, AgentWatch, RemoteError, Token, Visitor, Watched};
use weigh_observe::subject::Subject;

/// A process that burns a core until it is dropped.
struct Burner(Child);

impl Burner {
    fn start() -> Burner {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Burner(command.spawn().unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn agent_on(pid: u32) -> Agent {
    let watched =
        Watched { what: format!("process {pid}"), begin: Box::new(move || Subject::tree(pid)) };
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    Agent::start(free, Token::make().unwrap(), watched, "0.0").unwrap()
}

/// Read locally before and after it, the agent's reading lies between the two.
#[test]
fn the_agent_says_what_the_kernel_says_to_a_tick() {
    let burner = Burner::start();
    let mut here = CpuTree::new(burner.0.id()).unwrap();
    let agent = agent_on(burner.0.id());
    let mut visitor = Visitor::visit(&agent.address()).unwrap();
    // Its zero is a little later than ours.
    let zero = here.read().cpu_ns;
    let first = visitor.look(false).unwrap().cpu_ns();
    let began_after = here.read().cpu_ns;
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(60));
        let before = here.read().cpu_ns;
        let there = visitor.look(true).unwrap().cpu_ns();
        let after = here.read().cpu_ns;
        let (least, most) = (before.saturating_sub(began_after), after);
        let slack = 2 * tick_ns();
        assert!(there + slack >= least && there <= most + slack, "{least} {there} {most}");
        assert!(there >= first);
    }
    assert!(here.read().cpu_ns > zero, "it burns");
    assert_eq!((agent.counted().looks, agent.counted().refused), (6, 0));
}

/// What it used in a window is what the kernel counted for it from just before to just after.
#[test]
fn a_watch_lies_on_our_clock() {
    let burner = Burner::start();
    let agent = agent_on(burner.0.id());
    let visitor = Visitor::visit(&agent.address()).unwrap();
    assert!(visitor.what().contains("process") && visitor.cores() >= 1);
    let watch = AgentWatch::start(visitor, Duration::from_millis(20)).unwrap();
    let mut here = CpuTree::new(burner.0.id()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let (from, at_begin) = (monotonic_ns(), here.read().cpu_ns);
    watch.poke();
    std::thread::sleep(Duration::from_millis(500));
    watch.poke();
    let (to, at_end) = (monotonic_ns(), here.read().cpu_ns);
    std::thread::sleep(Duration::from_millis(100));
    let seen = watch.stop();
    assert!(seen.failure.is_none() && seen.agent_share.is_some());
    let bound = seen.clock_bound_ns.unwrap();
    let recording = seen.recording.unwrap();
    assert_eq!(recording.gone_ns, None);
    let used = recording.window(from, to).unwrap();
    // Between two looks the processor may have been somebody else's: a look more at either end.
    let slack = 2 * (tick_ns() + bound) + 100_000_000;
    let local = at_end - at_begin;
    assert!(used.cpu_ns.abs_diff(local) <= slack, "{} there, {local} here", used.cpu_ns);
    assert!(used.memory_bytes_max > 0 && used.host.all_ns() > 0, "{used:?}");
}

#[test]
fn whoever_does_not_know_it_is_turned_away() {
    let agent = agent_on(std::process::id());
    let right = agent.address();
    let refused = |address: &AgentAddress| Visitor::visit(address).err().unwrap();
    let wrong = AgentAddress { token: Some("0".repeat(32)), ..right.clone() };
    assert!(matches!(refused(&wrong), RemoteError::Refused(why) if why.contains("token")));
    let none = AgentAddress { token: None, ..right.clone() };
    assert!(matches!(refused(&none), RemoteError::NoToken));
    let other = AgentAddress { fingerprint: [7; 32], ..right.clone() };
    assert!(matches!(refused(&other), RemoteError::OtherCertificate));
    let unknown = AgentAddress { host: "no-such-host.invalid".to_owned(), ..right.clone() };
    assert!(matches!(refused(&unknown), RemoteError::Unknown { .. }));
    // Plain text, and nothing at all: closed, and the next one is served.
    let mut plain = TcpStream::connect(("127.0.0.1", right.port)).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    assert!(Visitor::visit(&right).unwrap().look(false).is_ok());
}

#[test]
fn a_stranger_and_nobody_are_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            let mut line = String::new();
            let _ = BufReader::new(stream).read_line(&mut line);
        }
    });
    let host = "127.0.0.1".to_owned();
    let token = Some("0".repeat(32));
    let address = AgentAddress { host, port, fingerprint: [0; 32], token };
    assert!(matches!(Visitor::visit(&address).err().unwrap(), RemoteError::Stranger(_)));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nobody = AgentAddress { port: free, ..address };
    assert!(matches!(Visitor::visit(&nobody).err().unwrap(), RemoteError::Unreached(_)));
}

#[test]
fn what_ends_is_told_as_gone_and_not_as_idle() {
    let burner = Burner::start();
    let agent = agent_on(burner.0.id());
    let mut visitor = Visitor::visit(&agent.address()).unwrap();
    visitor.look(false).unwrap();
    let watch =
        AgentWatch::start(Visitor::visit(&agent.address()).unwrap(), Duration::from_millis(10));
    let watch = watch.unwrap();
    std::thread::sleep(Duration::from_millis(50));
    drop(burner);
    assert!(matches!(visitor.look(false), Err(RemoteError::Gone(why)) if why.contains("ended")));
    std::thread::sleep(Duration::from_millis(100));
    let seen = watch.stop();
    assert!(matches!(seen.failure.as_deref(), Some(RemoteError::Gone(_))));
    assert!(seen.recording.is_none_or(|own| own.gone_ns.is_some()));
    assert!(matches!(Visitor::visit(&agent.address()), Err(RemoteError::Gone(_))));
}

/// As many as are let in, each with one byte after the other of a record that never ends.
#[test]
fn who_trickles_a_greeting_does_not_keep_the_next_one_out() {
    const RECORD: [u8; 5] = [0x16, 3, 1, 0x40, 0];
    // A record holds 2^14 bytes; by far fewer than those the agent has lost its patience.
    const BYTES_MAX: usize = 600;
    let agent = agent_on(std::process::id());
    let port = agent.address().port;
    let open = |_| TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut strangers: Vec<TcpStream> = (0..8).map(open).collect();
    for byte in RECORD.into_iter().chain(std::iter::repeat_n(1, BYTES_MAX)) {
        strangers.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
        if strangers.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(strangers.is_empty(), "{} are still listened to", strangers.len());
    assert_eq!(agent.counted().refused, 8);
    assert!(Visitor::visit(&agent.address()).unwrap().look(false).is_ok());
}
