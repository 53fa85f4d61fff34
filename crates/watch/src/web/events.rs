//! The stream of a run's events. A browser that is slow or has left costs nothing: lines are read
//! only when it takes them, and each connection has its own place in the files.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use weigh_report::journal::is_being_written;

use super::lines::{Lines, SHOWN, append};
use super::shared::Shared;
use super::start;
use crate::follow::{Follower, JournalLine, Lost};
use crate::live::LiveReader;
use crate::process::{Resources, unix_ms};

/// Answers with the events of the run behind the line that the browser had last.
pub async fn stream(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let folder = shared.subject.newest();
    let start = start::asked(last, query.as_deref()).map(|asked| {
        // The browser was away while the study went on.
        let is_other = shared.subject.study().is_some() && asked.run != name_of(&folder);
        if is_other { 0 } else { asked.offset }
    });
    let checked = start.and_then(|from| start::check(&folder, from).map(|()| from));
    let offset = match checked {
        Ok(offset) => offset,
        Err(problem) => return (StatusCode::BAD_REQUEST, problem).into_response(),
    };
    let Ok(permit) = shared.streams.clone().try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "Too many browsers watch this run.")
            .into_response();
    };
    let watcher = Watcher::new(shared, (&folder, offset), permit);
    let parts = stream::unfold(watcher, async |mut watcher| {
        let part = watcher.next().await?;
        Some((Ok::<Bytes, Infallible>(part), watcher))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (kind, Body::from_stream(parts)).into_response()
}

/// One browser's place in the run.
struct Watcher {
    shared: Arc<Shared>,
    /// The folder of the run.
    folder: PathBuf,
    /// `None` once the journal cannot be followed any more.
    follower: Option<Follower>,
    /// Why it could not be opened: reported in the first part.
    lost: Option<Lost>,
    live: LiveReader,
    lines: Lines,
    /// Lines that were read and not sent.
    read: VecDeque<JournalLine>,
    /// Process ID of the generator, from its last second.
    generator: Option<u32>,
    is_end_said: bool,
    is_begun: bool,
    /// True if the last look found the end of the journal: the next waits.
    is_at_end: bool,
    last_sent: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Watcher {
    fn new(
        shared: Arc<Shared>,
        (folder, offset): (&Path, u64),
        permit: OwnedSemaphorePermit,
    ) -> Watcher {
        let (follower, lost) = match Follower::open(folder, offset) {
            Ok(follower) => (Some(follower), None),
            Err(lost) => (None, Some(lost)),
        };
        let lines = Lines::behind(folder, offset);
        let run = shared.subject.study().and(name_of(folder));
        Watcher {
            lines: match run {
                Some(run) => lines.of_run(&run),
                None => lines,
            },
            live: LiveReader::new(folder),
            folder: folder.to_owned(),
            shared,
            follower,
            lost,
            read: VecDeque::new(),
            generator: None,
            is_end_said: false,
            is_begun: false,
            is_at_end: false,
            last_sent: Instant::now(),
            _permit: permit,
        }
    }

    /// The next part of the stream, once there is one; `None` after the run was lost.
    async fn next(&mut self) -> Option<Bytes> {
        let mut part = Vec::new();
        if !self.is_begun {
            self.is_begun = true;
            part.extend_from_slice(BEGINNING);
            self.name_run(&mut part);
        }
        loop {
            if let Some(lost) = self.lost.take() {
                self.follower = None;
                append("lost", None, json!(lost.to_string()).to_string().as_bytes(), &mut part);
            } else if self.follower.is_none() {
                return None;
            } else {
                if self.is_at_end {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                self.look(&mut part);
            }
            if part.is_empty() && self.last_sent.elapsed() >= ALIVE_EVERY {
                part.extend_from_slice(b": alive\n\n");
            }
            if !part.is_empty() {
                self.last_sent = Instant::now();
                // Other connections have their turn while a long journal is read.
                tokio::task::yield_now().await;
                return Some(part.into());
            }
        }
    }

    /// Appends what is new: lines that were read, else the next lines, else what the moment shows.
    fn look(&mut self, part: &mut Vec<u8>) {
        if self.read.is_empty() {
            // Looked up before the lines are read: what is written after that keeps the run going.
            let is_recorded = is_being_written(&self.folder);
            let Some(follower) = &mut self.follower else { return };
            match follower.read() {
                Ok(lines) => self.read = lines.into(),
                Err(lost) => return self.lost = Some(lost),
            }
            self.is_at_end = self.read.is_empty();
            if self.is_at_end {
                self.look_at_moment(is_recorded, part);
            }
        }
        while let Some(line) = self.read.pop_front() {
            self.lines.add(&line, part);
            if part.len() >= PART_BYTES {
                break;
            }
        }
    }

    /// Appends what is not in the journal: seconds, resources, and whether the run is over.
    fn look_at_moment(&mut self, is_recorded: bool, part: &mut Vec<u8>) {
        for second in self.live.read() {
            self.generator = Some(second.pid);
            if let Ok(text) = serde_json::to_vec(&second) {
                append("second", None, &text, part);
            }
        }
        if let (true, Some(pid)) = (is_recorded, self.generator) {
            self.shared.leave_cores_of(pid);
            append("resources", None, resources(pid).as_bytes(), part);
        }
        if !is_recorded && !self.is_end_said {
            append("ended", None, b"{}", part);
        }
        self.is_end_said = !is_recorded;
        if !is_recorded {
            self.go_on(part);
        }
    }

    /// Begins with the next run of the study, if there is one.
    fn go_on(&mut self, part: &mut Vec<u8>) {
        let Some(next) = self.shared.subject.next(&self.folder) else { return };
        let Ok(follower) = Follower::open(&next, 0) else { return };
        self.follower = Some(follower);
        self.live = LiveReader::new(&next);
        self.lines = Lines::default().of_run(&name_of(&next).unwrap_or_default());
        self.folder = next;
        self.generator = None;
        (self.is_end_said, self.is_at_end) = (false, false);
        self.name_run(part);
    }

    /// Appends which run of the study follows; nothing where a single run is watched.
    fn name_run(&self, part: &mut Vec<u8>) {
        if let Some(study) = self.shared.subject.study() {
            let run = json!({ "study": study, "run": name_of(&self.folder) });
            append(SHOWN, None, run.to_string().as_bytes(), part);
        }
    }
}

/// Name of a run within its study.
fn name_of(folder: &Path) -> Option<String> {
    folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn resources(pid: u32) -> String {
    let own = Resources::of(pid);
    let values = json!({
        "open_files": own.open_files, "open_files_max": own.open_files_max,
        "ports_max": own.ports_max, "memory_bytes": own.memory_bytes, "cpu_s": own.cpu_s,
        "unix_ms": unix_ms(),
    });
    values.to_string()
}

/// The first bytes: a browser that lost its connection comes back after two seconds.
const BEGINNING: &[u8] = b"retry: 2000\n\n";

/// Bytes of a part, unless one line is longer.
const PART_BYTES: usize = 1 << 16;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Intermediate servers cut connections on which nothing is sent.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
