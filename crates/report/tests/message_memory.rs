//! The record of single messages takes no more memory the longer it gets. Alone in its process, so
//! that nothing else is measured.

use std::fs;
use std::path::PathBuf;

use weigh_model::message::{MessageRow, MessageState};
use weigh_report::exports::{MessageHeader, MessageWriter};

/// A message that was sent, confirmed and delivered, at times without a pattern.
fn delivered(number: u64) -> MessageRow {
    let jitter = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    let due = number * 100_000;
    MessageRow {
        producer: Some((number % 50) as u32),
        sequence: Some(number / 50),
        connection: Some(0),
        consumer: Some(0),
        due_ns: Some(due),
        sent_ns: Some(due + jitter / 100),
        confirmed_ns: Some(due + jitter),
        delivered_ns: Some(due + jitter + 1000),
        state: MessageState::Delivered,
        cause: None,
        body_bytes: Some(120),
    }
}

/// Two million rows cost no more memory than four hundred thousand.
#[test]
fn memory_does_not_grow_with_rows() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("messages-many");
    let _ = fs::remove_dir_all(&folder);
    let path = folder.join("trial.parquet");
    let header =
        MessageHeader { trial: "5f1c09ab".to_owned(), epoch_unix_ns: 1, timeout_ns: 5_000_000_000 };
    let mut writer = MessageWriter::create(&path, &header).unwrap();
    let mut resident = Vec::new();
    for number in 0..2_000_000_u64 {
        writer.push(&delivered(number)).unwrap();
        if number % 200_000 == 199_999 {
            resident.push(resident_bytes());
        }
    }
    writer.close().unwrap();
    let grown = resident[9].saturating_sub(resident[1]);
    assert!(grown < 24 << 20, "{grown} bytes more: {resident:?}");
    fs::remove_file(&path).unwrap();
}

fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}
