//! The responder of exchanges: answers every question with its arrival time and the time of the
//! answer.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clocks::packet::{BYTES, Packet};
use crate::clocks::wall_ns;

/// Answers in its own thread until it is dropped.
#[derive(Debug)]
pub struct Responder {
    address: SocketAddr,
    answered: Arc<AtomicU64>,
    has_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Answers at `listen` by the wall clock, or by the clock that `clock` reads.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn start(
        listen: SocketAddr,
        clock: impl Fn() -> i64 + Send + 'static,
    ) -> io::Result<Responder> {
        let socket = UdpSocket::bind(listen)?;
        // The time after which a stop is noticed.
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let address = socket.local_addr()?;
        let answered = Arc::new(AtomicU64::new(0));
        let has_ended = Arc::new(AtomicBool::new(false));
        let (count, end) = (Arc::clone(&answered), Arc::clone(&has_ended));
        let thread =
            std::thread::Builder::new().name("weigh-clock".to_owned()).spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    if answer(&socket, &clock) {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?;
        Ok(Responder { address, answered, has_ended, thread: Some(thread) })
    }

    /// Answers by the wall clock.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn by_wall_clock(listen: SocketAddr) -> io::Result<Responder> {
        Responder::start(listen, wall_ns)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Questions answered so far.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

/// Answers one question; false if there was none.
fn answer(socket: &UdpSocket, clock: &impl Fn() -> i64) -> bool {
    // One byte more than a packet has, to recognise longer ones.
    let mut bytes = [0; BYTES + 1];
    let Ok((length, from)) = socket.recv_from(&mut bytes) else { return false };
    let reached = clock();
    let Some(question) = Packet::decode(&bytes[..length]) else { return false };
    if question.answer.is_some() {
        return false;
    }
    let answer = Packet { answer: Some((reached, clock())), ..question };
    socket.send_to(&answer.encode(), from).is_ok()
}
