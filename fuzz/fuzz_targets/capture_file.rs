//! Stored captures as any program may have written them: pcap and pcapng, with any packets. Every
//! byte of every packet is in one place of the account.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_capture::account::Notes;
use weigh_capture::{Accounting, Counting, Settings, files};
use weigh_fuzz::accounted;

fuzz_target!(|data: &[u8]| {
    let notes = Notes { connections: 2, packets: 6 };
    let settings = Settings { counting: Counting::AsCaptured, notes, ..Settings::default() };
    let mut accounting = Accounting::new(settings);
    let (mut bytes, mut packets) = (0, 0);
    let read = files::read_from(data, &mut |packet| {
        bytes += u64::from(packet.length);
        packets += 1;
        accounting.packet(packet);
    });
    if let Err(words) = &read {
        assert!(!words.is_empty());
    }
    accounted(&accounting.finish(), bytes, packets);
});
