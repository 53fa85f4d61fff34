//! What the journal of a run cost: its events are written once more, as they were, and the
//! processor time that this takes is held against that of the generator.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use rustix::time::{ClockId, clock_gettime};
use weigh_model::event::Event;
use weigh_report::{Reader, Writer};

/// Options of `cargo xtask journal`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Journals of runs; the copies are written beside them.
    #[arg(required = true)]
    journals: Vec<PathBuf>,
}

/// Prints what the journals cost.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    options.journals.iter().try_for_each(|journal| weigh(journal))
}

fn weigh(path: &Path) -> anyhow::Result<()> {
    let events = Reader::open(path)?.read()?.events;
    let trials: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::TrialFinished(trial) => Some(trial),
            _ => None,
        })
        .collect();
    ensure!(!trials.is_empty(), "{}: there is no finished trial", path.display());
    let copy = path.with_extension("copy");
    let _ = std::fs::remove_file(&copy);
    let mut writer = Writer::create(&copy)?;
    let (wall, processor) = (Instant::now(), processor_s());
    let written = events.iter().try_for_each(|event| writer.write(event));
    let (processor, wall) = (processor_s() - processor, wall.elapsed().as_secs_f64());
    std::fs::remove_file(&copy).with_context(|| format!("removing {}", copy.display()))?;
    written?;
    // Of the measured window alone: warm-up and draining cost the generator more.
    let generator: f64 = trials
        .iter()
        .filter_map(|trial| {
            let each = trial.metrics.get("generator_cpu_us_per_message")?;
            Some(each * trial.ledger.messages as f64 / 1e6)
        })
        .sum();
    let bytes = std::fs::metadata(path)?.len();
    let number = trials.len() as f64;
    println!(
        "{}: {} trials, {:.1} lines and {:.1} KiB each; {:.0} us of processor time and {:.2} ms \
         in all for each, {:.3} % of the generator's {:.3} s",
        path.display(),
        trials.len(),
        events.len() as f64 / number,
        bytes as f64 / 1024.0 / number,
        1e6 * processor / number,
        1e3 * wall / number,
        100.0 * processor / generator,
        generator
    );
    Ok(())
}

/// Processor time of this thread, seconds.
fn processor_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
