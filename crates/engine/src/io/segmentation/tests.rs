//! Runs hold every datagram once, in order, whatever their sizes; and the kernel cuts and joins
//! them as they were.

use std::net::{Ipv4Addr, SocketAddr};

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_model::connection::Outbox;

use super::*;
use crate::io::datagrams::{self, Batch, Sent};

fn outbox(frames: &[Vec<u8>]) -> Outbox {
    let mut out = Outbox::default();
    for frame in frames {
        out.put(frame);
        out.frame();
    }
    out
}

fn sizes(sizes: &[usize], datagrams_max: usize) -> Vec<(usize, usize)> {
    let frames: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
    let mut out = outbox(&frames);
    runs(out.frames(), 0, datagrams_max).map(|run| (run.bytes.len(), run.datagram_bytes)).collect()
}

#[test]
fn a_run_ends_with_a_shorter_datagram_or_before_a_longer_one() {
    assert_eq!(sizes(&[5, 5, 3, 5, 7, 7], 64), [(13, 5), (5, 5), (14, 7)]);
    assert_eq!(sizes(&[5, 5, 3], 1), [(5, 5), (5, 5), (3, 3)]);
    assert_eq!(sizes(&[9; 130], 64), [(576, 9), (576, 9), (18, 9)]);
    // 54 of 1,200 bytes are 64,800; one more would be beyond 65,507.
    assert_eq!(sizes(&[1_200; 60], 64), [(64_800, 1_200), (7_200, 1_200)]);
    assert_eq!(sizes(&[40_000, 40_000], 64), [(40_000, 40_000), (40_000, 40_000)]);
}

#[test]
fn what_is_not_joined_is_one_datagram() {
    let cut = |bytes: &'static [u8], size| datagrams(bytes, size).collect::<Vec<_>>();
    assert_eq!(cut(b"", 0), [b""]);
    assert_eq!(cut(b"", 7), [b""]);
    assert_eq!(cut(b"hello", 0), [b"hello"]);
    assert_eq!(cut(b"hello", 5), [b"hello"]);
    assert_eq!(cut(b"hello", 2), [&b"he"[..], b"ll", b"o"]);
}

/// Sizes as a connection makes them: many of one, and others.
fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let size = prop_oneof![4 => Just(120_usize), 1 => 1_usize..300, 1 => Just(30_000)];
    vec((size, any::<u8>()).prop_map(|(size, byte)| vec![byte; size]), 1..150)
}

proptest! {
    #[test]
    fn runs_hold_all_frames_in_order(
        frames in frames(),
        skipped in 0_usize..150,
        datagrams_max in 1_usize..=DATAGRAMS_MAX,
    ) {
        let skipped = skipped.min(frames.len());
        let taken = frames[..skipped].iter().map(Vec::len).sum();
        let (mut out, mut found) = (outbox(&frames), Vec::new());
        for run in runs(out.frames(), taken, datagrams_max) {
            let cut: Vec<&[u8]> = datagrams(run.bytes, run.datagram_bytes).collect();
            prop_assert!(cut.len() <= datagrams_max);
            prop_assert!(cut.len() == 1 || run.bytes.len() <= RUN_BYTES_MAX);
            prop_assert_eq!(run.is_cut(), cut.len() > 1);
            found.extend(cut.into_iter().map(<[u8]>::to_vec));
        }
        prop_assert_eq!(found, &frames[skipped..]);
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// A connected pair, and whether the kernel cuts and joins at both.
fn pair() -> (OwnedFd, OwnedFd, bool) {
    let (receiver, on) = datagrams::open(any_port(), false).unwrap();
    let sender = datagrams::dial(on, None).unwrap();
    let is_on = switch_on(&receiver) && switch_on(&sender);
    (sender, receiver, is_on)
}

fn received(batch: &Batch, count: usize) -> Vec<Vec<u8>> {
    (0..count).flat_map(|index| batch.datagrams(index)).map(<[u8]>::to_vec).collect()
}

#[test]
fn the_kernel_cuts_and_joins_what_one_call_sends() {
    let (sender, receiver, is_on) = pair();
    if !is_on {
        eprintln!("SKIPPED: this kernel does not cut datagrams");
        return;
    }
    let frames: Vec<Vec<u8>> =
        [100, 100, 100, 40, 100, 60].iter().zip(0..).map(|(size, at)| vec![at; *size]).collect();
    let mut out = outbox(&frames);
    let sent = datagrams::send(&sender, out.frames(), 0, None, true);
    assert_eq!(sent, Ok(Sent { taken: out.len(), is_refused: false }));
    let mut batch = Batch::new();
    batch.take_joined();
    assert_eq!(batch.receive(&receiver), Ok(2), "two runs");
    assert_eq!(received(&batch, 2), frames);
    assert_eq!(batch.sender(1), rustix::net::getsockname(&sender).unwrap().try_into().ok());
}

/// Lets a socket send without checksums: then the kernel cuts no run of it (EINVAL).
pub(in crate::io) fn without_checksums(socket: &OwnedFd) {
    let on: libc::c_int = 1;
    let length = size_of_val(&on) as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix has no wrapper for SO_NO_CHECK")]
    // SAFETY: the kernel reads an int, which lives until the call returns.
    let answer = unsafe {
        let value = (&raw const on).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, value, length)
    };
    assert_eq!(answer, 0);
}

#[test]
fn what_the_kernel_refuses_to_cut_leaves_one_by_one() {
    let (sender, receiver, is_on) = pair();
    if !is_on {
        eprintln!("SKIPPED: this kernel does not cut datagrams");
        return;
    }
    without_checksums(&sender);
    let mut frames = vec![vec![9; 50]];
    frames.extend((0..10).map(|at| vec![at; 100]));
    let mut out = outbox(&frames);
    let sent = datagrams::send(&sender, out.frames(), 0, None, true);
    assert_eq!(sent, Ok(Sent { taken: out.len(), is_refused: true }));
    let mut batch = Batch::new();
    batch.take_joined();
    assert_eq!(batch.receive(&receiver), Ok(11));
    assert_eq!(received(&batch, 11), frames);
}
