//! Real hosts on the real kernel: each case runs in a process of its own, as root where we are
//! root, and as an ordinary user. Where the machine permits no namespaces it is skipped, loudly.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use statrs::distribution::{Binomial, DiscreteCDF};
use weigh_model::path::Path;
use weigh_testbed::hosts::{
    Carrier, Host, HostSpec, HostsError, NamespaceRights, Offloads, Scene, SceneSpec,
};
use weigh_testbed::process::{ManagedProcess, Start};

mod rates;

type Case = (&'static str, fn(NamespaceRights));

/// Every case, by name.
const CASES: [Case; 13] = [
    ("echo over tap", |ground| echo(ground, Carrier::Tap)),
    ("echo over ring", |ground| echo(ground, Carrier::Ring)),
    ("same seed same loss", same_seed_same_loss),
    ("tcp over tap through loss", |ground| tcp_through_loss(ground, Carrier::Tap)),
    ("tcp over ring through loss", |ground| tcp_through_loss(ground, Carrier::Ring)),
    ("three hosts and a router", router),
    ("offloads off and as captured", offloads),
    ("a path that loses all", loses_all),
    ("a tap that vanishes", |ground| vanishes(ground, Carrier::Tap)),
    ("a ring whose wire is cut", |ground| vanishes(ground, Carrier::Ring)),
    ("two hundred scenes", two_hundred_scenes),
    ("contradictions", contradictions),
    ("iperf3 through ten megabits", rates::iperf3_agrees),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(ROLE) {
        return play(&name);
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let mut failed = 0;
    for user in users() {
        let program = user.program();
        for (name, _) in CASES {
            if filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())) {
                failed += u32::from(!run(&user, &program, name));
            }
        }
        if user.name == "nobody" && filter.is_none() {
            failed += u32::from(!is_told_the_setting(&user, &program));
        }
        if filter.as_ref().is_none_or(|filter| HELD.contains(filter.as_str())) {
            failed += u32::from(!killed(&user, &program));
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// In the child: one case.
fn play(name: &str) -> ExitCode {
    let ground = match NamespaceRights::take() {
        Ok(ground) => ground,
        Err(error @ HostsError::Forbidden { .. }) => skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    };
    // What carries may be missing where namespaces are not: containers without the device.
    if name.contains("tap") && weigh_testbed::link::port::Port::tap_is_open().is_err() {
        skip("/dev/net/tun cannot be opened: chmod 0666, or modprobe tun");
    }
    if name == HELD {
        return hold(ground);
    }
    let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("a case");
    case(ground);
    ExitCode::SUCCESS
}

fn skip(why: &str) -> ! {
    println!("SKIPPED: {why}");
    std::process::exit(SKIPPED.into());
}

const ROLE: &str = "WEIGH_HOSTS_ROLE";
const HELD: &str = "killed with all it holds";
/// By the convention of automake's tests.
const SKIPPED: u8 = 77;
const PATIENCE: Duration = Duration::from_secs(20);

/// Who runs a case.
struct User {
    name: &'static str,
    prefix: Vec<&'static str>,
    folder: PathBuf,
}

fn users() -> Vec<User> {
    let user = |name: &'static str, prefix: &[&'static str]| {
        let own = format!("weigh-hosts-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(own);
        fs::create_dir_all(&folder).unwrap();
        User { name, prefix: prefix.to_vec(), folder }
    };
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: the cases as root, since we are not");
        return vec![user("self", &[])];
    }
    let mut users = vec![user("root", &[])];
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if Command::new(nobody[0]).args(&nobody[1..]).arg("true").status().is_ok_and(|s| s.success()) {
        users.push(user("nobody", &nobody));
    } else {
        println!("SKIPPED: the cases as an ordinary user: setpriv (util-linux) is missing");
    }
    users
}

impl User {
    /// This program where the user may run it.
    fn program(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let program = self.folder.join("hosts");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o777)).unwrap();
        program
    }

    fn command(&self, program: &FilePath, name: &str) -> Command {
        let mut words: Vec<_> = self.prefix.iter().map(std::ffi::OsString::from).collect();
        words.push(program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env(ROLE, name).current_dir(&self.folder);
        command
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn run(user: &User, program: &FilePath, name: &str) -> bool {
    let output = user.command(program, name).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let verdict = match output.status.code() {
        Some(0) => "ok",
        Some(code) if code == i32::from(SKIPPED) => "SKIPPED",
        _ => "FAILED",
    };
    println!("test {name} as {} ... {verdict}", user.name);
    if verdict != "ok" {
        println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    }
    verdict != "FAILED"
}

/// Where the setting forbids user namespaces, it is named. It is set in a namespace of its own, so
/// that the machine keeps its.
fn is_told_the_setting(user: &User, program: &FilePath) -> bool {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --inh-caps=-all --bounding-set=-all \"$0\"";
    let mut command = Command::new(user.prefix[0]);
    command.args(&user.prefix[1..]).args(["unshare", "-Ur", "sh", "-c", script]).arg(program);
    let output = command.env(ROLE, CASES[0].0).current_dir(&user.folder).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let named = "SKIPPED: no network namespaces for this user: user.max_user_namespaces = 0";
    let is_told = told.starts_with(named) && told.contains("sudo sysctl -w");
    // Where even this is forbidden, the other cases have said so.
    let verdict = match output.status.code() {
        Some(code) if code == i32::from(SKIPPED) => {
            if is_told {
                "ok"
            } else {
                "FAILED"
            }
        }
        _ => "SKIPPED",
    };
    println!("test the setting that forbids is named ... {verdict}");
    if verdict != "ok" {
        println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    }
    verdict != "FAILED"
}

fn path(text: &str) -> Path {
    let head = "name = \"t\"\ntitle = \"t\"\nabout = \"t\"\nmtu = 1500\n";
    Path::parse("t.toml", &format!("{head}{text}")).unwrap()
}

fn spec(carrier: Carrier, hosts: &[(&str, Option<Path>)]) -> SceneSpec {
    let of = |(name, path): &(&str, Option<Path>)| HostSpec {
        name: (*name).to_owned(),
        path: path.clone(),
    };
    SceneSpec { carrier, ..SceneSpec::of(hosts.iter().map(of).collect()) }
}

fn udp(host: &Host) -> UdpSocket {
    let socket = host.inside(|| UdpSocket::bind((host.address(), 0))).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn echo(ground: NamespaceRights, carrier: Carrier) {
    let far = path("up = { delay = \"20ms\" }\ndown = { delay = \"5ms\" }");
    let spec = spec(carrier, &[("client", Some(far)), ("server", None)]);
    let scene = Scene::set(ground, &spec).unwrap();
    scene.begin(1);
    let (client, server) = (scene.host("client").unwrap(), scene.host("server").unwrap());
    let (asking, answering) = (udp(client), udp(server));
    let to = answering.local_addr().unwrap();
    let mut buffer = [0; 2000];
    for number in 0..20_usize {
        // The largest datagram that fits: 1,500 less 20 of IP (RFC 791) and 8 of UDP (RFC 768).
        let length = if number == 19 { 1472 } else { number };
        let sent = Instant::now();
        asking.send_to(&vec![number as u8; length], to).unwrap();
        let (length_there, from) = answering.recv_from(&mut buffer).unwrap();
        answering.send_to(&buffer[..length_there], from).unwrap();
        let (length_back, _) = asking.recv_from(&mut buffer).unwrap();
        assert_eq!((length_back, length_there), (length, length));
        assert!(buffer[..length].iter().all(|byte| usize::from(*byte) == number));
        // Not how fast it was, but that nothing was faster than the path.
        assert!(sent.elapsed() >= Duration::from_millis(25), "{:?}", sent.elapsed());
    }
    let counts = counts_when(&scene, |counts| counts.written() == 40);
    assert_eq!((counts.ports[0].up.offered, counts.ports[0].down.offered), (20, 20), "{counts:?}");
    assert_eq!(counts.ports[0].up.offered_bytes, (0..19).sum::<u64>() + 1472 + 20 * 28);
    // Not a single packet but ours: nobody asks for addresses or announces anything.
    let foreign: u64 = counts.ports.iter().map(|port| port.foreign + port.unroutable).sum();
    assert_eq!(foreign, 0, "{counts:?}");
    assert_eq!(scene.failed(), None);
    assert!(scene.untuned().is_empty(), "{:?}", scene.untuned());
    let ports = "/proc/sys/net/ipv4/ip_local_port_range";
    let inside = client.inside(|| fs::read_to_string(ports)).unwrap();
    assert_eq!(inside.split_whitespace().collect::<Vec<_>>(), ["1024", "65535"]);
}

/// The counts once they are as expected, or as they are after a while.
fn counts_when(
    scene: &Scene,
    is_it: impl Fn(&weigh_testbed::link::counts::PathCounts) -> bool,
) -> weigh_testbed::link::counts::PathCounts {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let counts = scene.path_counts().unwrap();
        if is_it(&counts) || Instant::now() > deadline {
            return counts;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn same_seed_same_loss(ground: NamespaceRights) {
    let lossy = path("up = { loss = \"5%\" }");
    let spec = spec(Carrier::Best, &[("client", Some(lossy)), ("server", None)]);
    let scene = Scene::set(ground, &spec).unwrap();
    let sending = udp(scene.host("client").unwrap());
    let receiving = udp(scene.host("server").unwrap());
    let to = receiving.local_addr().unwrap();
    let arrived_with = |seed| {
        scene.begin(seed);
        let mut arrived = Vec::new();
        let mut number = [0; 4];
        for at in 0..PACKETS {
            sending.send_to(&at.to_be_bytes(), to).unwrap();
            // In pieces, so that no socket overflows on a busy machine.
            if at % 50 == 49 {
                let total = u64::from(at + 1);
                let before = counts_when(&scene, |counts| {
                    (counts.ports[0].up.offered) % u64::from(PACKETS) == total % u64::from(PACKETS)
                });
                assert_eq!(before.ports[0].up.offered % u64::from(PACKETS), total % 2000);
                receiving.set_nonblocking(true).unwrap();
                while receiving.recv_from(&mut number).is_ok() {
                    arrived.push(u32::from_be_bytes(number));
                }
                receiving.set_nonblocking(false).unwrap();
            }
        }
        arrived
    };
    let (first, again, other) = (arrived_with(3), arrived_with(3), arrived_with(4));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let lost = u64::from(PACKETS) - first.len() as u64;
    let binomial = Binomial::new(0.05, u64::from(PACKETS)).unwrap();
    let interval = binomial.inverse_cdf(5e-7)..=binomial.inverse_cdf(1.0 - 5e-7);
    assert!(interval.contains(&lost), "{lost} not in {interval:?}");
    let counts = scene.path_counts().unwrap();
    let arrived = first.len() + again.len() + other.len();
    assert_eq!(counts.ports[0].up.lost, 3 * u64::from(PACKETS) - arrived as u64);
    assert_eq!(counts.ports[1].written, arrived as u64);
}

const PACKETS: u32 = 2000;

fn tcp_through_loss(ground: NamespaceRights, carrier: Carrier) {
    let text = "up = { delay = \"1ms\", loss = \"2%\" }\n\
                down = { delay = \"1ms\", loss = \"2%\", duplicate = \"1%\" }";
    let spec = spec(carrier, &[("client", Some(path(text))), ("server", None)]);
    let scene = Scene::set(ground, &spec).unwrap();
    scene.begin(9);
    let (client, server) = (scene.host("client").unwrap(), scene.host("server").unwrap());
    transfer(client, server);
    let counts = scene.path_counts().unwrap();
    let (up, down) = (counts.ports[0].up, counts.ports[0].down);
    // 1,448 bytes are the most of a packet that carries time stamps.
    assert!(up.offered >= 1_000_000 / 1448 && up.lost > 0 && down.offered > 100, "{counts:?}");
    assert!(up.offered_bytes > 1_000_000 + 52 * 690, "{counts:?}");
}

/// A million bytes over TCP, checked byte by byte.
fn transfer(client: &Host, server: &Host) {
    let listener = server.inside(|| TcpListener::bind((server.address(), 0))).unwrap();
    let to = SocketAddrV4::new(server.address(), listener.local_addr().unwrap().port());
    let byte = |n: u32| (n.wrapping_mul(2_654_435_761) >> 24) as u8;
    let body: Vec<u8> = (0..1_000_000).map(byte).collect();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), client.address());
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        client.enter().unwrap();
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(&body).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
        receiver.join().unwrap()
    });
    assert!(received == body, "{} bytes arrived, or others", received.len());
}

/// Study 002's trap: with offloads on, a capture sees a fraction of the packets of a wire.
fn offloads(ground: NamespaceRights) {
    let sent_packets = |offloads| {
        let spec = spec(Carrier::Best, &[("client", None), ("server", None)]);
        let scene = Scene::set(ground, &SceneSpec { offloads, ..spec }).unwrap();
        let (client, server) = (scene.host("client").unwrap(), scene.host("server").unwrap());
        transfer(client, server);
        let devices = client.inside(|| fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        let line = devices.lines().find_map(|l| l.trim().strip_prefix("weigh0:")).unwrap();
        // proc(5): eight columns of what was received, then bytes and packets of what was sent.
        line.split_whitespace().nth(9).unwrap().parse::<u32>().unwrap()
    };
    let (off, on) = (sent_packets(Offloads::Off), sent_packets(Offloads::AsCaptured));
    // 1,448 bytes to a packet: 691 packets, and those that open and close.
    assert!(off >= 691 + 3, "{off} packets with offloads off");
    assert!(on < 691 / 3, "{on} packets with offloads on");
}

fn router(ground: NamespaceRights) {
    let hosts = [("publisher", None), ("broker", None), ("subscriber", None)];
    let scene = Scene::set(ground, &spec(Carrier::Best, &hosts)).unwrap();
    assert_eq!((scene.carrier(), scene.path_counts()), ("router", None));
    let sockets: Vec<UdpSocket> = scene.hosts().iter().map(udp).collect();
    let mut buffer = [0; 2000];
    for (from, sending) in sockets.iter().enumerate() {
        for (to, receiving) in sockets.iter().enumerate().filter(|(to, _)| *to != from) {
            let body = vec![from as u8; 1472 - to];
            sending.send_to(&body, receiving.local_addr().unwrap()).unwrap();
            let (length, source) = receiving.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], body);
            assert_eq!(source, sending.local_addr().unwrap());
        }
    }
    // Nobody else is reachable from in there: no route leads out.
    let error = sockets[0].send_to(&[0], "192.0.2.1:9").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NetworkUnreachable, "{error}");
    // A command runs in its host, and is who we are.
    let host = scene.host("broker").unwrap();
    let output = host.command("cat").arg("/proc/self/net/dev").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> =
        told.lines().filter_map(|line| line.split_once(':')).map(|l| l.0.trim()).collect();
    assert!(names.contains(&Host::INTERFACE) && !names.contains(&"eth0"), "{names:?}");
    let output = host.command("id").arg("-u").output().unwrap();
    let user = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), user);
}

fn loses_all(ground: NamespaceRights) {
    let gone = path("up = { loss = \"100%\" }");
    let spec = spec(Carrier::Best, &[("client", Some(gone)), ("server", None)]);
    let scene = Scene::set(ground, &spec).unwrap();
    let (client, server) = (scene.host("client").unwrap(), scene.host("server").unwrap());
    let listener = server.inside(|| TcpListener::bind((server.address(), 0))).unwrap();
    let to = listener.local_addr().unwrap();
    let within = Duration::from_millis(300);
    let error = client.inside(|| TcpStream::connect_timeout(&to, within)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let counts = counts_when(&scene, |counts| counts.ports[0].up.lost > 0);
    assert_eq!(counts.ports[0].up.lost, counts.ports[0].up.offered);
    assert_eq!(counts.written(), 0);
}

/// Only root's commands may take an interface away: others lose their rights when they start.
fn vanishes(ground: NamespaceRights, carrier: Carrier) {
    if ground != NamespaceRights::Privileged {
        skip("only root can take an interface away from outside");
    }
    let far = path("up = { delay = \"1ms\" }");
    let scene = Scene::set(ground, &spec(carrier, &[("client", Some(far)), ("server", None)]));
    let scene = scene.unwrap();
    let host = scene.host("server").unwrap();
    let gone = host.command("ip").args(["link", "delete", Host::INTERFACE]).status();
    if gone.is_err() {
        skip("ip (iproute2) is missing");
    }
    assert!(gone.unwrap().success());
    let deadline = Instant::now() + PATIENCE;
    while scene.failed().is_none() && Instant::now() < deadline {
        std::thread::sleep(READY_PAUSE);
    }
    let told = scene.failed().expect("the forwarder noticed nothing");
    assert!(told.contains("vanished") || told.contains("gone"), "{told}");
    // Nobody waits for a forwarder that is no more.
    scene.begin(1);
    assert_eq!(scene.path_counts().unwrap().written(), 0);
}

/// More scenes than namespaces are allowed to be left behind.
fn two_hundred_scenes(ground: NamespaceRights) {
    let limit = "/proc/sys/user/max_net_namespaces";
    if ground == NamespaceRights::UserNamespace {
        fs::write(limit, "64").unwrap();
    }
    let before = left_behind();
    let far = path("up = { delay = \"1ms\" }");
    let mut longest = Duration::ZERO;
    for number in 0..200 {
        let path = if number % 2 == 0 { Some(far.clone()) } else { None };
        let carrier = if number % 4 == 0 { Carrier::Ring } else { Carrier::Best };
        let spec = spec(carrier, &[("client", path), ("server", None)]);
        let began = Instant::now();
        let scene = loop {
            match Scene::set(ground, &spec) {
                Ok(scene) => break scene,
                // The kernel takes namespaces down in its own time.
                Err(_) if began.elapsed() < PATIENCE => std::thread::sleep(READY_PAUSE),
                Err(error) => panic!("scene {number}: {error}"),
            }
        };
        longest = longest.max(began.elapsed());
        let (asking, answering) = (udp(&scene.hosts()[0]), udp(&scene.hosts()[1]));
        asking.send_to(b"?", answering.local_addr().unwrap()).unwrap();
        assert_eq!(answering.recv_from(&mut [0; 9]).unwrap().0, 1);
    }
    assert_eq!(left_behind(), before);
    println!("the longest took {longest:?}");
}

const READY_PAUSE: Duration = Duration::from_millis(20);

/// What can be seen of things that should not be: interfaces here, named namespaces, descriptors
/// and threads of ours, children.
fn left_behind() -> (Vec<String>, usize, usize, usize, String) {
    let devices = fs::read_to_string("/proc/self/net/dev").unwrap();
    let names = devices.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    let named = fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let entries = |folder| fs::read_dir(folder).unwrap().count();
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    // A thread that was joined may still be on its way out.
    let deadline = Instant::now() + PATIENCE;
    while entries("/proc/self/task") > 1 && Instant::now() < deadline {
        std::thread::sleep(READY_PAUSE);
    }
    (names.collect(), named, entries("/proc/self/fd"), entries("/proc/self/task"), children)
}

fn contradictions(ground: NamespaceRights) {
    let far = path("up = { delay = \"1ms\" }");
    let refused = |spec: &SceneSpec| match Scene::set(ground, spec).map(drop) {
        Err(HostsError::Scene(text)) => text,
        other => panic!("{other:?}"),
    };
    let twice = [("a", None), ("a", None)];
    assert!(refused(&spec(Carrier::Best, &twice)).contains("two hosts have the name \"a\""));
    assert!(refused(&spec(Carrier::Best, &[])).contains("0 hosts"));
    let mut on = spec(Carrier::Best, &[("a", Some(far)), ("b", None)]);
    on.offloads = Offloads::AsCaptured;
    assert!(refused(&on).contains("offloads cannot be on with a path"));
    let scene = Scene::set(ground, &spec(Carrier::Best, &[("a", None)])).unwrap();
    assert!(scene.host("b").unwrap_err().to_string().contains("expected one of a"));
    // The ground is taken once, by one thread; a second time it is there.
    assert_eq!(NamespaceRights::take().unwrap(), ground);
    let elsewhere = std::thread::spawn(NamespaceRights::take).join().unwrap();
    assert_eq!(elsewhere.unwrap(), ground);
}

/// In the child that will be killed: a scene with traffic, a process in a host, then nothing.
fn hold(ground: NamespaceRights) -> ExitCode {
    let far = path("up = { delay = \"1ms\" }");
    let spec = spec(Carrier::Best, &[("client", Some(far)), ("server", None)]);
    let scene = Scene::set(ground, &spec).unwrap();
    let process = ManagedProcess::start(&Start {
        program: "sleep".into(),
        arguments: vec!["1000".into()],
        environment: Vec::new(),
        folder: ".".into(),
        log: Some("sleep.log".into()),
        cores: None,
        piped: false,
        door: Some(scene.host("server").unwrap().door()),
        enclosure: None,
    })
    .unwrap();
    let namespace = |path: String| fs::read_link(path).unwrap().display().to_string();
    let inside = || Ok(namespace("/proc/thread-self/ns/net".to_owned()));
    let host = scene.host("server").unwrap().inside(inside).unwrap();
    assert_eq!(namespace(format!("/proc/{}/ns/net", process.pid())), host);
    assert_ne!(namespace("/proc/self/ns/net".to_owned()), host);
    println!("held:{}:{host}", process.pid());
    std::thread::sleep(Duration::from_secs(1000));
    ExitCode::SUCCESS
}

fn killed(user: &User, program: &FilePath) -> bool {
    let mut holder = user.command(program, HELD).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut lines = lines.filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let Some((child, namespace)) = first.strip_prefix("held:").and_then(|l| l.split_once(':'))
    else {
        let is_skipped = first.starts_with("SKIPPED");
        println!("test {HELD} as {} ... {}", user.name, if is_skipped { &first } else { "FAILED" });
        let _ = holder.kill();
        let _ = holder.wait();
        return is_skipped;
    };
    assert!(FilePath::new(&format!("/proc/{child}")).exists());
    // SIGKILL: nothing of its own runs any more.
    holder.kill().unwrap();
    holder.wait().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut left = who_is_in(namespace);
    while (!left.is_empty() || lives(child)) && Instant::now() < deadline {
        std::thread::sleep(READY_PAUSE);
        left = who_is_in(namespace);
    }
    let is_clean = left.is_empty() && !lives(child);
    println!("test {HELD} as {} ... {}", user.name, if is_clean { "ok" } else { "FAILED" });
    if !is_clean {
        println!("left: processes {left:?} in {namespace}; the child lives: {}", lives(child));
    }
    is_clean
}

/// Whether a process runs; one that ended and waits for its new parent does not.
fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// The processes in a network namespace, as far as we may look.
fn who_is_in(namespace: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_in = |pid: &String| {
        let link = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap_or_default();
        link.display().to_string() == namespace
    };
    let names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).filter(is_in).collect()
}
