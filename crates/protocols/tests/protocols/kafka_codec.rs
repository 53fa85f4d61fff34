//! Kafka's codec: bytes of the protocol guide and of another client, values that come back
//! unchanged, and bytes that are wrong.

use proptest::prelude::*;
use weigh_protocols::kafka::codec::batch::{self, Producer};
use weigh_protocols::kafka::codec::requests::{
    FetchFrom, FetchLimits, Produce, put_api_versions, put_create_topic, put_fetch,
    put_init_producer_id, put_list_offsets, put_metadata, put_produce,
};
use weigh_protocols::kafka::codec::{
    Flaw, Reader, answers, frame, put_unsigned_varint, put_varlong, varlong_bytes,
};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn records(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut records = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        batch::put_record(&mut records, index as i32, body);
    }
    records
}

/// Written by kafka-python 3.0.12 (`DefaultRecordBatchBuilder`): three messages without keys and
/// timestamps of an idempotent producer. It writes 0 as the epoch of the leader, where the clients
/// of Apache Kafka write -1; the checksum does not cover it.
const OF_KAFKA_PYTHON: &str = "
    0000000000000000 00000093 00000000 02 789951a5 0000 00000002 ffffffffffffffff ffffffffffffffff
    0000000000000007 0001 00000005 00000003
    16 00 00 00 01 0a 68656c6c6f 00
    9a01 00 00 02 01 8c01
    7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878
    78787878787878787878787878787878787878787878 78
    00
    0c 00 00 04 01 00 00";

#[test]
fn a_batch_has_the_bytes_of_another_client() {
    let mut golden = hex(OF_KAFKA_PYTHON);
    let missing = 12 + 0x93 - golden.len() as i64;
    assert_eq!(missing, 0, "the text above has {missing} bytes too few");
    let bodies = [b"hello".to_vec(), vec![b'x'; 70], Vec::new()];
    let producer = Producer { id: 7, epoch: 1, sequence: 5 };
    let mut own = Vec::new();
    batch::put(&mut own, producer, 3, &records(&bodies));
    batch::place(&mut own, 0, 0);
    assert_eq!(own, golden);
    let read = batch::read(&golden).unwrap().unwrap();
    assert_eq!((read.producer, read.count, read.next_offset()), (producer, 3, 3));
    let values: Vec<_> = read.records().unwrap().map(|own| own.unwrap().value.unwrap()).collect();
    assert_eq!(values, bodies);
    golden[70] ^= 1;
    assert_eq!(batch::read(&golden), Err(Flaw::Checksum));
}

/// The protocol guide: "Request Header v1", and each request in its version.
#[test]
fn requests_have_the_bytes_of_the_guide() {
    let mut out = Vec::new();
    put_api_versions(&mut out, 1);
    assert_eq!(out, hex("0000000f 0012 0000 00000001 0005 7765696768"));
    out.clear();
    put_metadata(&mut out, 2, b"t");
    let expected = hex("00000017 0003 0004 00000002 0005 7765696768 00000001 0001 74 00");
    assert_eq!(out, expected);
    out.clear();
    put_create_topic(&mut out, 3, b"t", 4, 1);
    let expected = "0000002d 0013 0002 00000003 0005 7765696768
        00000001 0001 74 00000004 0001 00000000 00000000 00007530 00";
    let mut expected = hex(expected);
    expected[3] = (expected.len() - 4) as u8;
    assert_eq!(out, expected);
    out.clear();
    put_init_producer_id(&mut out, 4);
    assert_eq!(out, hex("00000015 0016 0000 00000004 0005 7765696768 ffff 7fffffff"));
    out.clear();
    put_list_offsets(&mut out, 5, b"t", &[2]);
    let expected = "0000002a 0002 0001 00000005 0005 7765696768
        ffffffff 00000001 0001 74 00000001 00000002 ffffffffffffffff";
    assert_eq!(out, hex(expected));
    out.clear();
    let limits =
        FetchLimits { wait_ms: 500, bytes_min: 1, bytes_max: 1024, partition_bytes_max: 512 };
    let from = [FetchFrom { partition: 2, offset: 9 }];
    put_fetch(&mut out, 6, &limits, b"t", from.into_iter());
    let expected = "0000003b 0001 0004 00000006 0005 7765696768
        ffffffff 000001f4 00000001 00000400 00
        00000001 0001 74 00000001 00000002 0000000000000009 00000200";
    assert_eq!(out, hex(expected));
}

/// A message of 100 bytes: 19 bytes of head, 26 and the topic of Produce, 61 of the batch, and 9 of
/// its record.
#[test]
fn a_message_has_the_size_of_the_guide() {
    let records = records(&[vec![b'x'; 100]]);
    assert_eq!(records.len(), 100 + 9);
    let produce = Produce {
        topic: b"weigh-0001",
        partition: 0,
        acks: -1,
        producer: Producer::NONE,
        count: 1,
        records: &records,
    };
    let mut out = Vec::new();
    put_produce(&mut out, 1, &produce);
    assert_eq!(out.len(), 19 + 26 + 10 + batch::HEAD_BYTES + 109);
    let (content, bytes) = frame::read_frame(&out, 1 << 20).unwrap().unwrap();
    assert_eq!((content.len(), bytes), (out.len() - 4, out.len()));
}

/// Zigzag, by the examples of Protocol Buffers, to which the guide refers.
#[test]
fn numbers_of_variable_length_are_those_of_protocol_buffers() {
    for (value, bytes) in [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (150, "ac02"),
        (0x7fff_ffff, "feffffff0f"),
        (-0x8000_0000, "ffffffff0f"),
    ] {
        let mut out = Vec::new();
        put_varlong(&mut out, value);
        assert_eq!((out.clone(), varlong_bytes(value)), (hex(bytes), out.len()), "{value}");
        assert_eq!(Reader::new(&out).varint().map(i64::from), Ok(value));
    }
    let mut out = Vec::new();
    put_unsigned_varint(&mut out, 300);
    assert_eq!(out, hex("ac02"));
    assert_eq!(Reader::new(&[0xff; 11]).unsigned_varint(), Err(Flaw::Varint));
    assert_eq!(Reader::new(&[0x80]).unsigned_varint(), Err(Flaw::Short));
}

/// Answers of Apache Kafka 4.0.2, shortened.
#[test]
fn answers_are_read_in_their_versions() {
    let fields = hex("0000 00000002 0000 0000 000c 0001 0004 0011");
    let (error, versions) = answers::read_api_versions(&fields).unwrap();
    assert_eq!((error, versions.len(), versions[1].highest), (0, 2, 17));
    let fields = hex("00000000
        00000001 00000001 0009 3132372e302e302e31 00004a94 ffff
        0003 616263 00000001
        00000001 0000 0001 74 00
        00000002
        0000 00000001 00000001 00000001 00000001 00000001 00000001
        0005 00000000 ffffffff 00000001 00000001 00000000");
    let metadata = answers::read_metadata(&fields).unwrap();
    assert_eq!((&*metadata.brokers[0].host, metadata.brokers[0].port), ("127.0.0.1", 19_092));
    let leaders: Vec<_> = metadata.partitions.iter().map(|own| (own.index, own.leader)).collect();
    assert_eq!(leaders, [(0, -1), (1, 1)], "in the order of their numbers");
    assert_eq!((metadata.error, metadata.partitions[0].error), (0, 5));
    let fields = hex("00000001 0001 74 00000001 00000002 0006 ffffffffffffffff
        ffffffffffffffff ffffffffffffffff 00000000");
    assert_eq!(answers::read_produce(&fields), Ok((6, -1)));
    let fields = hex("00000000 0000 0000000000000007 0001");
    assert_eq!(answers::read_init_producer_id(&fields), Ok((0, 7, 1)));
    assert_eq!(answers::read_init_producer_id(&fields[1..]), Err(Flaw::Short));
    let fields = hex("00000000 00000001 0001 74 0024 0001 78");
    assert_eq!(answers::read_create_topic(&fields), Ok((36, "x".to_owned())));
}

#[test]
fn wrong_bytes_are_named() {
    assert_eq!(frame::read_frame(b"HTTP/1.1 400", 1 << 20), Err(Flaw::FrameLength(0x4854_5450)));
    assert_eq!(frame::read_frame(&[0xff; 8], 1 << 20), Err(Flaw::FrameLength(-1)));
    assert_eq!(frame::read_frame(&[0, 0, 0], 9), Ok(None));
    assert_eq!(Reader::new(&hex("7fffffff 0000")).count(1), Err(Flaw::Count));
    assert_eq!(Reader::new(&hex("ffffffff")).count(1), Ok(0));
    assert_eq!(Reader::new(&hex("fffe 00")).nullable_string(), Err(Flaw::Count));
    let mut old = vec![0; 80];
    old[11] = 60;
    old[16] = 1;
    assert_eq!(batch::read(&old), Err(Flaw::Magic(1)));
    let mut packed = Vec::new();
    batch::put(&mut packed, Producer::NONE, 1, b"???");
    packed[22] = 4;
    let sum = weigh_protocols::kafka::codec::crc32c(&packed[21..]);
    packed[17..21].copy_from_slice(&sum.to_be_bytes());
    let flaw = batch::read(&packed).unwrap().unwrap().records().unwrap_err();
    assert_eq!(flaw, Flaw::Compressed(4));
    assert!(flaw.to_string().contains("zstd"), "{flaw}");
}

proptest! {
    #[test]
    fn batches_come_back_unchanged(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..20),
        id in -1i64..1 << 40,
        sequence in any::<i32>(),
        offset in 0i64..1 << 50,
    ) {
        let producer = Producer { id, epoch: 3, sequence };
        let mut bytes = Vec::new();
        batch::put(&mut bytes, producer, bodies.len() as i32, &records(&bodies));
        batch::place(&mut bytes, offset, 9);
        let read = batch::read(&bytes).unwrap().unwrap();
        prop_assert_eq!((read.bytes.len(), read.base_offset), (bytes.len(), offset));
        prop_assert_eq!((read.producer, read.count as usize), (producer, bodies.len()));
        for (index, record) in read.records().unwrap().enumerate() {
            let record = record.unwrap();
            prop_assert_eq!(record.offset_delta as usize, index);
            prop_assert_eq!(record.value.unwrap(), &bodies[index][..]);
        }
        for end in 0..bytes.len() {
            prop_assert_eq!(batch::read(&bytes[..end]), Ok(None));
        }
    }

    #[test]
    fn numbers_come_back_unchanged(value in any::<i64>()) {
        let mut out = Vec::new();
        put_varlong(&mut out, value);
        prop_assert_eq!(out.len(), varlong_bytes(value));
        prop_assert_eq!(Reader::new(&out).varlong(), Ok(value));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = frame::read_frame(&bytes, 100);
        let _ = frame::read_request_head(&mut Reader::new(&bytes));
        let _ = answers::read_api_versions(&bytes);
        let _ = answers::read_metadata(&bytes);
        let _ = answers::read_create_topic(&bytes);
        let _ = answers::read_list_offsets(&bytes);
        let _ = answers::read_produce(&bytes);
        let _ = answers::read_init_producer_id(&bytes);
        let _ = answers::read_fetch::<Flaw>(&bytes, |_| Ok(()));
        if let Ok(Some(found)) = batch::read(&bytes) {
            let _ = found.records().map(Iterator::count);
        }
    }
}
