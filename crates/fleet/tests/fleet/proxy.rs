//! A link between a process and the bus that delays one direction, stands still or breaks.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A running link. Dropping it breaks it.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    link: AtomicU8,
    is_over: AtomicBool,
    /// Delay of bytes to the bus, and from the bus, microseconds.
    there_us: AtomicU64,
    back_us: AtomicU64,
}

/// What the link does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Forwards.
    Open = 0,
    /// Keeps connections and forwards nothing.
    Still = 1,
    /// Closes connections, and new ones too.
    Broken = 2,
}

impl Proxy {
    pub fn start(bus: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<State> = Arc::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(client), false) = (client, shared.is(Link::Broken)) else { continue };
                let Ok(server) = TcpStream::connect(bus) else { continue };
                forward(&client, &server, &shared, |state| &state.there_us);
                forward(&server, &client, &shared, |state| &state.back_us);
            }
        });
        Proxy { address, state }
    }

    pub fn set(&self, link: Link) {
        self.state.link.store(link as u8, Ordering::SeqCst);
    }

    /// Delays bytes to the bus and from it.
    pub fn delay(&self, there: Duration, back: Duration) {
        self.state.there_us.store(there.as_micros() as u64, Ordering::SeqCst);
        self.state.back_us.store(back.as_micros() as u64, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Link::Broken);
        self.state.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn is(&self, link: Link) -> bool {
        self.link.load(Ordering::SeqCst) == link as u8
    }
}

/// Forwards one direction: one thread reads and another writes when it is time.
fn forward(from: &TcpStream, to: &TcpStream, state: &Arc<State>, delay: fn(&State) -> &AtomicU64) {
    let _ = to.set_nodelay(true);
    let _ = from.set_read_timeout(Some(Duration::from_millis(20)));
    let (sender, chunks) = channel();
    let (mut reader, shared) = (from.try_clone().unwrap(), Arc::clone(state));
    thread::spawn(move || {
        let mut bytes = [0; 16 << 10];
        while !shared.is(Link::Broken) {
            match reader.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => {
                    let delay = Duration::from_micros(delay(&shared).load(Ordering::SeqCst));
                    if sender.send((Instant::now() + delay, bytes[..length].to_vec())).is_err() {
                        break;
                    }
                }
                Err(error) if is_silence(&error) => {}
                Err(_) => break,
            }
        }
        let _ = reader.shutdown(Shutdown::Both);
    });
    let (to, shared) = (to.try_clone().unwrap(), Arc::clone(state));
    thread::spawn(move || write(to, &chunks, &shared));
}

fn write(mut to: TcpStream, chunks: &Receiver<(Instant, Vec<u8>)>, state: &State) {
    for (at, bytes) in chunks {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        while state.is(Link::Still) {
            thread::sleep(Duration::from_millis(1));
        }
        if state.is(Link::Broken) || to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn is_silence(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
