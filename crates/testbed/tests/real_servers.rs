//! Real servers, started from the catalogue and stopped. Where one is not installed the test
//! says so, and fails with `CI=true`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find::find;
use weigh_testbed::managed::ManagedServer;
use weigh_testbed::pinning::CoreSet;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weigh {name} {}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn installed(name: &str) -> bool {
    let catalogue = Catalogue::load(None).unwrap();
    let target = catalogue.choose(name).unwrap().target;
    if find(target).is_some() {
        return true;
    }
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{name} is missing in CI");
    println!("SKIPPED: {name} is not installed: {}", target.find.install);
    false
}

fn talk(server: &ManagedServer, bytes: &[u8], expected: usize) -> Vec<u8> {
    let address = server.endpoint().address.unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = vec![0; expected];
    stream.read_exact(&mut answer).unwrap();
    answer
}

fn stopped(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn mosquitto_starts_with_both_profiles_and_stops() {
    if !installed("mosquitto") {
        return;
    }
    let catalogue = Catalogue::load(None).unwrap();
    for word in ["mosquitto@defaults", "mosquitto@no-limits"] {
        let folder = Folder::new(&word.replace('@', "-"));
        let core = CoreSet::of([CoreSet::allowed().unwrap().first()]);
        let choice = catalogue.choose(word).unwrap();
        let mut server =
            ManagedServer::start(choice, Some("mqtt"), &folder.0, Some(&core)).unwrap();
        assert!(server.title().starts_with("Mosquitto "), "{}", server.title());
        assert_eq!(server.endpoint().scheme, "mqtt");
        // MQTT 3.1.1, section 3.1: CONNECT with client id "a"; section 3.2: CONNACK, accepted.
        let connect = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01a";
        assert_eq!(talk(&server, connect, 4), [0x20, 2, 0, 0]);
        assert_eq!(server.ended(), None);
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{core}\n")), "{status}");
        let pid = server.pid();
        server.stop();
        assert!(stopped(pid));
        assert!(folder.0.join("mosquitto.conf").exists());
    }
}

#[test]
fn nginx_answers_posts_and_stops() {
    if !installed("nginx") {
        return;
    }
    let catalogue = Catalogue::load(None).unwrap();
    for word in ["nginx@no-limits", "nginx@defaults"] {
        let folder = Folder::new(&word.replace('@', "-"));
        let choice = catalogue.choose(word).unwrap();
        let server = ManagedServer::start(choice, None, &folder.0, None).unwrap();
        let request = b"POST /readings HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
        let answer = talk(&server, &request.repeat(3), 15);
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        let pid = server.pid();
        server.stop();
        assert!(stopped(pid));
    }
}

#[test]
fn a_broken_configuration_is_told_with_the_log() {
    if !installed("mosquitto") {
        return;
    }
    let folder = Folder::new("mosquitto-broken");
    let text = include_str!("../../../targets/mosquitto.toml")
        .replace("persistence false", "no_such_option 1");
    let target = weigh_testbed::target::Target::parse("mosquitto.toml", &text).unwrap();
    let choice = weigh_testbed::catalogue::Choice { target: &target, profile: &target.profiles[0] };
    let error = ManagedServer::start(choice, None, &folder.0, None).unwrap_err().to_string();
    assert!(error.contains("before it was ready") && error.contains("no_such_option"), "{error}");
}
