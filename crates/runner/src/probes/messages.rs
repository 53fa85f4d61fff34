//! Records single messages while a trial runs: a thread merges the notes of the shards and writes
//! them to the trial's file.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use weigh_engine::accounts::Accounts;
use weigh_engine::message_log::{Heard, MessageLog};
use weigh_engine::message_rows::MessageRows;
use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;
use weigh_model::message::MessageRow;
use weigh_model::{Nanos, Warning};
use weigh_observe::cpu::own_thread_ns;
use weigh_report::RecordError;
use weigh_report::exports::{MessageHeader, MessageWriter};

use crate::exit::{Exit, Stop};
use crate::probe::Probe;
use crate::probes::send_times::SendTimes;
use crate::trial::context::TrialContext;

/// Reads the shards' notes on single messages.
#[derive(Default)]
pub struct Messages {
    recording: Option<Recording>,
    recorded: Recorded,
}

impl Probe for Messages {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let (file, departures) = (&trial.options.messages, trial.client.departures.take());
        if file.is_none() && departures.is_none() {
            return Ok(());
        }
        let (log, heard) = MessageLog::new();
        let log = Arc::new(log);
        trial.client.log = Some(Arc::clone(&log));
        self.recording = Some(Recording::start(trial, departures, log, heard)?);
        Ok(())
    }

    fn end(&mut self, _trial: &mut TrialContext<'_>, outcome: Option<&mut Outcome>) {
        let accounts = outcome.map(|outcome| &mut outcome.shards.accounts);
        let finish = |recording: Recording| recording.finish(accounts);
        self.recorded = self.recording.take().map(finish).unwrap_or_default();
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        trial.found.aside_cpu_ns += self.recorded.cpu_ns;
        trial.found.unwritten = self.recorded.unwritten.take();
        let Some(error) = &self.recorded.undeparted else { return Ok(()) };
        let text = format!("the send times of messages could not be written: {error}");
        Err(Stop::new(Exit::Record, text))
    }

    fn amend(&mut self, _trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        finished.warnings.extend(self.recorded.warnings.iter().map(Warning::record));
    }
}

/// A recording in progress.
struct Recording {
    thread: JoinHandle<Written>,
    log: Arc<MessageLog>,
}

/// Result of the thread.
struct Written {
    rows: MessageRows,
    /// Nothing is written after the first error; notes of the shards are still read, so that a full
    /// disk does not stop the trial. `None` if no file is asked for.
    writer: Option<Result<MessageWriter, RecordError>>,
    departures: Option<SendTimes>,
    cpu_ns: u64,
}

/// Result of a recording.
#[derive(Default)]
struct Recorded {
    /// Warnings on the record, or on the trial because of it.
    warnings: Vec<Warning>,
    /// Reason for which there is no file.
    unwritten: Option<RecordError>,
    /// CPU time of its thread during the trial, nanoseconds.
    cpu_ns: u64,
    /// Reason for which send times are unknown.
    undeparted: Option<std::io::Error>,
}

impl Recording {
    /// Starts the thread that reads the shards' notes. The file is kept if one is asked for.
    fn start(
        trial: &TrialContext<'_>,
        departures: Option<SendTimes>,
        log: Arc<MessageLog>,
        heard: Receiver<Heard>,
    ) -> std::io::Result<Recording> {
        let header = MessageHeader {
            trial: trial.trial.id.clone(),
            epoch_unix_ns: trial.clock.unix_ns,
            timeout_ns: trial.load().timeout.0,
        };
        let (load, confirms) = (trial.load().clone(), trial.confirms());
        let (path, own) = (trial.options.messages.clone(), Arc::clone(&log));
        let thread =
            std::thread::Builder::new().name("weigh-messages".to_owned()).spawn(move || {
                let rows = MessageRows::new(&load, confirms);
                let writer = path.map(|path| MessageWriter::create(&path, &header));
                let mut written = Written { rows, writer, departures, cpu_ns: 0 };
                while let Ok(Heard::Events(events)) = heard.recv() {
                    for event in &events {
                        let Written { rows, writer, departures, .. } = &mut written;
                        if let Some(writer) = writer {
                            rows.hear(*event, &mut |row| push(writer, row));
                        }
                        departures.iter_mut().for_each(|departures| departures.hear(event));
                    }
                    own.give_back(events);
                }
                written.cpu_ns = own_thread_ns();
                written
            })?;
        Ok(Recording { thread, log })
    }

    /// Finishes when all shards are done with `accounts`: writes messages that never arrived, and
    /// ends the file. A trial without accounts has no file. If send times are needed, the facts of
    /// single messages are added to the accounts.
    fn finish(self, accounts: Option<&mut Accounts>) -> Recorded {
        self.log.end();
        let waited = self.log.waited();
        let mut warnings = Vec::new();
        if waited > Nanos(0) {
            warnings.push(Warning::MessagesHeldUp(waited));
        }
        let Ok(Written { rows, mut writer, departures, cpu_ns }) = self.thread.join() else {
            // The panic has been printed; there is no file.
            return Recorded { warnings, ..Recorded::default() };
        };
        let Some(accounts) = accounts else {
            writer.into_iter().flatten().for_each(MessageWriter::abandon);
            return Recorded::default();
        };
        if let Some(writer) = &mut writer {
            let unsettled = rows.finish(accounts, &mut |row| push(writer, row));
            if unsettled > 0 {
                warnings.push(Warning::MessagesUnsettled(unsettled));
            }
        }
        let unwritten = writer.and_then(|writer| writer.and_then(MessageWriter::close).err());
        let finish = |departures: SendTimes| departures.finish(accounts).err();
        let undeparted = departures.and_then(finish);
        Recorded { warnings, unwritten, cpu_ns, undeparted }
    }
}

fn push(writer: &mut Result<MessageWriter, RecordError>, row: &MessageRow) {
    if let Ok(open) = writer
        && let Err(error) = open.push(row)
    {
        *writer = Err(error);
    }
}
