//! `weigh watch` and `--live` in a real terminal (tmux), and what the run's folder has meanwhile.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weigh_model::live::{LIVE, Second};

use crate::rig::{PATIENCE, Place, has, signal, until, wait};

/// A terminal of its own in which a line of shell runs.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs `words` of the program at this size, in the folder of `place`.
    fn run(place: &Place, words: &str, (columns, rows): (u16, u16)) -> Terminal {
        let terminal = Terminal { socket: place.mark().to_owned() };
        let line = format!(
            "cd '{}' && NO_COLOR=1 LC_ALL=C.UTF-8 '{}' {words}; echo ended with $?; sleep 60",
            place.folder().display(),
            env!("CARGO_BIN_EXE_weigh")
        );
        let size = ["-x", &columns.to_string(), "-y", &rows.to_string()].map(str::to_owned);
        let session = ["new-session", "-d"].map(str::to_owned).into_iter().chain(size);
        let words: Vec<String> = session.chain([line]).collect();
        terminal.tmux(&words.iter().map(String::as_str).collect::<Vec<_>>());
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket, "-f", "/dev/null"]).args(words).stdin(Stdio::null());
        let output = tmux.env_remove("TMUX").output().expect("tmux starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    #[track_caller]
    fn shows(&self, part: &str) {
        self.shows_all(&[part]);
    }

    /// Waits until one screen has all `parts`: a terminal can be read while it is half painted.
    #[track_caller]
    fn shows_all(&self, parts: &[&str]) {
        let mut screen = String::new();
        let asked = Instant::now();
        while !parts.iter().all(|part| screen.contains(part)) {
            assert!(asked.elapsed() < PATIENCE, "{parts:?} is not on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
            screen = self.screen();
        }
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn stored() -> Place {
    let place = Place::new("watching");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored/compare");
    let run = fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
    let to = place.folder().join("runs").join(run.file_name().unwrap());
    fs::create_dir_all(&to).unwrap();
    fs::copy(run.join("journal.jsonl"), to.join("journal.jsonl")).unwrap();
    place
}

#[test]
fn a_finished_run_is_shown_and_keys_move_in_it() {
    if !has("tmux") {
        return;
    }
    let place = stored();
    let terminal = Terminal::run(&place, "watch", (80, 24));
    terminal.shows_all(&["ended: done", "throughput", "q close"]);
    terminal.press("Home");
    terminal.shows(">   1 ");
    terminal.press("?");
    terminal.shows("choose the next or the previous percentile");
    terminal.press("?");
    terminal.press("p");
    terminal.shows("p p99.9");
    terminal.tmux(&["resize-window", "-x", "200", "-y", "60"]);
    terminal.shows("p p99.9");
    terminal.press("q");
    terminal.shows("ended with 0");
    let left: Vec<_> = fs::read_dir(place.run()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "the watcher writes nothing into the run: {left:?}");
}

/// The view in place covers the run, is closed with it, and the table follows.
#[test]
fn a_run_with_a_live_view_ends_with_its_table() {
    if !has("tmux") {
        return;
    }
    let place = Place::new("in-place");
    let words = "compare tcp -d 4s --warmup 0s -R 500/s -c 4 --reps 1 --live";
    let terminal = Terminal::run(&place, words, (80, 24));
    terminal.shows_all(&["offered 500/s", "trial 1 of 1", "confirmed"]);
    until("a second with counts", || {
        let seconds = Second::newest_last(&fs::read(place.run().join(LIVE)).unwrap_or_default());
        seconds.iter().any(|own| own.counts.as_ref().is_some_and(|counts| counts.sent > 0))
    });
    terminal.shows("ended with 0");
    assert!(!place.run().join(LIVE).exists(), "the live file ends with the run");
    let all = terminal.tmux(&["capture-pane", "-p", "-S", "-200"]);
    assert!(all.contains("run: runs/"), "{all}");
    place.nobody_is_left();
}

/// Each of two agents sends 250 messages a second: the view has the sum, while the run lasts.
#[cfg(feature = "fleet")]
#[test]
fn a_fleet_is_watched_as_one() {
    let place = Place::new("watch-fleet");
    let Some((bus, _agents)) = crate::fleet::fleet(&place, 2) else { return };
    if !has("tmux") {
        return;
    }
    let words = ["compare", "tcp", "--fleet", &bus.url, "--agents", "2", "--reps", "1"];
    let load = ["-d", "60s", "--warmup", "0s", "-R", "500/s", "-c", "4"];
    let child = place.spawn(&[&words[..], &load].concat());
    until("a second of both agents", || {
        let runs = place.runs();
        let live = runs.first().and_then(|run| fs::read(run.join(LIVE)).ok()).unwrap_or_default();
        let seconds = Second::newest_last(&live);
        seconds.iter().any(|own| own.counts.as_ref().is_some_and(|counts| counts.sent > 300))
    });
    let terminal = Terminal::run(&place, "watch", (80, 24));
    terminal.shows("offered 500/s");
    signal("INT", child.id());
    wait(child).with(130);
    terminal.shows("ended: interrupted");
}

/// Ctrl-C in the view ends the run early, as without a view; `q` does not.
#[test]
fn keys_in_a_live_view_end_the_run_or_only_the_view() {
    if !has("tmux") {
        return;
    }
    let place = Place::new("in-place-keys");
    let words = "compare tcp -d 60s --warmup 0s -R 500/s -c 4 --reps 1 --live";
    let terminal = Terminal::run(&place, words, (80, 24));
    terminal.shows("offered 500/s");
    terminal.press("C-c");
    terminal.shows("ended with 130");
    drop(terminal);
    let place = Place::new("in-place-quit");
    let words = "compare tcp -d 5s --warmup 0s -R 500/s -c 4 --reps 1 --live";
    let terminal = Terminal::run(&place, words, (80, 24));
    terminal.shows("offered 500/s");
    terminal.press("q");
    terminal.shows("sent/s");
    terminal.shows("ended with 0");
    place.nobody_is_left();
}

#[test]
fn a_killed_run_is_shown_as_far_as_it_came() {
    if !has("tmux") {
        return;
    }
    let place = Place::new("watch-killed");
    let run = ["compare", "tcp", "-d", "60s", "--warmup", "0s", "-R", "500/s", "--reps", "1"];
    let child = place.spawn(&run);
    let has_seconds = || {
        let runs = place.runs();
        let live = runs.first().and_then(|run| fs::read(run.join(LIVE)).ok());
        live.is_some_and(|live| Second::newest_last(&live).len() > 1)
    };
    until("live seconds", has_seconds);
    let terminal = Terminal::run(&place, "watch", (80, 24));
    terminal.shows("offered 500/s");
    signal("KILL", child.id());
    wait(child);
    terminal.shows_all(&["ended early", "no result"]);
    fs::remove_dir_all(place.run()).unwrap();
    terminal.shows("the run was removed");
    terminal.press("q");
    terminal.shows("ended with 0");
    place.nobody_is_left();
}

/// Of a study the run that was written last is shown, then the next one.
#[test]
fn the_runs_of_a_study_are_shown_one_after_another() {
    if !has("tmux") {
        return;
    }
    let place = stored();
    let run = place.run();
    let study = place.folder().join("runs/2026-11-24T00-00-00-study-two");
    let add = |name: &str| {
        let folder = study.join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = fs::read_to_string(run.join("journal.jsonl")).unwrap();
        let id = run.file_name().unwrap().to_string_lossy().into_owned();
        fs::write(folder.join("journal.jsonl"), text.replace(&id, name)).unwrap();
    };
    fs::create_dir_all(&study).unwrap();
    fs::write(study.join("study.json"), "{}").unwrap();
    place.weigh(&["watch", "2026-11-24T00-00-00-study-two"]).with(2).saying(&["no run yet"]);
    add("first");
    let terminal = Terminal::run(&place, "watch", (80, 24));
    terminal.shows("study-two, run first · ended: done");
    add("second");
    terminal.shows("study-two, run second · ended: done");
    terminal.press("q");
    terminal.shows("ended with 0");
}

/// The run ends and says why, the view stays and shows what was recorded, and room lets the run
/// continue.
#[test]
fn a_disk_that_fills_up_ends_the_run_and_not_its_view() {
    if !has("tmux") {
        return;
    }
    let place = Place::new("full-disk");
    let namespaces = ["--user", "--map-root-user", "--mount"];
    let mounted = "mkdir -p runs && mount -t tmpfs -o size=40m none runs";
    place.write("fill.sh", FILL);
    let weigh = env!("CARGO_BIN_EXE_weigh");
    let script = format!("WEIGH='{weigh}' SOCKET={} exec sh fill.sh", place.mark());
    let ended = place.script_after("full-disk", &namespaces, mounted, &script);
    let Some(ended) = ended else { return };
    let ended = ended.with(0);
    let said = ended.stdout;
    for part in [
        "No space left on device",
        "--runs DIR",
        "the measured results are above",
        "the run ended with 4",
        "ended: failed",
        "no result",
        "the view runs",
        "No message was lost",
    ] {
        assert!(said.contains(part), "{part}:\n{said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// Fills the disk of a run that is watched, and prints what run, view and report show.
const FILL: &str = r#"
view() { NO_COLOR=1 LC_ALL=C.UTF-8 tmux -L "$SOCKET" -f /dev/null "$@" </dev/null; }
waits() { for _ in $(seq 600); do eval "$1" && return; sleep 0.1; done; echo "in vain: $1"; }
"$WEIGH" compare tcp -n 500 -c 2 --warmup 0s --reps 9999 --yes --quiet >out.txt 2>err.txt &
run=$!
waits 'grep -qs trial_finished runs/*/journal.jsonl'
view new-session -d -x 80 -y 24 "'$WEIGH' watch; echo the view ended; sleep 60"
waits 'view capture-pane -p | grep -q delivered'
head -c 60m /dev/zero >runs/filler 2>filled.txt
wait $run
echo "the run ended with $?"
cat err.txt
waits 'view capture-pane -p | grep -q "ended: failed"'
view capture-pane -p
view capture-pane -p | grep -q "the view ended" || echo "the view runs"
view kill-server
rm runs/filler
"$WEIGH" report latest
"#;

#[test]
fn what_cannot_be_watched_is_refused_with_a_fix() {
    let place = stored();
    for (words, parts) in [
        (&["watch"][..], &["not one", "help: type weigh watch --web"][..]),
        (&["watch", "nosuch"], &["there is no such run", "latest"]),
        (&["watch", "--web", "example"], &["not an address with a port", "127.0.0.1:8650"]),
        (&["compare", "tcp", "-n", "10", "--live"], &["not one", "--open"]),
    ] {
        let ended = place.weigh(words).with(2);
        for part in parts {
            assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
        }
    }
}
