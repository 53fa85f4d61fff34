//! Prometheus reads the metrics of a stored run, and is asked for a value that is known. Debian has
//! it as `prometheus`. Without it the test says SKIPPED, except with CI=true.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{request, served, stored};

struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// True if Prometheus is installed.
fn has_prometheus() -> bool {
    let version = Command::new("prometheus").arg("--version").output();
    let is_there = version.is_ok_and(|output| output.status.success());
    if !is_there {
        let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "prometheus is not installed: apt-get install prometheus");
        println!("SKIPPED: prometheus is not installed");
    }
    is_there
}

#[test]
fn prometheus_reads_what_the_run_counted() {
    if !has_prometheus() {
        return;
    }
    let (watched, _) = served(&stored(), "127.0.0.1:0");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("prometheus.yml");
    let text = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: weigh\n    \
         static_configs:\n      - targets: ['{watched}']\n"
    );
    fs::write(&config, text).unwrap();
    let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address={own}"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _prometheus = Prometheus(child);
    // 12 trials of 60 messages, all delivered; the query is `{term="..."}`.
    for (query, expected) in [
        ("up", 1.0),
        ("weigh_watch_up", 1.0),
        ("weigh_ledger_messages_total%7Bterm%3D%22sent%22%7D", 720.0),
        ("weigh_ledger_messages_total%7Bterm%3D%22lost%22%7D", 0.0),
        ("weigh_run_trials%7Boutcome%3D%22done%22%7D", 12.0),
    ] {
        assert_eq!(asked(own, query), expected, "{query}");
    }
}

/// The value of a query with one result, once there is one.
fn asked(prometheus: SocketAddr, query: &str) -> f64 {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "{query}: no value after a minute");
        std::thread::sleep(Duration::from_millis(200));
        if std::net::TcpStream::connect(prometheus).is_err() {
            continue;
        }
        let answer = request(prometheus, &format!("/api/v1/query?query={query}"), &[]);
        if answer.status != 200 {
            continue;
        }
        let answer: Value = serde_json::from_str(&answer.text()).unwrap();
        let result = answer["data"]["result"].as_array().unwrap();
        if let [one] = &result[..] {
            return one["value"][1].as_str().unwrap().parse().unwrap();
        }
    }
}
