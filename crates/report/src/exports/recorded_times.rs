//! The recorded times of every cell in the formats of HdrHistogram's tools: a percentile table over
//! all repetitions (`.hgrm`, milliseconds) and a log with one line per repetition (`.hlog`).

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::thread;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use weigh_model::event::{Event, TrialFinished};
use weigh_stats::Histogram;
use weigh_stats::histogram::{LogInterval, write_interval_log};

use crate::journal::files::plain_name;
use crate::summary::trials::trials_by_cell;
use crate::summary::{Cell, Summary};

/// The folder of these files in the folder of a run. Earlier versions wrote them next to the
/// journal.
pub(crate) const HISTOGRAMS: &str = "histograms";

/// A file to be written.
pub(crate) struct RecordedFile {
    /// Its name in the folder [`HISTOGRAMS`] of the run.
    pub(crate) name: String,
    /// Its content.
    pub(crate) content: Vec<u8>,
}

/// The files of all cells. A histogram that cannot be read back is left out: its figures are in the
/// metrics. Cells are independent and their histograms large, so they are spread over all cores.
pub(crate) fn files(summary: &Summary, events: &[Event]) -> Vec<RecordedFile> {
    let started = summary.run.started.parse::<Timestamp>().unwrap_or(Timestamp::UNIX_EPOCH);
    let started = SystemTime::from(started);
    let lengths = lengths(events);
    let trials = trials_by_cell(summary, events);
    let cells: Vec<_> = summary.cells.iter().zip(&trials).enumerate().collect();
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = cells.len().div_ceil(cores).max(1);
    let of_cells = |cells: &[(usize, (&Cell, &Vec<&TrialFinished>))]| -> Vec<RecordedFile> {
        let of_cell = |(index, (cell, trials)): &(usize, (&Cell, &Vec<&TrialFinished>))| {
            let stem = format!("{:02}-{}", index + 1, plain_name(&cell.name));
            of_cell(&stem, trials, &lengths, started)
        };
        cells.iter().flat_map(of_cell).collect()
    };
    thread::scope(|scope| {
        let shares: Vec<_> =
            cells.chunks(share).map(|cells| scope.spawn(move || of_cells(cells))).collect();
        let files = shares.into_iter().map(|share| share.join().expect("no file panics"));
        files.flatten().collect()
    })
}

/// The table and the log of every recorded time of one cell.
fn of_cell(
    stem: &str,
    trials: &[&TrialFinished],
    lengths: &BTreeMap<&str, Duration>,
    started: SystemTime,
) -> Vec<RecordedFile> {
    let times: BTreeSet<&String> =
        trials.iter().flat_map(|trial| trial.histograms.keys()).collect();
    let mut files = Vec::new();
    for time in times {
        let stem = format!("{stem}.{}", plain_name(time));
        let recorded = recorded(time, trials, lengths);
        let mut all = Histogram::new();
        recorded.iter().for_each(|(_, histogram)| all.merge(histogram));
        let table = all.percentile_table(NS_PER_MS);
        files.push(RecordedFile { name: format!("{stem}.hgrm"), content: table.into_bytes() });
        let log = log(time, started, &recorded);
        files.push(RecordedFile { name: format!("{stem}.hlog"), content: log });
    }
    files
}

/// The time's histogram in every trial that has it, with the length of the trial.
fn recorded(
    time: &str,
    trials: &[&TrialFinished],
    lengths: &BTreeMap<&str, Duration>,
) -> Vec<(Duration, Histogram)> {
    let read = |trial: &&TrialFinished| {
        let histogram = Histogram::from_base64(trial.histograms.get(time)?).ok()?;
        Some((lengths.get(trial.trial.as_str()).copied().unwrap_or_default(), histogram))
    };
    trials.iter().filter_map(read).collect()
}

/// Length of every trial: the end of its last interval.
fn lengths(events: &[Event]) -> BTreeMap<&str, Duration> {
    let mut lengths = BTreeMap::new();
    for event in events {
        if let Event::Interval(interval) = event {
            let length: &mut Duration = lengths.entry(interval.trial.as_str()).or_default();
            *length = (*length).max(Duration::from_nanos(interval.at_ns));
        }
    }
    lengths
}

fn log(time: &str, started: SystemTime, recorded: &[(Duration, Histogram)]) -> Vec<u8> {
    let mut start = Duration::ZERO;
    let mut intervals = Vec::new();
    let tag = plain_name(time);
    for (length, histogram) in recorded {
        intervals.push(LogInterval { tag: &tag, start, length: *length, histogram });
        start += *length;
    }
    let mut log = Vec::new();
    write_interval_log(&mut log, started, &intervals)
        .expect("memory takes everything, and the tag has no blanks");
    log
}

const NS_PER_MS: f64 = 1e6;
