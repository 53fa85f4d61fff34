//! The record of single messages while a trial runs: a thread that puts together what the shards
//! note, and writes it to the trial's file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use weigh_engine::accounts::Accounts;
use weigh_engine::job::Job;
use weigh_engine::message_log::{Heard, MessageLog};
use weigh_engine::message_rows::MessageRows;
use weigh_model::message::MessageRow;
use weigh_model::{Doubt, Nanos};
use weigh_observe::cpu::own_thread_ns;
use weigh_report::RecordError;
use weigh_report::exports::{MessageHeader, MessageWriter};

use crate::exit::{Exit, Stop};
use crate::probes::departures::Departures;

/// A record that is being written.
pub struct MessageRecording {
    thread: JoinHandle<Written>,
    job: Arc<Job>,
}

/// What the thread hands back.
struct Written {
    rows: MessageRows,
    /// Nothing more is written after the first error; what the shards note is still taken, so
    /// that a full disk does not stop the trial. `None` where nobody asked for the file.
    writer: Option<Result<MessageWriter, RecordError>>,
    departures: Option<Departures>,
    cpu_ns: u64,
}

/// What a record is kept for, and who hears what it is made of.
pub struct Noted {
    /// The file of single messages, where that is asked for.
    file: Option<PathBuf>,
    /// When messages left, for the stages behind the entry of a pipeline.
    departures: Option<Departures>,
    heard: Receiver<Heard>,
}

impl Noted {
    /// The log that shards write to, and who hears it; nobody where nothing is wanted.
    pub fn open(
        file: Option<&Path>,
        departures: Option<Departures>,
    ) -> (Option<MessageLog>, Option<Noted>) {
        if file.is_none() && departures.is_none() {
            return (None, None);
        }
        let (log, heard) = MessageLog::new();
        (Some(log), Some(Noted { file: file.map(Path::to_owned), departures, heard }))
    }
}

/// What a record came to.
#[derive(Default)]
pub struct Recorded {
    /// What makes it doubtful, or the trial through it.
    pub doubts: Vec<Doubt>,
    /// Why there is no file.
    pub unwritten: Option<RecordError>,
    /// Processor time that its thread used while the trial ran, nanoseconds.
    pub cpu_ns: u64,
    /// Why it is not known when messages left.
    undeparted: Option<std::io::Error>,
}

impl Recorded {
    /// Whether it is known when messages left, where that was wanted.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self) -> Result<(), Stop> {
        let Some(error) = &self.undeparted else { return Ok(()) };
        let text = format!("the departures of messages could not be written: {error}");
        Err(Stop::new(Exit::Record, text))
    }
}

impl MessageRecording {
    /// Starts the thread that hears what the shards of `job` note. The trial's clock stood at 0 so
    /// many nanoseconds after 1970-01-01.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(
        noted: Noted,
        epoch_unix_ns: u64,
        job: &Arc<Job>,
    ) -> std::io::Result<MessageRecording> {
        let job = Arc::clone(job);
        let Noted { file: path, departures, heard } = noted;
        let header = MessageHeader {
            trial: job.trial.id.clone(),
            epoch_unix_ns,
            timeout_ns: job.load().timeout.0,
        };
        let own = Arc::clone(&job);
        let thread =
            std::thread::Builder::new().name("weigh-messages".to_owned()).spawn(move || {
                let rows = MessageRows::new(own.load(), own.dial.confirms);
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
                    if let Some(log) = &own.messages {
                        log.give_back(events);
                    }
                }
                written.cpu_ns = own_thread_ns();
                written
            })?;
        Ok(MessageRecording { thread, job })
    }

    /// All shards are done, and `accounts` are their books: writes what never arrived and ends
    /// the file. A trial without books has no file. What single messages came to is put into the
    /// books where departures were wanted.
    pub fn finish(self, accounts: Option<&mut Accounts>) -> Recorded {
        let log = self.job.messages.as_ref();
        log.iter().for_each(|log| log.end());
        let waited = log.map_or(Nanos(0), MessageLog::waited);
        let mut doubts = Vec::new();
        if waited > Nanos(0) {
            doubts.push(Doubt::MessagesHeldUp(waited));
        }
        let Ok(Written { rows, mut writer, departures, cpu_ns }) = self.thread.join() else {
            // The panic has been printed; there is no file.
            return Recorded { doubts, ..Recorded::default() };
        };
        let Some(accounts) = accounts else {
            writer.into_iter().flatten().for_each(MessageWriter::abandon);
            return Recorded::default();
        };
        if let Some(writer) = &mut writer {
            let unsettled = rows.finish(accounts, &mut |row| push(writer, row));
            if unsettled > 0 {
                doubts.push(Doubt::MessagesUnsettled(unsettled));
            }
        }
        let unwritten = writer.and_then(|writer| writer.and_then(MessageWriter::close).err());
        let finish = |departures: Departures| departures.finish(accounts).err();
        let undeparted = departures.and_then(finish);
        Recorded { doubts, unwritten, cpu_ns, undeparted }
    }
}

fn push(writer: &mut Result<MessageWriter, RecordError>, row: &MessageRow) {
    if let Ok(open) = writer
        && let Err(error) = open.push(row)
    {
        *writer = Err(error);
    }
}
