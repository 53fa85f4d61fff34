//! The parent's side of `weigh serve`, against scripts that play the child: `/bin/sh serve` runs
//! the file `serve` of the folder it is started in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_testbed::process::Ended;
use weigh_testbed::reference::{ReferenceError, ReferenceServer};

const WITHIN: Duration = Duration::from_secs(20);

struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Script {
        let folder = std::env::temp_dir().join(format!("weigh-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("serve"), text).unwrap();
        Script(folder)
    }

    fn start(&self, within: Duration) -> Result<ReferenceServer, ReferenceError> {
        let arguments = ["mqtt".into(), "--overload".into()];
        ReferenceServer::start(Path::new("/bin/sh"), &arguments, &self.0, None, within)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn it_listens_reports_and_ends_with_its_stdin() {
    let report = r#"{"connections":2,"received":7,"unique":7,"duplicates":0,"corrupt":0,
        "foreign":0,"warmup":0,"forwarded":7,"dropped":{"queue_full":3},"disconnects":0,
        "queued":0,"queued_bytes":0}"#
        .replace('\n', " ");
    let script = Script::new(
        "reference",
        &format!(
            "test \"$1 $2\" = \"mqtt --overload\" || exit 9\n\
             echo listening on mqtt://127.0.0.1:7\n\
             while read line; do test \"$line\" = report && echo '{report}'; done\nexit 3\n"
        ),
    );
    let mut server = script.start(WITHIN).unwrap();
    assert_eq!(server.endpoint().to_string(), "mqtt://127.0.0.1:7");
    assert_eq!(server.endpoint().address, Some("127.0.0.1:7".parse().unwrap()));
    for _ in 0..2 {
        let report = server.report(WITHIN).unwrap();
        assert_eq!((report.received, report.dropped["queue_full"]), (7, 3));
    }
    assert_eq!(server.ended(), None);
    assert_eq!(server.stop(WITHIN), Ended::Status(3));
}

#[test]
fn an_early_end_is_told_with_the_log() {
    let script = Script::new("reference-early", "echo 'port 7 is taken' >&2; exit 3\n");
    let error = script.start(WITHIN).unwrap_err().to_string();
    assert!(error.contains("exit status 3") && error.contains("port 7 is taken"), "{error}");
}

#[test]
fn nonsense_and_silence_are_told_apart() {
    let script = Script::new("reference-nonsense", "echo hello; sleep 1000\n");
    let error = script.start(WITHIN).unwrap_err().to_string();
    assert!(error.contains("found \"hello\""), "{error}");
    let script = Script::new("reference-silent", "echo thinking >&2; sleep 1000\n");
    let error = script.start(Duration::from_millis(300)).unwrap_err().to_string();
    assert!(error.contains("did not answer within 300 ms"), "{error}");
}

#[test]
fn one_that_dies_midway_is_told_with_its_end() {
    let text = "echo listening on tcp://127.0.0.1:7\nread line; echo broken >&2; kill -9 $$\n";
    let script = Script::new("reference-dies", text);
    let mut server = script.start(WITHIN).unwrap();
    let error = server.report(WITHIN).unwrap_err().to_string();
    assert!(error.contains("signal 9") && error.contains("broken"), "{error}");
    assert_eq!(server.stop(WITHIN), Ended::Signal(9));
}

#[test]
fn one_that_ignores_its_stdin_is_asked_by_signal() {
    let text = "trap 'exit 4' TERM\necho listening on tcp://127.0.0.1:7\n\
                while :; do sleep 0.05; done\n";
    let script = Script::new("reference-deaf", text);
    let server = script.start(WITHIN).unwrap();
    assert_eq!(server.stop(Duration::from_millis(300)), Ended::Status(4));
}
