//! The record of single messages: what is written is read back, in bounded memory, and damage is
//! said.

use std::fs;
use std::path::PathBuf;

use weigh_model::message::{LossCause, MessageRow, MessageState};
use weigh_report::RecordError;
use weigh_report::exports::{GROUP_ROWS, MessageHeader, MessageReader, MessageWriter};

fn path(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("messages-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder.join("messages/trial.parquet")
}

fn header() -> MessageHeader {
    MessageHeader {
        trial: "5f1c09ab".to_owned(),
        epoch_unix_ns: 1_795_222_923_000_000_001,
        timeout_ns: 5_000_000_000,
    }
}

/// Rows of every state and cause, absent values in every place.
fn row(number: u64) -> MessageRow {
    let state = MessageState::ALL[(number % 7) as usize];
    let present = |every: u64, value: u64| (!number.is_multiple_of(every)).then_some(value);
    let causes = LossCause::ALL;
    let cause = causes[(number % 11) as usize];
    let fits = matches!(cause, LossCause::NotSent(_)) == (state == MessageState::NotSent);
    MessageRow {
        producer: present(2, number % 50).map(|value| value as u32),
        sequence: present(3, u64::MAX - number),
        connection: present(5, u64::from(u32::MAX)).map(|value| value as u32),
        consumer: present(7, number % 3).map(|value| value as u32),
        due_ns: present(11, number * 1000),
        sent_ns: present(13, number * 1000 + 17),
        confirmed_ns: present(17, number * 1001),
        delivered_ns: present(19, number * 1003),
        state,
        cause: fits.then_some(cause),
        body_bytes: present(23, 120).map(|value| value as u32),
    }
}

#[test]
fn rows_of_several_groups_are_read_back_as_they_were() {
    let path = path("several");
    let rows = 2 * GROUP_ROWS as u64 + 3;
    let mut writer = MessageWriter::create(&path, &header()).unwrap();
    (0..rows).for_each(|number| writer.push(&row(number)).unwrap());
    assert!(!path.exists(), "a file has its name only once it is whole");
    writer.close().unwrap();
    let reader = MessageReader::open(&path).unwrap();
    assert_eq!(*reader.header(), header());
    let mut number = 0;
    let read = reader.each(|read| {
        assert_eq!(*read, row(number));
        number += 1;
        Ok::<(), RecordError>(())
    });
    read.unwrap();
    assert_eq!(number, rows);
    let names: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn an_empty_record_is_a_file_and_an_abandoned_one_is_none() {
    let path = path("empty");
    MessageWriter::create(&path, &header()).unwrap().abandon();
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    MessageWriter::create(&path, &header()).unwrap().close().unwrap();
    let reader = MessageReader::open(&path).unwrap();
    reader.each(|row| Err(RecordError::saying(&path, format!("{row:?}"), ""))).unwrap();
}

#[test]
fn damage_is_said_with_the_fix() {
    let path = path("damaged");
    let mut writer = MessageWriter::create(&path, &header()).unwrap();
    (0..1000).for_each(|number| writer.push(&row(number)).unwrap());
    writer.close().unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let error = MessageReader::open(&path).err().unwrap().to_string();
    assert!(error.contains("Parquet") && error.contains("--keep-messages"), "{error}");
}
