//! The record of single messages of one host, as bytes for another process. The host that puts the
//! rows together hears the events of all hosts as if the shards were its own.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{Builder, JoinHandle};

use weigh_model::Nanos;
use weigh_model::portable::{Portable, Reader, Unreadable, disclose, enclose};
use weigh_model::portable_fields;

use crate::message_log::{Heard, MessageEvent, MessageLog};

/// Number of the form that this version writes and reads. It rises with every change of a field.
pub const FORM: u16 = 1;

/// A record that is being kept in memory, while the shards of this host make the load.
#[derive(Debug)]
pub struct Keeping {
    log: Arc<MessageLog>,
    thread: Option<JoinHandle<Option<Vec<u8>>>>,
    bytes_max: usize,
}

impl Keeping {
    /// Starts the thread that reads the log. At most `bytes_max` bytes are kept.
    ///
    /// # Errors
    /// If there is no thread.
    pub fn start(bytes_max: usize) -> std::io::Result<Keeping> {
        let (log, heard) = MessageLog::new();
        let log = Arc::new(log);
        let own = Arc::clone(&log);
        let thread = Builder::new().name("weigh-messages".to_owned());
        let thread = thread.spawn(move || written(&own, &heard, bytes_max))?;
        Ok(Keeping { log, thread: Some(thread), bytes_max })
    }

    /// The log of the shards' job.
    pub fn log(&self) -> Arc<MessageLog> {
        Arc::clone(&self.log)
    }

    /// Ends the record, once no shard runs any more. Returns it as [`replay`] reads it.
    ///
    /// # Errors
    /// In words, if it is larger than allowed.
    pub fn finish(mut self) -> Result<Vec<u8>, String> {
        self.log.end();
        let read = self.thread.take().and_then(|thread| thread.join().ok());
        let mut bytes = read.ok_or("the record of single messages panicked")?.ok_or_else(|| {
            let gigabytes = self.bytes_max as f64 / f64::from(1 << 30);
            format!(
                "the record of single messages is larger than {gigabytes} GiB on this host; help: \
                 shorten the load, use more agents, or leave --keep-messages out"
            )
        })?;
        append(&mut bytes, &Chunk { waited: self.log.waited(), events: Vec::new() });
        Ok(bytes)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        // A trial that failed: the thread must not wait for more.
        if self.thread.is_some() {
            self.log.end();
        }
    }
}

/// Reads the log to its end; `None` if the bytes are more than allowed.
fn written(log: &MessageLog, heard: &Receiver<Heard>, bytes_max: usize) -> Option<Vec<u8>> {
    let mut bytes = Some(Vec::new());
    while let Ok(Heard::Events(events)) = heard.recv() {
        let chunk = Chunk { waited: Nanos(0), events };
        if let Some(own) = &mut bytes {
            append(own, &chunk);
        }
        bytes.take_if(|own| own.len() > bytes_max);
        log.give_back(chunk.events);
    }
    bytes
}

/// Passes the records of several hosts on to `log`, in the order of their times, chunk by chunk.
///
/// # Errors
/// A record that is cut, damaged or of another version. What was read before has been passed on.
pub fn replay(hosts: &[Vec<u8>], log: &MessageLog) -> Result<(), Unreadable> {
    let mut left: Vec<Reader<'_>> = hosts.iter().map(|bytes| Reader::new(bytes)).collect();
    let mut next = left.iter_mut().map(next_chunk).collect::<Result<Vec<_>, _>>()?;
    loop {
        let time = |chunk: &Option<Chunk>| chunk.as_ref().map(Chunk::begins);
        let first = (0..next.len()).filter_map(|host| Some((time(&next[host])?, host))).min();
        let Some((_, host)) = first else { return Ok(()) };
        if let Some(chunk) = next[host].take() {
            log.note_waited(chunk.waited);
            log.replay(chunk.events);
        }
        next[host] = next_chunk(&mut left[host])?;
    }
}

fn append(bytes: &mut Vec<u8>, chunk: &Chunk) {
    let chunk = enclose(chunk, FORM);
    (chunk.len() as u64).put(bytes);
    bytes.extend_from_slice(&chunk);
}

fn next_chunk(left: &mut Reader<'_>) -> Result<Option<Chunk>, Unreadable> {
    if left.is_empty() {
        return Ok(None);
    }
    let length = left.count()?;
    disclose(left.bytes(length)?, FORM).map(Some)
}

/// Some events of one shard, in their order; the last one of a host has none.
#[derive(Debug, PartialEq)]
struct Chunk {
    /// How long shards have waited for the reader; 0 but in the last one.
    waited: Nanos,
    events: Vec<MessageEvent>,
}

portable_fields!(Chunk { waited, events });

impl Chunk {
    /// The time of its first event that has one.
    fn begins(&self) -> Nanos {
        self.events.iter().find_map(time).unwrap_or(Nanos::NEVER)
    }
}

fn time(event: &MessageEvent) -> Option<Nanos> {
    match event {
        MessageEvent::Sent { sent: at, .. }
        | MessageEvent::Confirmed { at, .. }
        | MessageEvent::Failed { at, .. }
        | MessageEvent::Arrived { at, .. } => Some(*at).filter(|at| *at != Nanos::NEVER),
        MessageEvent::NotSent { .. } => None,
    }
}

impl Portable for MessageEvent {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            MessageEvent::Sent { producer, connection, number, due, sent, own_lag, body_bytes } => {
                out.push(0);
                ((*producer, *connection), (*body_bytes, *number)).put(out);
                (*due, (*sent, *own_lag)).put(out);
            }
            MessageEvent::Confirmed { producer, number, at } => {
                out.push(1);
                ((*producer, *number), *at).put(out);
            }
            MessageEvent::Failed { producer, number, at, cause } => {
                out.push(2);
                ((*producer, *number), (*at, *cause)).put(out);
            }
            MessageEvent::Arrived { consumer, producer, number, at, is_late } => {
                out.push(3);
                ((*consumer, *producer), ((*number, *at), *is_late)).put(out);
            }
            MessageEvent::NotSent { cause, count } => {
                out.push(4);
                (*cause, *count).put(out);
            }
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<MessageEvent, Unreadable> {
        match from.array()? {
            [0] => {
                let (producer, connection) = Portable::take(from)?;
                let (body_bytes, number) = Portable::take(from)?;
                let (due, (sent, own_lag)) = Portable::take(from)?;
                let sent = MessageEvent::Sent {
                    producer,
                    connection,
                    number,
                    due,
                    sent,
                    own_lag,
                    body_bytes,
                };
                Ok(sent)
            }
            [1] => {
                let ((producer, number), at) = Portable::take(from)?;
                Ok(MessageEvent::Confirmed { producer, number, at })
            }
            [2] => {
                let ((producer, number), (at, cause)) = Portable::take(from)?;
                Ok(MessageEvent::Failed { producer, number, at, cause })
            }
            [3] => {
                let ((consumer, producer), ((number, at), is_late)) = Portable::take(from)?;
                Ok(MessageEvent::Arrived { consumer, producer, number, at, is_late })
            }
            [4] => {
                let (cause, count) = Portable::take(from)?;
                Ok(MessageEvent::NotSent { cause, count })
            }
            _ => Err(Unreadable::Wrong("an event of a message")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::ledger::{Cause, NotSentCause};

    fn sent(number: u64, at: u64) -> MessageEvent {
        MessageEvent::Sent {
            producer: 3,
            connection: 1,
            number,
            due: Nanos(at - 5),
            sent: Nanos(at),
            own_lag: Nanos(2),
            body_bytes: 64,
        }
    }

    fn events() -> Vec<MessageEvent> {
        let at = Nanos(1_000_000);
        vec![
            sent(7, 999_999),
            MessageEvent::Confirmed { producer: 3, number: 7, at },
            MessageEvent::Failed {
                producer: 3,
                number: 8,
                at: Nanos::NEVER,
                cause: Cause::Timeout,
            },
            MessageEvent::Arrived { consumer: 2, producer: 3, number: 7, at, is_late: true },
            MessageEvent::NotSent { cause: NotSentCause::WindowFull, count: 300 },
        ]
    }

    fn heard(hosts: &[Vec<u8>]) -> Result<Vec<MessageEvent>, Unreadable> {
        let (log, heard) = MessageLog::new();
        replay(hosts, &log)?;
        log.end();
        let mut all = Vec::new();
        while let Ok(Heard::Events(events)) = heard.recv() {
            all.extend(events);
        }
        Ok(all)
    }

    #[test]
    fn what_a_host_kept_is_heard_again_in_the_order_of_all_hosts() {
        let keep = |times: &[u64]| {
            let keeping = Keeping::start(1 << 20).unwrap();
            times.iter().for_each(|at| keeping.log().replay(vec![sent(*at, *at)]));
            keeping.finish().unwrap()
        };
        let all = heard(&[keep(&[10, 40]), keep(&[]), keep(&[20, 30, 50])]).unwrap();
        assert_eq!(all, [10, 20, 30, 40, 50].map(|at| sent(at, at)));
        let keeping = Keeping::start(1 << 20).unwrap();
        keeping.log().replay(events());
        assert_eq!(heard(&[keeping.finish().unwrap()]).unwrap(), events());
    }

    #[test]
    fn waits_of_shards_for_the_record_are_known_where_it_is_heard() {
        let keeping = Keeping::start(1 << 20).unwrap();
        keeping.log().note_waited(Nanos(70));
        let (log, _heard) = MessageLog::new();
        replay(&[keeping.finish().unwrap()], &log).unwrap();
        assert_eq!(log.waited(), Nanos(70));
    }

    #[test]
    fn a_record_that_is_too_large_is_named() {
        let keeping = Keeping::start(50).unwrap();
        (0..9).for_each(|_| keeping.log().replay(events()));
        let error = keeping.finish().unwrap_err();
        assert!(error.contains("single messages is larger than") && error.contains("help:"));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_an_error() {
        let keeping = Keeping::start(1 << 20).unwrap();
        keeping.log().replay(events());
        let whole = keeping.finish().unwrap();
        for end in 1..whole.len() {
            let is_whole = heard(&[whole[..end].to_vec()]);
            // Without its last chunk a record is one of a host that is not done; its hash differs.
            assert!(is_whole.is_err() || is_whole == Ok(events()), "{end}");
        }
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(heard(&[flipped]).is_err(), "bit {bit}");
        }
    }

    /// If an event is written otherwise, raise [`FORM`] and enter the new value here.
    #[test]
    fn a_new_form_has_a_new_number() {
        let bytes = enclose(&Chunk { waited: Nanos(9), events: events() }, FORM);
        let check = u32::from_le_bytes(*bytes.last_chunk().unwrap());
        assert_eq!((FORM, check), (1, 781_363_652));
    }
}
