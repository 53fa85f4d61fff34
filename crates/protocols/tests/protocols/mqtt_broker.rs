//! The reference broker, feature by feature, over bytes in memory and on virtual time.

use crate::mqtt_world::{Peer, World, hello, message};
use weigh_model::Nanos;
use weigh_protocols::mqtt::codec::{
    Ack, AckKind, Connect, Disconnect, Id, Options, Packet, Properties, Publish, Qos, Section,
    Unsubscribe, Version, Will,
};
use weigh_stats::random::Random;

use Qos::{AtLeastOnce, AtMostOnce, ExactlyOnce};
use Version::{V5, V311};

const SECOND: Nanos = Nanos::from_secs(1);

fn publish(world: &mut World, peer: Peer, version: Version, publish: Publish<'_>) {
    world.send(peer, version, &Packet::Publish(publish));
}

fn listener(world: &mut World, version: Version, name: &str, filter: &str, qos: Qos) -> Peer {
    let peer = world.join(&hello(version, name));
    assert_eq!(world.subscribe(peer, version, filter, Options::plain(qos), 0), qos as u8);
    peer
}

fn number(id: Id, value: u32) -> Section {
    let mut section = Section::default();
    section.number(id, value);
    section
}

#[test]
fn wildcards_choose_topics_and_the_lower_qos_counts() {
    let mut world = World::new(&[]);
    let plus = listener(&mut world, V311, "plus", "a/+/c", AtLeastOnce);
    let hash = listener(&mut world, V5, "hash", "#", ExactlyOnce);
    let exact = listener(&mut world, V311, "exact", "a/b/c", AtMostOnce);
    let sender = world.join(&hello(V311, "sender"));
    for topic in ["a/b/c", "a/x/c", "a/b", "$SYS/b"] {
        publish(&mut world, sender, V311, message(AtLeastOnce, topic, topic));
    }
    assert_eq!(world.lines(plus, V311), ["a/b/c q1 a/b/c", "a/x/c q1 a/x/c"]);
    assert_eq!(world.lines(hash, V5), ["a/b/c q1 a/b/c", "a/x/c q1 a/x/c", "a/b q1 a/b"]);
    assert_eq!(world.lines(exact, V311), ["a/b/c q0 a/b/c"]);
    assert_eq!(world.lines(sender, V311), vec!["Puback 1 0x0"; 4]);
}

#[test]
fn overlapping_subscriptions_give_one_copy_with_all_identifiers() {
    let mut world = World::new(&[]);
    let peer = world.join(&hello(V5, "both"));
    world.subscribe(peer, V5, "a/#", Options::plain(AtMostOnce), 5);
    world.subscribe(peer, V5, "a/b", Options::plain(AtLeastOnce), 9);
    publish(&mut world, peer, V5, message(AtLeastOnce, "a/b", "x"));
    let lines = world.lines(peer, V5);
    assert_eq!(lines[0], "a/b q1 x SubscriptionIdentifier=5 SubscriptionIdentifier=9");
    assert_eq!(lines[1..], ["Puback 1 0x0"]);
}

#[test]
fn subscriptions_end_and_say_whether_they_were() {
    let mut world = World::new(&[]);
    let peer = listener(&mut world, V5, "s", "a/b", AtMostOnce);
    let mut raw_filters = Vec::new();
    Unsubscribe::put("a/b", &mut raw_filters);
    Unsubscribe::put("never", &mut raw_filters);
    let properties = Properties::NONE;
    let leave = Unsubscribe { packet_id: 4, properties, raw_filters: &raw_filters };
    world.send(peer, V5, &Packet::Unsubscribe(leave));
    publish(&mut world, peer, V5, message(AtLeastOnce, "a/b", "x"));
    assert_eq!(world.lines(peer, V5), ["unsuback [0, 17]", "Puback 1 0x10"]);
    for (filter, code) in [("a/#/b", 0x8F), ("$share/g", 0x8F), ("a+", 0x8F)] {
        assert_eq!(world.subscribe(peer, V5, filter, Options::plain(AtMostOnce), 0), code);
    }
    let deep = "/".repeat(300);
    assert_eq!(world.subscribe(peer, V5, &deep, Options::plain(AtMostOnce), 0), 0x8F);
    let old = world.join(&hello(V311, "old"));
    assert_eq!(world.subscribe(old, V311, "a/#/b", Options::plain(AtMostOnce), 0), 0x80);
}

#[test]
fn no_local_keeps_own_messages_away() {
    let mut world = World::new(&[]);
    let peer = world.join(&hello(V5, "me"));
    let options = Options { no_local: true, ..Options::plain(AtMostOnce) };
    world.subscribe(peer, V5, "t", options, 0);
    publish(&mut world, peer, V5, message(AtMostOnce, "t", "mine"));
    let other = world.join(&hello(V5, "other"));
    publish(&mut world, other, V5, message(AtMostOnce, "t", "theirs"));
    assert_eq!(world.lines(peer, V5), ["t q0 theirs"]);
}

#[test]
fn retained_messages_wait_for_subscribers() {
    let mut world = World::new(&[]);
    let sender = world.join(&hello(V5, "sender"));
    let kept = |body| Publish { retain: true, ..message(AtLeastOnce, "a/b", body) };
    let standing = listener(&mut world, V5, "standing", "a/b", AtLeastOnce);
    for body in ["old", "new"] {
        publish(&mut world, sender, V5, kept(body));
    }
    assert_eq!(world.lines(standing, V5), ["a/b q1 old", "a/b q1 new"], "not retained to these");
    let late = world.join(&hello(V5, "late"));
    let handling = |retain_handling| Options { retain_handling, ..Options::plain(AtMostOnce) };
    world.subscribe(late, V5, "a/+", handling(2), 0);
    assert!(world.lines(late, V5).is_empty());
    world.subscribe(late, V5, "a/+", handling(1), 0);
    assert!(world.lines(late, V5).is_empty(), "the subscription is not new");
    world.subscribe(late, V5, "a/+", handling(0), 3);
    assert_eq!(world.lines(late, V5), ["a/b q0 retain new SubscriptionIdentifier=3"]);
    world.subscribe(late, V5, "$share/g/a/+", handling(0), 0);
    assert!(world.lines(late, V5).is_empty(), "shared subscriptions get none");
    let as_published = Options { retain_as_published: true, ..Options::plain(AtMostOnce) };
    world.subscribe(standing, V5, "a/b", as_published, 0);
    assert_eq!(world.lines(standing, V5), ["a/b q0 retain new"]);
    publish(&mut world, sender, V5, kept(""));
    assert_eq!(world.lines(standing, V5), ["a/b q0 retain "]);
    let after = listener(&mut world, V311, "after", "a/b", AtMostOnce);
    assert!(world.lines(after, V311).is_empty(), "an empty body clears it");
}

#[test]
fn messages_age_in_queues_and_while_retained() {
    let mut world = World::new(&[]);
    let section = number(Id::SessionExpiryInterval, 100);
    let persistent =
        Connect { properties: section.properties(), clean: false, ..hello(V5, "away") };
    let away = world.join(&persistent);
    world.subscribe(away, V5, "t", Options::plain(AtLeastOnce), 0);
    world.cut(away);
    let sender = world.join(&hello(V5, "sender"));
    for (body, seconds) in [("short", 5), ("long", 50)] {
        let section = number(Id::MessageExpiryInterval, seconds);
        let properties = section.properties();
        publish(
            &mut world,
            sender,
            V5,
            Publish { properties, retain: true, ..message(AtLeastOnce, "t", body) },
        );
    }
    world.advance(Nanos::from_secs(20));
    let back = world.join(&persistent);
    assert_eq!(world.lines(back, V5), ["t q1 long MessageExpiryInterval=30"]);
    assert_eq!(world.report().dropped["expired"], 1);
    let early = listener(&mut world, V5, "early", "t", AtMostOnce);
    assert_eq!(world.lines(early, V5), ["t q0 retain long MessageExpiryInterval=30"]);
    world.advance(Nanos::from_secs(31));
    let late = listener(&mut world, V5, "late", "t", AtMostOnce);
    assert!(world.lines(late, V5).is_empty());
}

fn with_will<'a>(version: Version, properties: Properties<'a>) -> Connect<'a> {
    let qos = AtLeastOnce;
    let will = Will { properties, topic: "will", body: b"gone", qos, retain: false };
    Connect { will: Some(will), ..hello(version, "mortal") }
}

#[test]
fn a_will_is_published_unless_the_client_says_goodbye() {
    for version in [V311, V5] {
        let mut world = World::new(&[]);
        let watcher = listener(&mut world, V311, "watcher", "will", AtLeastOnce);
        let mortal = world.join(&with_will(version, Properties::NONE));
        world.cut(mortal);
        assert_eq!(world.lines(watcher, V311), ["will q1 gone"]);
        let mortal = world.join(&with_will(version, Properties::NONE));
        world.send(mortal, version, &Packet::Disconnect(Disconnect::new(0)));
        assert!(world.is_over(mortal) && world.lines(watcher, V311).is_empty());
        let mortal = world.join(&with_will(version, Properties::NONE));
        world.feed(mortal, &[0xFF]);
        world.settle();
        assert!(world.is_over(mortal), "a broken packet is no goodbye");
        assert_eq!(world.lines(watcher, V311), ["will q1 gone"]);
    }
    let mut world = World::new(&[]);
    let watcher = listener(&mut world, V311, "watcher", "will", AtLeastOnce);
    let mortal = world.join(&with_will(V5, Properties::NONE));
    world.send(mortal, V5, &Packet::Disconnect(Disconnect::new(4)));
    assert_eq!(world.lines(watcher, V311), ["will q1 gone"], "disconnect with will");
}

#[test]
fn a_will_may_be_delayed_and_taken_back() {
    let mut world = World::new(&[]);
    let watcher = listener(&mut world, V5, "watcher", "will", AtLeastOnce);
    let mut delay = number(Id::WillDelayInterval, 10);
    delay.pair("cause", "cut");
    let session = number(Id::SessionExpiryInterval, 60);
    let connect = Connect {
        clean: false,
        properties: session.properties(),
        ..with_will(V5, delay.properties())
    };
    let mortal = world.join(&connect);
    world.cut(mortal);
    world.advance(Nanos::from_secs(9));
    assert!(world.lines(watcher, V5).is_empty());
    let again = world.join(&connect);
    world.advance(Nanos::from_secs(60));
    assert!(world.lines(watcher, V5).is_empty(), "the session went on in time");
    world.cut(again);
    world.advance(Nanos::from_secs(10));
    assert_eq!(world.lines(watcher, V5), ["will q1 gone cause=cut"]);
    // A session that ends before the delay is over takes its will with it.
    let brief = number(Id::SessionExpiryInterval, 3);
    let mortal = world.join(&Connect { properties: brief.properties(), ..connect });
    world.cut(mortal);
    world.advance(Nanos::from_secs(4));
    assert_eq!(world.lines(watcher, V5), ["will q1 gone cause=cut"]);
}

#[test]
fn shared_subscriptions_take_turns_among_those_present() {
    let mut world = World::new(&[]);
    let members: Vec<Peer> = ["one", "two", "three"]
        .map(|name| listener(&mut world, V5, name, "$share/g/t/+", AtMostOnce))
        .into();
    let alone = listener(&mut world, V311, "alone", "t/+", AtMostOnce);
    let sender = world.join(&hello(V311, "sender"));
    for at in 0..6 {
        publish(&mut world, sender, V311, message(AtMostOnce, "t/x", &at.to_string()));
    }
    for (at, member) in members.iter().enumerate() {
        let expected = [format!("t/x q0 {at}"), format!("t/x q0 {}", at + 3)];
        assert_eq!(world.lines(*member, V5), expected);
    }
    assert_eq!(world.lines(alone, V311).len(), 6);
    world.cut(members[1]);
    for _ in 0..6 {
        publish(&mut world, sender, V311, message(AtMostOnce, "t/x", "y"));
    }
    assert_eq!(world.lines(members[0], V5).len() + world.lines(members[2], V5).len(), 6);
}

#[test]
fn messages_wait_for_a_session_that_is_away() {
    for version in [V311, V5] {
        let mut world = World::new(&[]);
        let section = match version {
            V311 => Section::default(),
            V5 => number(Id::SessionExpiryInterval, 100),
        };
        let connect =
            Connect { clean: false, properties: section.properties(), ..hello(version, "away") };
        let away = world.join(&connect);
        world.subscribe(away, version, "t", Options::plain(ExactlyOnce), 0);
        world.send(away, version, &Packet::Disconnect(Disconnect::new(0)));
        let sender = world.join(&hello(V311, "sender"));
        for (qos, body) in [(AtLeastOnce, "1"), (AtMostOnce, "2"), (ExactlyOnce, "3")] {
            publish(&mut world, sender, V311, message(qos, "t", body));
        }
        assert_eq!((world.report().queued, world.report().dropped["offline_qos0"]), (2, 1));
        assert!(world.report().queued_bytes > 0);
        let back = world.join(&connect);
        assert_eq!(world.lines(back, version), ["t q1 1", "t q2 3"]);
        // Neither was acknowledged; the second was received, which moves it on to PUBREL.
        let pubrec = Packet::Ack(Ack::new(AckKind::Pubrec, 2, 0));
        world.send(back, version, &pubrec);
        assert_eq!(world.lines(back, version), ["Pubrel 2 0x0"]);
        world.cut(back);
        let again = world.join(&connect);
        assert_eq!(world.lines(again, version), ["t q1 dup 1", "Pubrel 2 0x0"]);
        world.send(again, version, &Packet::Ack(Ack::new(AckKind::Puback, 1, 0)));
        world.send(again, version, &Packet::Ack(Ack::new(AckKind::Pubcomp, 2, 0)));
        world.cut(again);
        let done = world.join(&connect);
        assert!(world.lines(done, version).is_empty());
        world.cut(done);
        let clean = world.join(&hello(version, "away"));
        publish(&mut world, sender, V311, message(AtLeastOnce, "t", "4"));
        assert!(world.lines(clean, version).is_empty(), "a clean start forgets");
    }
}

#[test]
fn sessions_end_when_their_time_is_over() {
    let mut world = World::new(&[]);
    let section = number(Id::SessionExpiryInterval, 10);
    let connect = Connect { clean: false, properties: section.properties(), ..hello(V5, "brief") };
    let brief = world.join(&connect);
    world.subscribe(brief, V5, "t", Options::plain(AtLeastOnce), 0);
    world.cut(brief);
    let sender = world.join(&hello(V5, "sender"));
    publish(&mut world, sender, V5, message(AtLeastOnce, "t", "x"));
    assert_eq!(world.lines(sender, V5), ["Puback 1 0x0"]);
    world.advance(Nanos::from_secs(11));
    publish(&mut world, sender, V5, message(AtLeastOnce, "t", "y"));
    assert_eq!(world.lines(sender, V5), ["Puback 1 0x10"]);
    assert_eq!(world.report().dropped["subscriber_disconnected"], 1);
    // DISCONNECT may change the expiry, but not give life to a session without.
    let peer = world.join(&connect);
    world.subscribe(peer, V5, "t", Options::plain(AtLeastOnce), 0);
    let zero = number(Id::SessionExpiryInterval, 0);
    let leave = Disconnect { reason: 0, properties: zero.properties() };
    world.send(peer, V5, &Packet::Disconnect(leave));
    publish(&mut world, sender, V5, message(AtLeastOnce, "t", "z"));
    assert_eq!(world.lines(sender, V5), ["Puback 1 0x10"]);
    let peer = world.join(&hello(V5, "zero"));
    let leave = Disconnect { reason: 0, properties: section.properties() };
    world.send(peer, V5, &Packet::Disconnect(leave));
    assert_eq!(world.lines(peer, V5), ["disconnect 0x82"]);
}

#[test]
fn the_same_client_identifier_takes_the_session_over() {
    for shard in [0, 1] {
        let mut world = World::sharded(2, &[]);
        let watcher = listener(&mut world, V5, "watcher", "will", AtLeastOnce);
        let section = number(Id::SessionExpiryInterval, 10);
        let connect = Connect {
            clean: false,
            properties: section.properties(),
            ..with_will(V5, Properties::NONE)
        };
        let old = world.join(&connect);
        world.subscribe(old, V5, "t", Options::plain(AtMostOnce), 0);
        let new = world.join_on(shard, &connect);
        assert_eq!(world.lines(old, V5), ["disconnect 0x8e"]);
        assert!(world.is_over(old) && !world.is_over(new));
        assert_eq!(world.lines(watcher, V5), ["will q1 gone"]);
        let sender = world.join(&hello(V5, "sender"));
        publish(&mut world, sender, V5, message(AtMostOnce, "t", "x"));
        assert_eq!(world.lines(new, V5), ["t q0 x"], "the subscription went along");
    }
}

#[test]
fn a_subscriber_gets_no_more_at_once_than_it_takes() {
    let mut world = World::new(&[]);
    let section = number(Id::ReceiveMaximum, 2);
    let peer = world.join(&Connect { properties: section.properties(), ..hello(V5, "two") });
    world.subscribe(peer, V5, "t", Options::plain(ExactlyOnce), 0);
    let sender = world.join(&hello(V311, "sender"));
    for body in ["1", "2", "3", "4"] {
        publish(&mut world, sender, V311, message(AtLeastOnce, "t", body));
    }
    assert_eq!(world.lines(peer, V5), ["t q1 1", "t q1 2"]);
    world.send(peer, V5, &Packet::Ack(Ack::new(AckKind::Puback, 2, 0)));
    assert_eq!(world.lines(peer, V5), ["t q1 3"]);
    world.send(peer, V5, &Packet::Ack(Ack::new(AckKind::Puback, 1, 0x80)));
    assert_eq!(world.lines(peer, V5), ["t q1 4"]);
    assert_eq!(world.report().queued, 0);
}

#[test]
fn a_client_that_sends_more_than_announced_is_sent_away() {
    let mut world = World::new(&[("broker_receive_maximum", "2")]);
    let peer = world.join(&hello(V5, "greedy"));
    for packet_id in 1..=3 {
        publish(&mut world, peer, V5, Publish { packet_id, ..message(ExactlyOnce, "t", "x") });
    }
    let expected = ["Pubrec 1 0x10", "Pubrec 2 0x10", "disconnect 0x93"];
    assert_eq!(world.lines(peer, V5), expected);
    let mut world = World::new(&[("broker_maximum_qos", "1")]);
    let peer = world.join(&hello(V5, "high"));
    publish(&mut world, peer, V5, message(ExactlyOnce, "t", "x"));
    assert_eq!(world.lines(peer, V5), ["disconnect 0x9b"]);
}

#[test]
fn topic_aliases_work_both_ways() {
    let mut world = World::new(&[("broker_topic_alias_maximum", "2")]);
    let section = number(Id::TopicAliasMaximum, 1);
    let peer = world.join(&Connect { properties: section.properties(), ..hello(V5, "alias") });
    world.subscribe(peer, V5, "+", Options::plain(AtMostOnce), 0);
    let sender = world.join(&hello(V5, "sender"));
    for (topic, alias) in [("a", 2), ("", 2), ("b", 2), ("", 2)] {
        let section = number(Id::TopicAlias, alias);
        let properties = section.properties();
        publish(&mut world, sender, V5, Publish { properties, ..message(AtMostOnce, topic, "x") });
    }
    let expected = ["a q0 x TopicAlias=1", " q0 x TopicAlias=1", "b q0 x", "b q0 x"];
    assert_eq!(world.lines(peer, V5), expected);
    for (alias, reason) in [(3, "disconnect 0x94"), (1, "disconnect 0x82")] {
        let sender = world.join(&hello(V5, "wrong"));
        let section = number(Id::TopicAlias, alias);
        let topic = if alias == 3 { "t" } else { "" };
        let properties = section.properties();
        publish(&mut world, sender, V5, Publish { properties, ..message(AtMostOnce, topic, "x") });
        assert_eq!(world.lines(sender, V5), [reason]);
    }
}

#[test]
fn properties_go_through_and_old_clients_hear_plain_messages() {
    let mut world = World::new(&[]);
    let new = listener(&mut world, V5, "new", "t", AtMostOnce);
    let old = listener(&mut world, V311, "old", "t", AtMostOnce);
    let sender = world.join(&hello(V5, "sender"));
    let mut section = number(Id::PayloadFormatIndicator, 1);
    section.pair("b", "2").pair("a", "1").text(Id::ContentType, "json");
    section.text(Id::ResponseTopic, "r").binary(Id::CorrelationData, b"\x07");
    let properties = section.properties();
    publish(&mut world, sender, V5, Publish { properties, ..message(AtLeastOnce, "t", "x") });
    let expected = "t q0 x PayloadFormatIndicator=1 b=2 a=1 ContentType=json ResponseTopic=r \
                    CorrelationData=[7]";
    assert_eq!(world.lines(new, V5), [expected]);
    assert_eq!(world.lines(old, V311), ["t q0 x"]);
    assert_eq!(world.lines(sender, V5), ["Puback 1 0x0"]);
}

#[test]
fn packets_larger_than_a_client_takes_are_not_sent_to_it() {
    let mut world = World::new(&[]);
    let section = number(Id::MaximumPacketSize, 20);
    let peer = world.join(&Connect { properties: section.properties(), ..hello(V5, "small") });
    world.subscribe(peer, V5, "t", Options::plain(AtLeastOnce), 0);
    for length in [12, 13] {
        publish(&mut world, peer, V5, message(AtLeastOnce, "t", &"x".repeat(length)));
    }
    let lines = world.lines(peer, V5);
    assert_eq!(lines, ["t q1 xxxxxxxxxxxx", "Puback 1 0x0", "Puback 1 0x0"]);
    assert_eq!(world.report().dropped["packet_too_large"], 1);
}

#[test]
fn qos_2_is_taken_once_until_it_is_released() {
    let mut world = World::new(&[]);
    let peer = listener(&mut world, V311, "s", "t", AtMostOnce);
    let sender = world.join(&hello(V5, "sender"));
    for dup in [false, true, true] {
        publish(&mut world, sender, V5, Publish { dup, ..message(ExactlyOnce, "t", "x") });
    }
    for _ in 0..2 {
        world.send(sender, V5, &Packet::Ack(Ack::new(AckKind::Pubrel, 1, 0)));
    }
    publish(&mut world, sender, V5, message(ExactlyOnce, "t", "y"));
    assert_eq!(world.lines(peer, V311), ["t q0 x", "t q0 y"]);
    let pubrec = "Pubrec 1 0x0";
    let expected = [pubrec, pubrec, pubrec, "Pubcomp 1 0x0", "Pubcomp 1 0x92", pubrec];
    assert_eq!(world.lines(sender, V5), expected);
    assert_eq!(world.report().received, 2);
}

#[test]
fn silence_beyond_one_and_a_half_keep_alives_ends_a_connection() {
    let mut world = World::new(&[]);
    let watcher = listener(&mut world, V311, "watcher", "will", AtMostOnce);
    let connect = Connect { keep_alive_s: 10, ..with_will(V5, Properties::NONE) };
    let peer = world.join(&connect);
    world.advance(Nanos::from_secs(14));
    world.send(peer, V5, &Packet::Pingreq);
    assert_eq!(world.lines(peer, V5), ["pingresp"]);
    world.advance(Nanos::from_secs(14));
    assert!(!world.is_over(peer));
    world.advance(SECOND);
    assert!(world.is_over(peer));
    assert_eq!(world.lines(peer, V5), ["disconnect 0x8d"]);
    assert_eq!(world.lines(watcher, V311), ["will q0 gone"]);
    // The server's own keep-alive overrides that of MQTT 5 clients.
    let mut world = World::new(&[("broker_keep_alive", "2s")]);
    let peer = world.join(&hello(V5, "quick"));
    let old = world.join(&hello(V311, "old"));
    world.advance(Nanos::from_secs(3));
    assert!(world.is_over(peer) && !world.is_over(old));
}

#[test]
fn connections_must_begin_as_the_standard_says() {
    let mut world = World::new(&[]);
    let idle = world.open(0);
    let wrong = world.open(0);
    world.feed(wrong, b"GET / HTTP/1.1\r\n");
    let second = world.join(&hello(V5, "second"));
    world.send(second, V5, &Packet::Connect(hello(V5, "second")));
    let future = world.open(0);
    world.feed(future, b"\x10\x0c\0\x04MQTT\x06\x02\0\0\0\0");
    let broken = world.join(&hello(V5, "broken"));
    world.feed(broken, &[0x40, 2, 0, 0]);
    world.settle();
    for peer in [wrong, second, future, broken] {
        assert!(world.is_over(peer));
    }
    assert!(world.take(wrong).is_empty());
    assert_eq!(world.lines(second, V5), ["disconnect 0x82"]);
    assert_eq!(world.take(future), [0x20, 2, 0, 1]);
    assert_eq!(world.lines(broken, V5), ["disconnect 0x81"]);
    assert!(!world.is_over(idle));
    world.advance(Nanos::from_secs(10));
    assert!(world.is_over(idle), "a CONNECT was due");
}

#[test]
fn clients_without_a_name_get_one_if_they_may() {
    let mut world = World::new(&[]);
    let names = ["assigned-1", "assigned-2"];
    for name in names {
        let peer = world.open(0);
        world.send(peer, V5, &Packet::Connect(hello(V5, "")));
        let connack = world.take(peer);
        assert!(connack.ends_with(name.as_bytes()), "{connack:02X?}");
    }
    let peer = world.open(0);
    world.send(peer, V311, &Packet::Connect(hello(V311, "")));
    assert_eq!(world.take(peer), [0x20, 2, 0, 0]);
    let peer = world.open(0);
    world.send(peer, V311, &Packet::Connect(Connect { clean: false, ..hello(V311, "") }));
    assert_eq!(world.take(peer), [0x20, 2, 0, 2]);
    assert!(world.is_over(peer));
}

#[test]
fn the_broker_says_in_its_connack_only_what_is_not_the_default() {
    let mut world = World::new(&[("broker_topic_alias_maximum", "0")]);
    let peer = world.open(0);
    world.send(peer, V5, &Packet::Connect(hello(V5, "x")));
    assert_eq!(world.take(peer), [0x20, 3, 0, 0, 0]);
}

/// Likely bytes in any order, from clients that come and go: nothing panics, and nothing is
/// counted that did not come.
#[test]
fn random_bytes_never_panic_the_broker() {
    let random = &mut Random::new(11);
    let mut world = World::sharded(2, &[("overload", "drop-oldest:5")]);
    for _ in 0..4_000 {
        let version = if random.below(2) == 0 { V311 } else { V5 };
        let name = format!("c{}", random.below(20));
        let clean = random.below(2) == 0;
        let section = number(Id::SessionExpiryInterval, random.below(9) as u32);
        let properties = if version == V5 { section.properties() } else { Properties::NONE };
        let connect = Connect { clean, properties, ..hello(version, &name) };
        let peer = world.join_on(random.below(2) as usize, &connect);
        world.take(peer);
        let filters = ["a/+", "#", "a/b", "$share/g/a/#", "+"];
        let filter = filters[random.below(5) as usize];
        let qos = Qos::from_bits(random.below(3) as u8).unwrap();
        world.subscribe(peer, version, filter, Options::plain(qos), 0);
        let likely: &[&[u8]] = &[
            &[0x30, 5, 0, 3, b'a', b'/', b'b'],
            &[0x32, 8, 0, 3, b'a', b'/', b'b', 0, 7, 0],
            &[0x34, 8, 0, 3, b'a', b'/', b'b', 0, 8, 0],
            &[0x31, 7, 0, 3, b'a', b'/', b'b', 0, b'x'],
            &[0x62, 2, 0, 8],
            &[0x40, 2, 0, 1],
            &[0x50, 2, 0, 1],
            &[0x70, 2, 0, 1],
            &[0xC0, 0],
        ];
        for _ in 0..random.below(30) {
            let mut bytes = likely[random.below(likely.len() as u64) as usize].to_vec();
            if random.below(40) == 0 {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.next_u64() as u8;
            }
            world.feed(peer, &bytes);
        }
        world.settle();
        if random.below(3) > 0 {
            world.cut(peer);
            world.forget(peer);
        }
        if random.below(9) == 0 {
            world.advance(SECOND);
        }
    }
    let report = world.report();
    assert!(report.received > 10_000 && report.connections == 4_000);
    assert_eq!(report.foreign, report.received);
}
