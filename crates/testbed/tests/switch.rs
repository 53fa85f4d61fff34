//! The switch on virtual time: who gets what, when, and that every packet is counted once.

use std::net::Ipv4Addr;

use weigh_model::path::Path;
use weigh_model::units::Nanos;
use weigh_testbed::link::switch::{Place, Switch};

fn place(number: u8, path: Option<&str>) -> Place {
    let head = "name = \"t\"\ntitle = \"t\"\nabout = \"t\"\nmtu = 1500\n";
    let path = path.map(|text| Path::parse("t.toml", &format!("{head}{text}")).unwrap());
    Place { address: Ipv4Addr::new(10, 0, 0, number), path }
}

/// An Ethernet frame with an IPv4 packet to host `to`, marked with a number.
fn frame(to: u8, mark: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + bytes];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[30..34].copy_from_slice(&[10, 0, 0, to]);
    frame[34] = mark;
    frame
}

fn send(switch: &mut Switch, port: usize, at: Nanos, frame: &[u8]) {
    let came = switch.arrive::<()>(port, |memory| {
        memory[..frame.len()].copy_from_slice(frame);
        Ok(Some((frame.len(), at)))
    });
    assert_eq!(came, Ok(true));
}

/// All that leaves until `until`, as (port, mark, when), on a clock that is never late.
fn leaving(switch: &mut Switch, until: Nanos) -> Vec<(usize, u8, u64)> {
    let mut out = Vec::new();
    while let Some(due) = switch.next_due().filter(|due| *due <= until) {
        switch.leave(due, |port, frame| {
            out.push((port, frame[34], due.0 / 1000));
            (true, due)
        });
    }
    out
}

#[test]
fn up_of_the_sender_then_down_of_the_receiver() {
    let places = [
        place(1, Some("up = { delay = \"10ms\" }\ndown = { delay = \"3ms\" }")),
        place(2, None),
        place(3, Some("up = { delay = \"100us\" }\ndown = { delay = \"5ms\" }")),
    ];
    let mut switch = Switch::new(&places, 100);
    switch.begin(Nanos(0), 1);
    let now = Nanos(0);
    for (port, to, mark) in [(0, 2, 1), (1, 1, 2), (0, 3, 3), (2, 1, 4), (1, 3, 5)] {
        send(&mut switch, port, now, &frame(to, mark, 100));
    }
    assert_eq!(switch.under_way(), 5);
    let out = leaving(&mut switch, Nanos::from_secs(1));
    let expected = [(0, 2, 3000), (0, 4, 3100), (2, 5, 5000), (1, 1, 10_000), (2, 3, 15_000)];
    assert_eq!(out, expected);
    assert_eq!((switch.counts.written(), switch.counts.late), (5, 0));
}

#[test]
fn what_does_not_belong_is_counted_and_dropped() {
    let mut switch = Switch::new(&[place(1, None), place(2, None)], 2);
    send(&mut switch, 0, Nanos(0), &frame(9, 1, 100));
    send(&mut switch, 0, Nanos(0), &frame(1, 1, 100));
    let mut arp = frame(2, 1, 46);
    arp[13] = 6;
    send(&mut switch, 0, Nanos(0), &arp);
    send(&mut switch, 0, Nanos(0), &frame(2, 1, 46)[..33]);
    let counts = switch.counts.ports[0];
    assert_eq!((counts.unroutable, counts.foreign, counts.up.offered), (2, 2, 0));
    // Memory for two, none of it leaked by those above; the third is an overrun.
    for mark in 0..3 {
        send(&mut switch, 0, Nanos(0), &frame(2, mark, 1500));
    }
    assert_eq!((switch.counts.overruns, switch.under_way()), (1, 2));
    assert_eq!(leaving(&mut switch, Nanos(0)).len(), 2);
    send(&mut switch, 1, Nanos(0), &frame(1, 1, 1500));
    assert_eq!(leaving(&mut switch, Nanos(0)), [(0, 1, 0)]);
}

/// Every packet that came was written, lost, or dropped at the queue; copies come on top.
#[test]
fn the_books_balance() {
    let path = "\
        up = { loss = \"5%\", duplicate = \"4%\", delay = \"2ms\" }\n\
        down = { loss = \"3%\", rate = \"15Mbit/s\", queue = \"20KB\", duplicate = \"2%\" }";
    let mut switch = Switch::new(&[place(1, Some(path)), place(2, Some(path))], 10_000);
    switch.begin(Nanos(0), 5);
    let mut written = 0;
    for number in 0..20_000_u64 {
        let at = Nanos::from_micros(number * 300);
        let (port, to) = if number % 2 == 0 { (0, 2) } else { (1, 1) };
        send(&mut switch, port, at, &frame(to, 0, 1000 + number as usize % 500));
        written += leaving(&mut switch, at).len() as u64;
    }
    written += leaving(&mut switch, Nanos::NEVER).len() as u64;
    let mut expected = 0;
    for (to, counts) in switch.counts.ports.iter().enumerate() {
        let from = &switch.counts.ports[1 - to];
        assert_eq!(from.up.offered, 10_000);
        assert_eq!(counts.down.offered, from.up.offered - from.up.lost + from.up.doubled);
        let down = counts.down;
        assert!(down.queue_full > 0 && down.lost > 0 && down.doubled > 0, "{down:?}");
        assert_eq!(counts.written, down.offered - down.lost - down.queue_full + down.doubled);
        expected += counts.written;
    }
    assert_eq!((written, switch.under_way()), (expected, 0));
}

/// A late forwarder does not shift what follows, and says how late it was.
#[test]
fn lateness_is_counted_and_does_not_add_up() {
    let path = "up = { delay = \"1ms\" }\ndown = { delay = \"1ms\" }";
    let mut switch = Switch::new(&[place(1, Some(path)), place(2, Some(path))], 10);
    send(&mut switch, 0, Nanos(0), &frame(2, 1, 100));
    // The forwarder slept through the first half: the second is due as if it had not.
    switch.leave(Nanos::from_micros(1_800), |_, _| unreachable!("half way"));
    assert_eq!(switch.next_due(), Some(Nanos::from_millis(2)));
    switch.leave(Nanos::from_micros(3_500), |_, _| (false, Nanos::from_micros(3_500)));
    let counts = &switch.counts;
    assert_eq!((counts.late, counts.lateness_ns_max), (1, 1_500_000));
    assert_eq!(counts.ports[1].refused, 1);
    assert!(counts.is_bent());
}
