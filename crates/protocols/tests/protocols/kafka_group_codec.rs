//! Kafka's codec of consumer groups: bytes of another client, values that come back unchanged, the
//! division of partitions, and bytes that are wrong.

use proptest::prelude::*;
use weigh_protocols::kafka::codec::answers::OffsetOf;
use weigh_protocols::kafka::codec::embedded::{
    Assignment, put_assignment, put_subscription, read_assignment, share_of, subscribes,
};
use weigh_protocols::kafka::codec::groups::{
    self, Fellow, Join, Joined, MemberOf, put_find_coordinator, put_heartbeat, put_join_group,
    put_leave_group, put_offset_commit, put_offset_fetch, put_sync_group,
};
use weigh_protocols::kafka::codec::requests::FetchFrom;
use weigh_protocols::kafka::codec::{Flaw, answers, frame};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Written by kafka-python 3.0.12, as all texts of bytes in this file.
const SUBSCRIPTION: &str = "0000 00000001 0001 74 ffffffff";
const ASSIGNMENT: &str = "0000 00000001 0001 74 00000002 00000000 00000001 00000004 00000002";

const OWN: MemberOf<'_> = MemberOf { group: b"g", generation: 7, member: b"m" };

/// What one of the functions of the codec appends.
fn written(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out);
    out
}

#[test]
fn requests_have_the_bytes_of_another_client() {
    let own = written(|out| put_find_coordinator(out, 1, b"g"));
    assert_eq!(own, hex("00000013 000a 0001 00000001 0005 7765696768 0001 67 00"));
    let (subscription, assignment) = (hex(SUBSCRIPTION), hex(ASSIGNMENT));
    let join = Join {
        group: b"g",
        member: b"m",
        session_ms: 45_000,
        rebalance_ms: 300_000,
        subscription: &subscription,
    };
    let expected = "00000043 000b 0004 00000002 0005 7765696768
        0001 67 0000afc8 000493e0 0001 6d 0008 636f6e73756d6572
        00000001 0005 72616e6765 0000000d 0000 00000001 0001 74 ffffffff";
    assert_eq!(written(|out| put_join_group(out, 2, &join)), hex(expected));
    let given = [(b"m".to_vec(), assignment)];
    let expected = "00000041 000e 0001 00000003 0005 7765696768
        0001 67 00000007 0001 6d 00000001 0001 6d 0000001d
        0000 00000001 0001 74 00000002 00000000 00000001 00000004 00000002";
    assert_eq!(written(|out| put_sync_group(out, 3, &OWN, &given)), hex(expected));
    let expected = "00000019 000c 0001 00000004 0005 7765696768 0001 67 00000007 0001 6d";
    assert_eq!(written(|out| put_heartbeat(out, 4, &OWN)), hex(expected));
    let expected = "00000015 000d 0001 00000005 0005 7765696768 0001 67 0001 6d";
    assert_eq!(written(|out| put_leave_group(out, 5, &OWN)), hex(expected));
    let next = [FetchFrom { partition: 2, offset: 9 }];
    let expected = "00000032 0008 0005 00000006 0005 7765696768 0001 67 00000007 0001 6d
        00000001 0001 74 00000001 00000002 0000000000000009 ffff";
    let own = written(|out| put_offset_commit(out, 6, &OWN, b"t", next.into_iter()));
    assert_eq!(own, hex(expected));
    let expected = "00000021 0009 0003 00000007 0005 7765696768 0001 67
        00000001 0001 74 00000001 00000002";
    assert_eq!(written(|out| put_offset_fetch(out, 7, b"g", b"t", &[2])), hex(expected));
}

#[test]
fn what_members_say_to_each_other_has_the_bytes_of_another_client() {
    assert_eq!(written(|out| put_subscription(out, b"t")), hex(SUBSCRIPTION));
    assert_eq!(written(|out| put_assignment(out, b"t", &[0, 1], 2)), hex(ASSIGNMENT));
    assert_eq!(subscribes(&hex(SUBSCRIPTION), b"t"), Ok(true));
    assert_eq!(subscribes(&hex(SUBSCRIPTION), b"u"), Ok(false));
    // Version 3, with fields behind the user data that are not read.
    let newer = "0003 00000002 0001 75 0001 74 00000000 00000000 00000007 ffff";
    assert_eq!(subscribes(&hex(newer), b"t"), Ok(true));
    let read = read_assignment(&hex(ASSIGNMENT), b"t").unwrap();
    assert_eq!(read, Assignment { partitions: vec![0, 1], members: Some(2) });
    // Without user data, out of order and twice.
    let other = "0001 00000001 0001 74 00000003 00000002 00000001 00000002 ffffffff";
    let read = read_assignment(&hex(other), b"t").unwrap();
    assert_eq!(read, Assignment { partitions: vec![1, 2], members: None });
    assert_eq!(read_assignment(b"", b"t"), Ok(Assignment::default()));
}

#[test]
fn an_assignment_that_is_none_is_refused() {
    for (bytes, flaw) in [
        ("00", Flaw::Short),
        ("ffff 00000000 ffffffff", Flaw::Assignment),
        ("0000 00000001 0001 75 00000000 ffffffff", Flaw::Assignment),
        ("0000 7fffffff 0001 74", Flaw::Count),
        ("0000 00000001 0001 74 7fffffff 00000000", Flaw::Count),
        ("0000 00000000 00000009 00", Flaw::Short),
    ] {
        assert_eq!(read_assignment(&hex(bytes), b"t"), Err(flaw), "{bytes}");
    }
    assert_eq!(subscribes(b"\xff\xff\0\0\0\0\xff\xff\xff\xff", b"t"), Err(Flaw::Assignment));
    assert_eq!(subscribes(b"\0\0\0\0\0\x01\0\x09t", b"t"), Err(Flaw::Short));
}

#[test]
fn answers_are_those_of_another_program() {
    let found = hex("00000000 0000 ffff 00000001 0001 68 00002384");
    let found = groups::read_find_coordinator(&found).unwrap();
    assert_eq!((found.error, found.node, &*found.host, found.port), (0, 1, "h", 9092));
    let fields = hex("00000000 0000 00000007 0005 72616e6765 0001 6d 0001 6d
        00000001 0001 6d 0000000d 0000 00000001 0001 74 ffffffff");
    let subscription = hex(SUBSCRIPTION);
    let fellows = vec![Fellow { member: b"m", subscription: &subscription }];
    let expected = Joined { error: 0, generation: 7, leader: b"m", member: b"m", fellows };
    assert_eq!(groups::read_join_group(&fields), Ok(expected));
    let fields = [hex("00000000 0000 0000001d"), hex(ASSIGNMENT)].concat();
    assert_eq!(groups::read_sync_group(&fields), Ok((0, &hex(ASSIGNMENT)[..])));
    assert_eq!(groups::read_heartbeat(&hex("00000000 001b")), Ok(27));
    let fields = hex("00000000 00000001 0001 74 00000002 00000001 0000 00000002 0016");
    assert_eq!(groups::read_offset_commit(&fields), Ok(22));
    let fields = hex("00000000 00000001 0001 74 00000001
        00000002 0000000000000009 0000 0000 0000");
    let expected = vec![OffsetOf { partition: 2, error: 0, offset: 9 }];
    assert_eq!(groups::read_offset_fetch(&fields), Ok((0, expected)));
}

/// The guide of "range": the first members get one more where partitions cannot be divided evenly.
#[test]
fn partitions_are_divided_by_range() {
    let all = [0, 1, 2, 3, 4, 5, 6];
    let shares: Vec<&[i32]> = (0..3).map(|place| share_of(&all, place, 3)).collect();
    assert_eq!(shares, [&[0, 1, 2][..], &[3, 4], &[5, 6]]);
    assert_eq!(share_of(&all[..2], 2, 3), [0; 0], "more members than partitions");
}

proptest! {
    #[test]
    fn shares_are_all_partitions_once(count in 0..50usize, members in 1..60usize) {
        let all: Vec<i32> = (0..count as i32).collect();
        let shares: Vec<&[i32]> = (0..members).map(|own| share_of(&all, own, members)).collect();
        prop_assert_eq!(&shares.concat(), &all);
        let sizes = || shares.iter().map(|own| own.len());
        prop_assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
    }

    #[test]
    fn assignments_come_back(
        partitions in proptest::collection::btree_set(any::<i32>(), 0..20),
        members: u32,
        topic in "[a-z]{1,20}",
    ) {
        let partitions: Vec<i32> = partitions.into_iter().collect();
        let bytes = written(|out| put_assignment(out, topic.as_bytes(), &partitions, members));
        let read = read_assignment(&bytes, topic.as_bytes());
        prop_assert_eq!(read, Ok(Assignment { partitions, members: Some(members) }));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let _ = groups::read_find_coordinator(&bytes);
        let _ = groups::read_join_group(&bytes);
        let _ = groups::read_sync_group(&bytes);
        let _ = groups::read_heartbeat(&bytes);
        let _ = groups::read_offset_commit(&bytes);
        let _ = groups::read_offset_fetch(&bytes);
        let _ = read_assignment(&bytes, b"t");
        let _ = subscribes(&bytes, b"t");
        let _ = answers::read_head(&bytes);
        let _ = frame::read_frame(&bytes, 1 << 20);
    }
}
