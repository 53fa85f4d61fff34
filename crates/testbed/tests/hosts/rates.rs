//! What a link of 10 Mbit/s carries, as iperf3 sees it.

use std::process::Stdio;
use std::time::Duration;

use weigh_testbed::hosts::{Carrier, NamespaceRights, Scene};

use super::{PATIENCE, READY_PAUSE, path, skip, spec};

/// Within 1 % of the rate, less 66 bytes of headers in each frame of 1,514. Nothing may be faster;
/// slower it is on a machine where sender, receiver or forwarder did not get to run: it is tried
/// again then, and without an undisturbed run there is no verdict.
pub fn iperf3_agrees(ground: NamespaceRights) {
    if !std::process::Command::new("iperf3").arg("-v").output().is_ok_and(|o| o.status.success()) {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "iperf3 is not installed, and CI=true"
        );
        skip("iperf3 is not installed: apt-get install iperf3");
    }
    let link = path("up = { rate = \"10Mbit/s\", queue = \"64KB\" }");
    let spec = spec(Carrier::Best, &[("client", Some(link)), ("server", None)]);
    let scene = Scene::set(ground, &spec).unwrap();
    scene.begin(1);
    for attempt in 1..=4 {
        let found = match received_per_second(&scene) {
            Ok(found) => found,
            Err(told) => {
                assert!(attempt < 4 || is_busy(), "iperf3 did not run, undisturbed: {told}");
                continue;
            }
        };
        let percent = (found / EXPECTED - 1.0) * 100.0;
        println!("iperf3, run {attempt}: {:.4} Mbit/s, {percent:+.2} %", found / 1e6);
        assert!(percent <= 1.0, "faster than the link");
        if percent >= -1.0 {
            return;
        }
        let counts = scene.path_counts().unwrap();
        assert!(counts.is_bent() || attempt < 4 || is_busy(), "{percent:+.2} %, undisturbed");
    }
    println!("DISTURBED: the machine let nobody run in time, so there is no verdict");
}

/// Body bits per second that arrived, by iperf3's own account without its first second; or what
/// it said instead.
fn received_per_second(scene: &Scene) -> Result<f64, serde_json::Value> {
    let (client, server) = (scene.host("client").unwrap(), scene.host("server").unwrap());
    let serve = || {
        let mut serving = server.command("iperf3");
        serving.args(["-s", "-p", "5201"]).stdout(Stdio::null()).stderr(Stdio::null());
        serving.spawn().unwrap()
    };
    let mut serving = serve();
    let address = server.address().to_string();
    let words = ["-J", "-O", "1", "-t", "4", "-p", "5201", "-c", &address];
    let deadline = std::time::Instant::now() + PATIENCE;
    let output = loop {
        // The server has not said when it listens.
        let output = client.command("iperf3").args(words).output().unwrap();
        if output.status.success() || std::time::Instant::now() > deadline {
            break output;
        }
        std::thread::sleep(READY_PAUSE);
        // A client that leaves early makes some versions of the server end too.
        if serving.try_wait().unwrap().is_some() {
            serving = serve();
        }
    };
    let _ = serving.kill();
    serving.wait().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &told["end"]["sum_received"]["bits_per_second"];
    found.as_f64().ok_or(told)
}

/// Whether others have more work than there are cores.
fn is_busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::sleep(Duration::from_millis(100));
    load > cores as f64
}

/// 1,448 bytes of body in 1,500 of IP and 14 of Ethernet (RFC 894, RFC 791, RFC 9293 with the
/// time stamps of RFC 7323).
const EXPECTED: f64 = 10e6 * 1448.0 / 1514.0;
