//! A client of NATS in a few lines, to see and to repeat what goes over the bus.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A connection.
pub struct Raw {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

/// A message.
struct Heard {
    subject: String,
    reply: String,
    payload: Vec<u8>,
}

/// Copies of messages.
#[derive(Default)]
pub struct Overheard(Arc<Mutex<Vec<Vec<u8>>>>);

impl Overheard {
    /// True if one of them holds this text.
    pub fn holds(&self, text: &str) -> bool {
        self.0.lock().unwrap().iter().any(|payload| holds(payload, text))
    }
}

/// True if these bytes hold the text.
pub fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

impl Raw {
    pub fn connect(bus: SocketAddr) -> Raw {
        let writer = TcpStream::connect(bus).unwrap();
        let reader = BufReader::new(writer.try_clone().unwrap());
        let mut raw = Raw { reader, writer };
        raw.say("CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false}");
        raw
    }

    /// Publishes everything again that comes by on these subjects, and counts it.
    pub fn repeat(mut self, subjects: &[&str]) -> Arc<AtomicU64> {
        for (subject, number) in subjects.iter().zip(1..) {
            self.say(&format!("SUB {subject} {number}"));
        }
        let repeated = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&repeated);
        thread::spawn(move || {
            while let Some(heard) = self.next() {
                self.publish(&heard);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        repeated
    }

    /// Keeps a copy of everything that comes by on these subjects from now on, also of what is
    /// removed again.
    pub fn overhear(mut self, subjects: &[&str]) -> Overheard {
        for (subject, number) in subjects.iter().zip(1..) {
            self.say(&format!("SUB {subject} {number}"));
        }
        // Answered once the server has taken the subscriptions.
        self.say("PING");
        let mut line = String::new();
        while line.trim() != "PONG" {
            line.clear();
            assert!(self.reader.read_line(&mut line).unwrap() > 0);
        }
        let heard = Overheard::default();
        let all = Arc::clone(&heard.0);
        thread::spawn(move || {
            while let Some(heard) = self.next() {
                all.lock().unwrap().push(heard.payload);
            }
        });
        heard
    }

    /// Number of objects in the store of the fleet `default`. Pieces of an object that was not
    /// completed, because its writer was killed, are none: the server removes them after a week.
    pub fn objects(&mut self) -> u64 {
        self.say("SUB _INBOX.raw 1");
        let subject = "$JS.API.STREAM.INFO.OBJ_weigh_default".to_owned();
        let (reply, payload) =
            ("_INBOX.raw".to_owned(), b"{\"subjects_filter\":\"$O.weigh_default.M.>\"}".to_vec());
        // Without echo, answers of the server itself still come.
        self.publish(&Heard { subject, reply, payload });
        let answer = self.next().unwrap().payload;
        self.say("UNSUB 1");
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        answer["state"]["subjects"].as_object().map_or(0, |subjects| subjects.len() as u64)
    }

    fn publish(&mut self, heard: &Heard) {
        let Heard { subject, reply, payload } = heard;
        let mut bytes = format!("PUB {subject} {reply} {}\r\n", payload.len()).into_bytes();
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        let _ = self.writer.write_all(&bytes);
    }

    fn say(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// The next message without headers; `None` at the end of the connection.
    fn next(&mut self) -> Option<Heard> {
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["PING"] => self.say("PONG"),
                ["MSG" | "HMSG", subject, _, .., length] => {
                    let mut payload = vec![0; length.parse::<usize>().unwrap() + 2];
                    self.reader.read_exact(&mut payload).ok()?;
                    payload.truncate(payload.len() - 2);
                    let reply = if words[0] == "MSG" && words.len() == 5 { words[3] } else { "" };
                    if words[0] == "HMSG" {
                        continue;
                    }
                    let (subject, reply) = (subject.to_owned(), reply.to_owned());
                    return Some(Heard { subject, reply, payload });
                }
                _ => {}
            }
        }
    }
}
