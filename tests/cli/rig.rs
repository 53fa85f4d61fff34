//! A folder of its own for every test, the program run in it as a user would, and a way to see
//! that none of its processes is left.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use weigh_testbed::hosts::NamespaceRights;

/// A fresh folder in which the program is run; removed at the end.
pub struct Place {
    folder: PathBuf,
    mark: String,
}

/// How a run of the program ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new(name: &str) -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("weigh-cli-{}-{number}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(&mark);
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Place { folder, mark }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What marks the processes of this place in their environment.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// The program with these arguments, in this folder, with an environment that tells its
    /// processes from those of other tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weigh"));
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command.env(MARK, &self.mark).env("LC_ALL", "C.UTF-8").env_remove("WEIGH_PASSWORD");
        // Wide enough that a table is one part and a line one line.
        command.env("COLUMNS", "1000");
        command
    }

    /// Another program with these arguments, in this folder, whose processes are marked too.
    pub fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(arguments).current_dir(&self.folder).env(MARK, &self.mark);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn weigh(&self, arguments: &[&str]) -> Ended {
        Ended::from(self.command(arguments).output().expect("the program starts"))
    }

    /// Runs a small `compare`: these arguments, then a load that takes a moment.
    pub fn compare(&self, arguments: &[&str]) -> Ended {
        let mut all = vec!["compare"];
        all.extend(arguments);
        all.extend(["--reps", "1"]);
        let given = |flags: &[&str]| arguments.iter().any(|word| flags.contains(word));
        if !given(&["-n", "-d"]) {
            all.extend(["-d", "200ms"]);
        }
        if !given(&["--warmup"]) {
            all.extend(["--warmup", "0s"]);
        }
        if !given(&["-c", "-x"]) {
            all.extend(["-c", "4"]);
        }
        self.weigh(&all)
    }

    /// The same in namespaces of its own (options of unshare(1)), after this line of shell: there a
    /// test may forbid what an administrator may. `None`, and said, where that cannot be done.
    pub fn weigh_after(
        &self,
        test: &str,
        namespaces: &[&str],
        line: &str,
        words: &str,
    ) -> Option<Ended> {
        let script = format!("exec '{}' {words}", env!("CARGO_BIN_EXE_weigh"));
        self.script_after(test, namespaces, line, &script)
    }

    /// Lines of shell in such namespaces, after this one.
    pub fn script_after(
        &self,
        test: &str,
        namespaces: &[&str],
        line: &str,
        script: &str,
    ) -> Option<Ended> {
        let apart = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(namespaces).args(["sh", "-c", script]).current_dir(&self.folder);
            command.output()
        };
        if !apart(line).is_ok_and(|output| output.status.success()) {
            skip(&format!("{test}: there is no unshare(1), or it may not"));
            return None;
        }
        Some(Ended::from(apart(&format!("{line} && {script}")).expect("unshare starts")))
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file of the test");
    }

    /// The folders below `runs`, by name.
    pub fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder.join("runs")) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut runs: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
        runs.sort();
        runs
    }

    /// The only run.
    pub fn run(&self) -> PathBuf {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }

    /// Every file in the folder of the only run.
    pub fn files_of_the_run(&self) -> Vec<PathBuf> {
        let (mut folders, mut files) = (vec![self.run()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder of the run").flatten() {
                let path = entry.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files
    }

    /// Fails if a file of the only run holds this text.
    #[track_caller]
    pub fn keeps_secret(&self, text: &str) {
        for path in self.files_of_the_run() {
            let all = std::fs::read(&path).expect("a file");
            let holds_it = all.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!holds_it, "{text} in {}", path.display());
        }
    }

    pub fn summary(&self) -> Value {
        let text = std::fs::read_to_string(self.run().join("summary.json")).expect("a summary");
        serde_json::from_str(&text).expect("summary.json is JSON")
    }

    pub fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.run().join("journal.jsonl")).expect("a journal");
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// The events of this kind in the journal.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        of_kind(&self.journal(), kind)
    }

    /// The events of this kind that a run in progress has written whole: none while its folder or
    /// its journal is not there yet.
    pub fn of_kind_so_far(&self, kind: &str) -> Vec<Value> {
        let journal = self.runs().pop().map(|run| run.join("journal.jsonl"));
        let text = journal.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let events = whole.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
        of_kind(&events.collect::<Vec<_>>(), kind)
    }

    /// The captured packets of a trial, by its `trial_finished`.
    pub fn pcap(&self, finished: &Value) -> PathBuf {
        let trial = finished["trial"].as_str().expect("an id");
        self.run().join("pcap").join(format!("{trial}.pcapng"))
    }

    /// Fails if a process that was started here still runs.
    pub fn nobody_is_left(&self) {
        let asked = Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(asked.elapsed() < PATIENCE, "left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Processes that were started here and run, with their command lines.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("{MARK}={}", self.mark);
        let entries = std::fs::read_dir("/proc").expect("/proc");
        let pids = entries.flatten().filter_map(|e| e.file_name().to_string_lossy().parse().ok());
        let ours = pids.filter(|pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        });
        ours.map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    /// The first process below the program: its target. Waits until there is one.
    pub fn target(&self, program: &Child) -> u32 {
        let asked = Instant::now();
        loop {
            let found = self.processes().into_iter().find(|(pid, line)| {
                *pid != program.id() && !line.contains(" compare ") && !line.is_empty()
            });
            if let Some((pid, _)) = found {
                return pid;
            }
            assert!(asked.elapsed() < PATIENCE, "no target was started");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl From<Output> for Ended {
    /// Fails if the program refused something and printed no fix (STYLE.md, rule 3).
    fn from(output: Output) -> Ended {
        let code = output.status.code();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_refusal = matches!(code, Some(2..=5));
        // The help of a command without its arguments is a fix too.
        let has_fix = stderr.contains("help: ") || stderr.contains("\nUsage: ");
        // So is a finding of the doctor, which prints its fix in the list.
        let has_fix = has_fix || stdout.contains(" -> ");
        assert!(!is_refusal || has_fix, "code {code:?} without a fix:\n{stdout}\n{stderr}");
        Ended { code, stdout, stderr }
    }
}

impl Ended {
    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn with(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless the message on stderr holds all of these.
    #[track_caller]
    pub fn saying(self, parts: &[&str]) -> Ended {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in:\n{}", self.stderr);
        }
        self
    }

    /// Standard output as the one JSON document it must be.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("stdout is one JSON document")
    }
}

/// Sends a signal with the shell's own `kill`.
pub fn signal(name: &str, pid: u32) {
    let line = format!("kill -{name} {pid}");
    let status = Command::new("sh").args(["-c", &line]).status().expect("a shell");
    assert!(status.success(), "{line}");
}

/// Waits for the end of the program.
pub fn wait(program: Child) -> Ended {
    Ended::from(program.wait_with_output().expect("the program ends"))
}

/// Waits until `holds`.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let asked = Instant::now();
    while !holds() {
        assert!(asked.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Tries up to three times what real time decides: beside other tests, one pause of the machine can
/// take a figure out of its bounds. The last attempt's failure is the test's. For what must never
/// happen it is no help: assert that in every attempt.
pub fn in_one_of_three(attempt: impl Fn()) {
    for number in 1..3 {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(&attempt)) {
            Ok(()) => return,
            Err(_) => println!("DISTURBED: attempt {number} of 3 failed, see above"),
        }
    }
    attempt();
}

/// True if the program is there; in continuous integration it must be.
#[track_caller]
pub fn has(program: &str) -> bool {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    let is_there = folders.split(':').any(|folder| Path::new(folder).join(program).is_file());
    if !is_there {
        skip(&format!("{program} is not installed"));
    }
    is_there
}

/// Says why a test does nothing; in continuous integration that is a failure.
#[track_caller]
pub fn skip(why: &str) {
    let must = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!must, "{why}, and CI=true");
    eprintln!("SKIPPED: {why}");
}

/// False, and said, where there are no hosts.
pub fn has_hosts(test: &str) -> bool {
    let looked = NamespaceRights::look();
    if let Err(error) = &looked {
        skip(&format!("{test}: {error}"));
    }
    looked.is_ok()
}

pub fn cells(summary: &Value) -> &Vec<Value> {
    summary["cells"].as_array().expect("cells")
}

/// The events of this kind.
pub fn of_kind(journal: &[Value], kind: &str) -> Vec<Value> {
    journal.iter().filter(|event| event["event"] == kind).cloned().collect()
}

pub fn figure(cell: &Value, metric: &str) -> f64 {
    let value = &cell["metrics"][metric]["value"];
    value.as_f64().unwrap_or_else(|| panic!("no {metric} in {cell}"))
}

/// Every case of the only run delivered this number of messages.
#[track_caller]
pub fn ledgers_are_whole(place: &Place, messages: u64) {
    for cell in cells(&place.summary()) {
        let (name, ledger) = (&cell["name"], &cell["ledger"]);
        assert_eq!(ledger["delivered"], messages, "{name}: {ledger}");
    }
}

pub fn warnings(cell: &Value) -> Vec<&str> {
    let warnings = cell["doubts"].as_array().expect("doubts");
    warnings.iter().filter_map(|warning| warning["code"].as_str()).collect()
}

const MARK: &str = "WEIGH_CLI_TEST";

/// How long something that must happen may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
