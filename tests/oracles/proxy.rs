//! A TCP proxy that counts the bytes of each direction and can hold back one connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::rig::any_port;

/// The proxy. It ends with the connections that go through it.
pub struct Proxy {
    pub address: SocketAddr,
    /// Bytes from clients to the server, and back.
    pub up: Arc<AtomicU64>,
    pub down: Arc<AtomicU64>,
    /// What clients sent, connection after connection.
    pub said: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Directions that have not ended.
    running: Arc<AtomicU64>,
    /// While set, nothing is read from the server for the first connection once that has
    /// been sent this many bytes.
    pub stalls: Arc<AtomicBool>,
}

impl Proxy {
    /// Passes everything on to `server`; `free_bytes` is what the first connection gets before
    /// it is held back.
    pub fn start(server: SocketAddr, stalls: bool, free_bytes: u64) -> Proxy {
        let listener = TcpListener::bind(any_port()).unwrap();
        let proxy = Proxy {
            address: listener.local_addr().unwrap(),
            up: Arc::default(),
            down: Arc::default(),
            said: Arc::default(),
            running: Arc::default(),
            stalls: Arc::new(AtomicBool::new(stalls)),
        };
        let (up, down) = (Arc::clone(&proxy.up), Arc::clone(&proxy.down));
        let (said, running) = (Arc::clone(&proxy.said), Arc::clone(&proxy.running));
        let stall = Arc::clone(&proxy.stalls);
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let Ok(client) = client else { return };
                let upstream = TcpStream::connect(server).unwrap();
                let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
                said.lock().unwrap().push(Vec::new());
                running.fetch_add(2, Ordering::SeqCst);
                let (said, up) = (Arc::clone(&said), Arc::clone(&up));
                let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                let ended = Arc::clone(&running);
                thread::spawn(move || {
                    copy(
                        from,
                        to,
                        |_| true,
                        |bytes| {
                            up.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                            said.lock().unwrap()[number].extend_from_slice(bytes);
                        },
                    );
                    ended.fetch_sub(1, Ordering::SeqCst);
                });
                let (down, stall) = (Arc::clone(&down), Arc::clone(&stall));
                let ended = Arc::clone(&running);
                thread::spawn(move || {
                    let may_read = |sent: u64| {
                        number > 0 || sent < free_bytes || !stall.load(Ordering::SeqCst)
                    };
                    copy(upstream, client, may_read, |bytes| {
                        down.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                    });
                    ended.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        proxy
    }

    /// Waits until all connections have ended, and returns the bytes up and down.
    pub fn totals(&self) -> (u64, u64) {
        while self.running.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        (self.up.load(Ordering::SeqCst), self.down.load(Ordering::SeqCst))
    }
}

fn copy(
    mut from: TcpStream,
    mut to: TcpStream,
    may_read: impl Fn(u64) -> bool,
    mut note: impl FnMut(&[u8]),
) {
    let mut buffer = [0; 4096];
    let mut sent = 0;
    loop {
        while !may_read(sent) {
            thread::sleep(Duration::from_millis(5));
        }
        match from.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                note(&buffer[..count]);
                sent += count as u64;
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}
