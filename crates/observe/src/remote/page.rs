//! The protocol between agent and client: one line of JSON for each question and answer, of limited
//! length.

use std::io::{self, BufRead, Read, Write};

use crate::cpu::{Accounting, HostCpu};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of the protocol. An agent answers its own version only.
pub(crate) const PAGE: u32 = 1;

/// Requests. None of them changes anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// The first request: token and version of the client.
    Hello { page: u32, token: String },
    /// Take a sample now; `closely` with proportional memory, which costs more.
    Look { closely: bool },
}

/// Answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To the first request.
    Welcome(Welcome),
    /// A sample.
    Seen(Sight),
    /// The subject is gone, in words.
    Gone(String),
    /// Refused, in words; nothing follows.
    Refused(String),
}

/// Agent and its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    /// Version of the protocol.
    pub(crate) page: u32,
    /// Version of the agent's program.
    pub(crate) version: String,
    /// Description of the subject.
    pub(crate) what: String,
    /// Cores that the subject may use.
    pub(crate) cores: u32,
}

/// One sample. All times are on the agent's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sight {
    /// When the request was read.
    pub(crate) reached_ns: u64,
    /// When the sample was taken.
    pub(crate) at_ns: u64,
    /// When the answer was written.
    pub(crate) answered_ns: u64,
    /// Processor time of the subject since the client connected.
    pub(crate) cpu_ns: u64,
    pub(crate) processes: u32,
    pub(crate) threads: u32,
    /// Memory; 0 if unknown.
    pub(crate) rss_bytes: u64,
    pub(crate) pss_bytes: Option<u64>,
    /// Source of the processor time.
    pub(crate) accounting: Accounting,
    /// Totals of the agent's host.
    pub(crate) host: HostCpu,
    /// Processor time of the agent itself since it started.
    pub(crate) own_cpu_ns: u64,
}

/// Reads the next line; `None` at the end.
///
/// # Errors
/// Those of the stream, and [`io::ErrorKind::InvalidData`] for an invalid line.
pub(crate) fn read<T: DeserializeOwned>(stream: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    if line.pop() != Some(b'\n') {
        return Err(wrong("its line has no end"));
    }
    serde_json::from_slice(&line).map(Some).map_err(|_| wrong("unknown line"))
}

/// Writes a line.
///
/// # Errors
/// Those of the stream.
pub(crate) fn write(stream: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

/// Most bytes of a line.
const LINE_BYTES_MAX: u64 = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_being_written_and_read() {
        let question = Question::Hello { page: PAGE, token: "t".to_owned() };
        let mut line = Vec::new();
        write(&mut line, &question).unwrap();
        assert_eq!(line, b"{\"hello\":{\"page\":1,\"token\":\"t\"}}\n");
        let mut rest = &line[..];
        assert_eq!(read(&mut rest).unwrap(), Some(question));
        assert_eq!(read::<Question>(&mut rest).unwrap(), None);
    }

    #[test]
    fn what_is_not_of_the_page_is_refused() {
        for line in [
            &b"{\"kill\":{\"pid\":1}}\n"[..],
            b"{\"look\":{\"closely\":true,\"write\":1}}\n",
            b"GET / HTTP/1.1\r\n",
            b"{\"look\":{\"closely\":true}}",
            &[b'x'; 5000],
        ] {
            assert!(read::<Question>(&mut &line[..]).is_err(), "{}", line.escape_ascii());
        }
    }
}
