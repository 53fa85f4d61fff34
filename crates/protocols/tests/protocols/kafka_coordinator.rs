//! The coordinator of consumer groups in Kafka's reference server: generations, members that are
//! silent, errors by their names, and committed offsets.

use crate::rig::Shard;
use weigh_model::Nanos;
use weigh_model::protocol::Protocol;
use weigh_model::server::Server;
use weigh_model::trial::Settings;
use weigh_protocols::kafka::Kafka;
use weigh_protocols::kafka::codec::frame::{
    Api, CREATE_TOPICS, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH,
    SYNC_GROUP, begin_request, end_frame,
};
use weigh_protocols::kafka::codec::groups::{self, Joined};
use weigh_protocols::kafka::codec::{
    Reader, answers, put_bytes, put_count, put_i16, put_i32, put_i64, put_null_string, put_string,
};

const UNKNOWN_MEMBER_ID: i16 = 25;
const ILLEGAL_GENERATION: i16 = 22;
const REBALANCE_IN_PROGRESS: i16 = 27;

/// A request in a version, with these fields.
fn request(api: Api, version: i16, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let at = begin_request(&mut out, Api { version, ..api }, 1);
    put(&mut out);
    end_frame(&mut out, at);
    out
}

/// JoinGroup without ids before membership, with a session of 1 s and a rebalance of 5 s.
fn join(member: &str, protocols: &[(&str, &str)]) -> Vec<u8> {
    request(JOIN_GROUP, 2, |out| {
        put_string(out, b"g");
        put_i32(out, 1000);
        put_i32(out, 5000);
        put_string(out, member.as_bytes());
        put_string(out, b"consumer");
        put_count(out, protocols.len());
        for (name, subscription) in protocols {
            put_string(out, name.as_bytes());
            put_bytes(out, subscription.as_bytes());
        }
    })
}

fn of_member(api: Api, generation: i32, member: &str) -> Vec<u8> {
    request(api, 1, |out| {
        put_string(out, b"g");
        if api != LEAVE_GROUP {
            put_i32(out, generation);
        }
        put_string(out, member.as_bytes());
        if api == SYNC_GROUP {
            put_count(out, 0);
        }
    })
}

fn sync(generation: i32, member: &str, given: &[(&str, &str)]) -> Vec<u8> {
    request(SYNC_GROUP, 1, |out| {
        put_string(out, b"g");
        put_i32(out, generation);
        put_string(out, member.as_bytes());
        put_count(out, given.len());
        for (member, assignment) in given {
            put_string(out, member.as_bytes());
            put_bytes(out, assignment.as_bytes());
        }
    })
}

fn commit(generation: i32, member: &str, offset: i64) -> Vec<u8> {
    request(OFFSET_COMMIT, 5, |out| {
        put_string(out, b"g");
        put_i32(out, generation);
        put_string(out, member.as_bytes());
        put_count(out, 1);
        put_string(out, b"t");
        put_count(out, 1);
        put_i32(out, 0);
        put_i64(out, offset);
        put_null_string(out);
    })
}

/// A server with the topic `t` of one partition.
fn shard() -> Shard {
    let mut shard = Shard::of(&Kafka, &[]);
    let create = request(CREATE_TOPICS, 2, |out| {
        put_count(out, 1);
        put_string(out, b"t");
        put_i32(out, 1);
        put_i16(out, 1);
        put_count(out, 0);
        put_count(out, 0);
        put_i32(out, 1000);
        out.push(0);
    });
    shard.answer(&create);
    (1..=4).for_each(|connection| shard.accept(connection));
    shard
}

/// The fields of the answer to a request; empty if it waits.
fn asked(shard: &mut Shard, connection: u32, request: &[u8]) -> Vec<u8> {
    shard.feed(connection, request).unwrap();
    said(shard, connection)
}

/// The fields of what was answered since.
fn said(shard: &mut Shard, connection: u32) -> Vec<u8> {
    shard.staged(connection).get(8..).map(<[u8]>::to_vec).unwrap_or_default()
}

fn error(fields: &[u8]) -> i16 {
    let mut reader = Reader::new(fields);
    reader.i32().unwrap();
    reader.i16().unwrap()
}

/// Members as the leader sees them.
fn fellows(fields: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let joined: Joined<'_> = groups::read_join_group(fields).unwrap();
    joined.fellows.iter().map(|own| (text(own.member), text(own.subscription))).collect()
}

fn member_of(fields: &[u8]) -> String {
    String::from_utf8(groups::read_join_group(fields).unwrap().member.to_vec()).unwrap()
}

const RANGE: &[(&str, &str)] = &[("range", "r")];

/// Two members in a group of generation 2, the first of them its leader.
fn of_two(shard: &mut Shard) -> (String, String) {
    let first = member_of(&asked(shard, 1, &join("", RANGE)));
    assert!(asked(shard, 2, &join("", RANGE)).is_empty(), "it waits for the first");
    let beat = asked(shard, 1, &of_member(HEARTBEAT, 1, &first));
    assert_eq!(error(&beat), REBALANCE_IN_PROGRESS);
    let leader = asked(shard, 1, &join(&first, RANGE));
    let other = said(shard, 2);
    let (leader, other) = (leader, other);
    let joined = groups::read_join_group(&leader).unwrap();
    assert_eq!((joined.error, joined.generation), (0, 2));
    assert_eq!((joined.leader, fellows(&leader).len()), (first.as_bytes(), 2));
    assert_eq!(fellows(&other), []);
    let second = member_of(&other);
    assert!(asked(shard, 2, &sync(2, &second, &[])).is_empty(), "it waits for the leader");
    let given = [(&*first, "a"), (&*second, "b")];
    let own = asked(shard, 1, &sync(2, &first, &given));
    assert_eq!(groups::read_sync_group(&own), Ok((0, &b"a"[..])));
    assert_eq!(groups::read_sync_group(&said(shard, 2)), Ok((0, &b"b"[..])));
    (first, second)
}

#[test]
fn members_form_generations() {
    let mut shard = shard();
    let (first, second) = of_two(&mut shard);
    for (generation, member, expected) in [
        (2, &*first, 0),
        (2, &*second, 0),
        (1, &*second, ILLEGAL_GENERATION),
        (2, "stranger", UNKNOWN_MEMBER_ID),
    ] {
        let beat = asked(&mut shard, 1, &of_member(HEARTBEAT, generation, member));
        assert_eq!(error(&beat), expected, "{generation} {member}");
    }
    let again = asked(&mut shard, 2, &join(&second, RANGE));
    assert_eq!(groups::read_join_group(&again).unwrap().generation, 2, "nothing has changed");
    assert_eq!(error(&asked(&mut shard, 2, &of_member(LEAVE_GROUP, 0, &second))), 0);
    let beat = asked(&mut shard, 1, &of_member(HEARTBEAT, 2, &first));
    assert_eq!(error(&beat), REBALANCE_IN_PROGRESS);
    let alone = asked(&mut shard, 1, &join(&first, RANGE));
    assert_eq!(fellows(&alone), [(first, "r".to_owned())]);
}

/// From version 4 on a member gets an id, and asks with it again (KIP-394).
#[test]
fn a_member_needs_an_id() {
    let mut shard = shard();
    let asks = |member: &[u8], version: i16| {
        request(JOIN_GROUP, version, |out| {
            put_string(out, b"g");
            put_i32(out, 1000);
            put_i32(out, 5000);
            put_string(out, member);
            if version >= 5 {
                put_null_string(out);
            }
            put_string(out, b"consumer");
            put_count(out, 1);
            put_string(out, b"range");
            put_bytes(out, b"r");
        })
    };
    let required = asked(&mut shard, 1, &asks(b"", 4));
    let required = groups::read_join_group(&required).unwrap();
    assert_eq!((required.error, required.generation), (79, -1));
    let joined = asked(&mut shard, 1, &asks(required.member, 4));
    let joined = groups::read_join_group(&joined).unwrap();
    assert_eq!((joined.error, joined.leader), (0, required.member));
    // An id that was not used for as long as a session is not known any more.
    let late = asked(&mut shard, 2, &asks(b"", 5));
    shard.now = Nanos::from_secs(2);
    let late = groups::read_join_group(&late).unwrap();
    let unknown = asked(&mut shard, 2, &asks(late.member, 5));
    assert_eq!(error(&unknown), UNKNOWN_MEMBER_ID);
}

#[test]
fn members_that_are_silent_are_removed() {
    let mut shard = shard();
    let (first, second) = of_two(&mut shard);
    for step in 1..=15 {
        shard.pass(Nanos::from_millis(100 * step));
        let beat = asked(&mut shard, 1, &of_member(HEARTBEAT, 2, &first));
        let expected = if step < 10 { 0 } else { REBALANCE_IN_PROGRESS };
        assert_eq!(error(&beat), expected, "after {step} steps of 100 ms");
    }
    assert_eq!(fellows(&asked(&mut shard, 1, &join(&first, RANGE))).len(), 1);
    let beat = asked(&mut shard, 2, &of_member(HEARTBEAT, 2, &second));
    assert_eq!(error(&beat), UNKNOWN_MEMBER_ID);
}

/// A rebalance waits for a member that does not come until its session is over, and for one that
/// sends heartbeats and does not join until the time of the rebalance is over.
#[test]
fn a_rebalance_ends_without_those_that_do_not_come() {
    let mut shard = shard();
    let (first, _) = of_two(&mut shard);
    assert!(asked(&mut shard, 3, &join("", RANGE)).is_empty());
    assert!(asked(&mut shard, 1, &join(&first, RANGE)).is_empty());
    shard.pass(Nanos::from_millis(900));
    assert!(said(&mut shard, 1).is_empty());
    shard.pass(Nanos::from_millis(1100));
    assert_eq!(fellows(&said(&mut shard, 1)).len(), 2);
    assert_eq!(error(&said(&mut shard, 3)), 0);

    let mut shard = self::shard();
    let (first, second) = of_two(&mut shard);
    assert!(asked(&mut shard, 1, &join(&first, RANGE)).is_empty());
    for step in 1..=60 {
        shard.pass(Nanos::from_millis(100 * step));
        let beat = asked(&mut shard, 2, &of_member(HEARTBEAT, 2, &second));
        let expected = if step < 50 { REBALANCE_IN_PROGRESS } else { UNKNOWN_MEMBER_ID };
        assert_eq!(error(&beat), expected, "after {step} steps of 100 ms");
    }
    assert_eq!(fellows(&said(&mut shard, 1)).len(), 1);
}

/// No partitions are assigned: members that wait for it are to join again.
#[test]
fn a_leader_that_is_silent_is_removed() {
    let mut shard = shard();
    let (first, second) = of_two(&mut shard);
    assert!(asked(&mut shard, 1, &join(&first, RANGE)).is_empty());
    let other = asked(&mut shard, 2, &join(&second, RANGE));
    assert_eq!(groups::read_join_group(&other).unwrap().generation, 3);
    assert_eq!(fellows(&said(&mut shard, 1)).len(), 2);
    assert!(asked(&mut shard, 2, &sync(3, &second, &[])).is_empty());
    shard.pass(Nanos::from_millis(1100));
    let failed = said(&mut shard, 2);
    assert_eq!(groups::read_sync_group(&failed), Ok((REBALANCE_IN_PROGRESS, &b""[..])));
    assert_eq!(fellows(&asked(&mut shard, 2, &join(&second, RANGE))).len(), 1);
}

#[test]
fn members_need_a_strategy_that_all_know() {
    let mut shard = shard();
    let both = [("sticky", "s"), ("range", "r")];
    let first = member_of(&asked(&mut shard, 1, &join("", &both)));
    let refused = asked(&mut shard, 2, &join("", &[("other", "o")]));
    assert_eq!(error(&refused), 23);
    assert_eq!(error(&asked(&mut shard, 2, &join("", &[]))), 23);
    assert!(asked(&mut shard, 2, &join("", RANGE)).is_empty());
    let leader = asked(&mut shard, 1, &join(&first, &both));
    assert!(fellows(&leader).iter().all(|(_, subscription)| subscription == "r"), "{leader:?}");
    assert!(leader.windows(5).any(|own| own == b"range"));
    // An empty name is not that of a group.
    let nameless = request(HEARTBEAT, 1, |out| {
        put_string(out, b"");
        put_i32(out, 1);
        put_string(out, b"m");
    });
    assert_eq!(error(&asked(&mut shard, 3, &nameless)), UNKNOWN_MEMBER_ID);
}

#[test]
fn offsets_are_kept_for_the_group() {
    let mut shard = shard();
    let fetch = request(OFFSET_FETCH, 3, |out| {
        put_string(out, b"g");
        put_i32(out, -1);
    });
    let fetched = |shard: &mut Shard| {
        let fields = asked(shard, 4, &fetch);
        let (error, found) = groups::read_offset_fetch(&fields).unwrap();
        assert_eq!(error, 0);
        found.iter().map(|own| own.offset).collect::<Vec<i64>>()
    };
    assert!(fetched(&mut shard).is_empty());
    // Without members a program may keep its offsets under the name of a group.
    let first_commit = asked(&mut shard, 4, &commit(-1, "", 3));
    assert_eq!(groups::read_offset_commit(&first_commit), Ok(0));
    let (first, second) = of_two(&mut shard);
    for (generation, member, expected) in [
        (2, &*first, 0),
        (2, &*second, 0),
        (1, &*first, ILLEGAL_GENERATION),
        (2, "stranger", UNKNOWN_MEMBER_ID),
        (-1, "", UNKNOWN_MEMBER_ID),
    ] {
        let committed = asked(&mut shard, 4, &commit(generation, member, 7));
        assert_eq!(groups::read_offset_commit(&committed), Ok(expected), "{generation} {member}");
    }
    assert_eq!(fetched(&mut shard), [7]);
    // A member commits before it joins again.
    assert!(asked(&mut shard, 3, &join("", RANGE)).is_empty());
    let committed = asked(&mut shard, 1, &commit(2, &first, 8));
    assert_eq!(groups::read_offset_commit(&committed), Ok(0));
    assert_eq!(fetched(&mut shard), [8]);
    let named = request(OFFSET_FETCH, 3, |out| {
        put_string(out, b"other");
        put_count(out, 1);
        put_string(out, b"t");
        put_count(out, 1);
        put_i32(out, 0);
    });
    let found = groups::read_offset_fetch(&asked(&mut shard, 4, &named)).unwrap();
    assert_eq!(found, (0, vec![answers::OffsetOf { partition: 0, error: 0, offset: -1 }]));
}

/// A connection that is gone waits for nothing, and its member is removed like a silent one.
#[test]
fn a_connection_that_is_lost_ends_no_membership() {
    let mut shard = shard();
    let (first, second) = of_two(&mut shard);
    assert!(asked(&mut shard, 1, &join(&first, RANGE)).is_empty());
    shard.close(1);
    assert!(shard.server.next_wake().is_none());
    shard.accept(1);
    assert!(asked(&mut shard, 2, &join(&second, RANGE)).len() > 20, "the first has joined");
    let again = asked(&mut shard, 1, &join(&first, RANGE));
    assert_eq!(groups::read_join_group(&again).unwrap().generation, 3);
}

/// Members on several shards are answered by the shard of each.
#[test]
fn shards_have_the_same_groups() {
    let settings = Settings::new("kafka", Kafka.settings(), []).unwrap();
    let host = Kafka.host(&settings).unwrap();
    let mut shards = [0, 1].map(|own| Shard::new((host.make)(own)));
    shards.iter_mut().for_each(|shard| shard.accept(1));
    let first = member_of(&asked(&mut shards[0], 1, &join("", RANGE)));
    assert!(asked(&mut shards[1], 1, &join("", RANGE)).is_empty());
    let leader = asked(&mut shards[0], 1, &join(&first, RANGE));
    assert_eq!(fellows(&leader).len(), 2);
    assert_eq!(shards[0].desk.notified, [1]);
    let Shard { server, desk, now, .. } = &mut shards[1];
    Server::notified(&mut **server, *now, desk);
    let second = member_of(&said(&mut shards[1], 1));
    assert!(asked(&mut shards[1], 1, &sync(2, &second, &[])).is_empty());
    asked(&mut shards[0], 1, &sync(2, &first, &[(&second, "b")]));
    let Shard { server, desk, now, .. } = &mut shards[1];
    Server::notified(&mut **server, *now, desk);
    assert_eq!(groups::read_sync_group(&said(&mut shards[1], 1)), Ok((0, &b"b"[..])));
}
