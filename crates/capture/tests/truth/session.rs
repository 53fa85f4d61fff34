//! One session of TCP: connect, send, receive, close.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use weigh_capture::kernel::{Role, SocketView, TcpFigures};

/// Sends `request_bytes`, gets `answer_bytes`, and closes; both ends read their counters after both
/// FINs and before close.
pub fn exchange(port: u16, request_bytes: usize, answer_bytes: usize) -> [SocketView; 2] {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    exchange_with(address, request_bytes, answer_bytes, &|_| {})
}

/// The same at any address, with both sockets prepared before the first byte.
pub fn exchange_with(
    address: SocketAddr,
    request_bytes: usize,
    answer_bytes: usize,
    prepare: &'static (dyn Fn(&TcpStream) + Sync),
) -> [SocketView; 2] {
    let server = answer_once(address, request_bytes, answer_bytes, prepare);
    let mut client = TcpStream::connect(address).unwrap();
    prepare(&client);
    client.write_all(&vec![7; request_bytes]).unwrap();
    let mut answer = vec![0; answer_bytes];
    client.read_exact(&mut answer).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "nothing follows the answer");
    let mine = view(&client, address, Role::Opened);
    let theirs = server.join().unwrap();
    [mine, theirs]
}

/// The ends of a connection and its counters, as the own process reads them.
pub fn view(socket: &TcpStream, remote: SocketAddr, role: Role) -> SocketView {
    SocketView::of(socket, [socket.local_addr().unwrap(), remote], role).unwrap()
}

fn answer_once(
    address: SocketAddr,
    request_bytes: usize,
    answer_bytes: usize,
    prepare: &'static (dyn Fn(&TcpStream) + Sync),
) -> JoinHandle<SocketView> {
    let listener = TcpListener::bind(address).unwrap();
    std::thread::spawn(move || {
        let (mut socket, client) = listener.accept().unwrap();
        prepare(&socket);
        let mut request = vec![0; request_bytes];
        socket.read_exact(&mut request).unwrap();
        socket.write_all(&vec![8; answer_bytes]).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "the client closes first");
        socket.shutdown(Shutdown::Write).unwrap();
        // The peer answers the FIN at once; wait until the kernel has seen that.
        while TcpFigures::of(&socket).unwrap().state != CLOSED {
            std::thread::yield_now();
        }
        view(&socket, client, Role::Accepted)
    })
}

/// TCP_CLOSE, net/tcp_states.h.
const CLOSED: u8 = 7;
