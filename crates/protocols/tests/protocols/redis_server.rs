//! The reference server of Redis: its answers byte by byte, waiting, limits, and what breaks the
//! rules.

use crate::rig::{Shard, kind};
use weigh_protocols::redis::Redis;

/// The bytes of a request: `*1\r\n$4\r\nPING\r\n`.
fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    out
}

fn asked(shard: &mut Shard, connection: u32, words: &[&str]) -> String {
    shard.feed(connection, &request(words)).unwrap();
    String::from_utf8(shard.staged(connection)).unwrap()
}

/// `client-output-buffer-limit` of Redis: the connection of a subscriber that does not read ends.
#[test]
fn a_subscriber_that_does_not_read_is_disconnected() {
    let mut shard = Shard::of(&Redis, &[("server_output_buffer", "1024")]);
    (0..2).for_each(|connection| shard.accept(connection));
    assert!(asked(&mut shard, 0, &["SUBSCRIBE", "c"]).contains("subscribe"));
    let body = "x".repeat(300);
    for expected in [":1\r\n", ":1\r\n", ":1\r\n", ":1\r\n", ":0\r\n"] {
        assert_eq!(asked(&mut shard, 1, &["PUBLISH", "c", &body]), expected);
    }
    assert_eq!(shard.desk.closed, [0]);
    let report = shard.server.report();
    assert_eq!((report.disconnects, report.forwarded), (1, 3));
    assert_eq!(report.dropped["output_buffer_full"], 1);
}

#[test]
fn memory_has_a_limit_with_the_error_of_redis() {
    let mut shard = Shard::of(&Redis, &[("server_maxmemory", "65536")]);
    shard.accept(0);
    let body = "x".repeat(20_000);
    for number in 0..3 {
        let answer = asked(&mut shard, 0, &["XADD", "s", "*", "f", &body]);
        assert!(answer.starts_with('$'), "{number}: {answer}");
    }
    assert!(asked(&mut shard, 0, &["XADD", "s", "*", "f", &body]).starts_with("-OOM command"));
    assert_eq!(asked(&mut shard, 0, &["XTRIM", "s", "MAXLEN", "0"]), ":3\r\n");
    assert!(asked(&mut shard, 0, &["XADD", "s", "*", "f", &body]).starts_with('$'));
    assert_eq!(asked(&mut shard, 0, &["DEL", "s", "none"]), ":1\r\n");
    assert!(asked(&mut shard, 0, &["INFO", "memory"]).contains("used_memory:0\r\n"));
    assert_eq!(shard.server.report().received, 4);
}

/// Entries that a trim removes before a group read them are counted as dropped.
#[test]
fn a_trim_says_what_a_group_missed() {
    let mut shard = Shard::of(&Redis, &[]);
    shard.accept(0);
    asked(&mut shard, 0, &["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]);
    for _ in 0..10 {
        asked(&mut shard, 0, &["XADD", "s", "MAXLEN", "=", "4", "*", "f", "x"]);
    }
    assert_eq!(shard.server.report().dropped["trimmed"], 6);
    assert_eq!(asked(&mut shard, 0, &["XLEN", "s"]), ":4\r\n");
}

/// The conversations of redis-cli and redis-py, and every refusal of the subset.
#[test]
fn the_server_answers_as_redis_does() {
    let mut shard = Shard::of(&Redis, &[]);
    shard.accept(0);
    for (words, answer) in [
        (&["PING"][..], "+PONG\r\n"),
        (&["ping", "hi"], "$2\r\nhi\r\n"),
        (&["ECHO", "hey"], "$3\r\nhey\r\n"),
        (&["SET", "k", "v"], "+OK\r\n"),
        (&["GET", "k"], "$1\r\nv\r\n"),
        (&["GET", "none"], "$-1\r\n"),
        (&["EXISTS", "k", "none"], ":1\r\n"),
        (&["SELECT", "1"], "+OK\r\n"),
        (&["GET", "k"], "$-1\r\n"),
        (&["SELECT", "16"], "-ERR DB index is out of range\r\n"),
        (&["SELECT", "0"], "+OK\r\n"),
        (&["DBSIZE"], ":1\r\n"),
        (
            &["XADD", "k", "*", "f", "v"],
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        ),
        (&["XADD", "s", "1-1", "f", "v"], "$3\r\n1-1\r\n"),
        (&["XADD", "s", "1-*", "f", "w"], "$3\r\n1-2\r\n"),
        (
            &["XADD", "s", "1-1", "f", "v"],
            "-ERR The ID specified in XADD is equal or smaller than the target stream top item\r\n",
        ),
        (&["XADD", "s", "*", "f"], "-ERR wrong number of arguments for 'xadd' command\r\n"),
        (&["XADD", "t", "NOMKSTREAM", "*", "f", "v"], "$-1\r\n"),
        (&["XLEN", "s"], ":2\r\n"),
        (
            &["XRANGE", "s", "-", "+", "COUNT", "1"],
            "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        ),
        (
            &["XREVRANGE", "s", "+", "-", "COUNT", "1"],
            "*1\r\n*2\r\n$3\r\n1-2\r\n*2\r\n$1\r\nf\r\n$1\r\nw\r\n",
        ),
        (
            &["XREAD", "STREAMS", "s", "1-1"],
            "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-2\r\n*2\r\n$1\r\nf\r\n$1\r\nw\r\n",
        ),
        (&["XREAD", "STREAMS", "s", "$"], "*-1\r\n"),
        (
            &["XREAD", "STREAMS", "s", "none"],
            "-ERR Invalid stream ID specified as stream command argument\r\n",
        ),
        (
            &["XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"],
            "-NOGROUP No such key or consumer group\r\n",
        ),
        (&["XGROUP", "CREATE", "s", "g", "0"], "+OK\r\n"),
        (&["XGROUP", "CREATE", "s", "g", "0"], "-BUSYGROUP Consumer Group name already exists\r\n"),
        (
            &["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "s", ">"],
            "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        ),
        (&["XPENDING", "s", "g"], "*4\r\n:1\r\n$3\r\n1-1\r\n$3\r\n1-1\r\n*-1\r\n"),
        (&["XACK", "s", "g", "1-1", "7-7"], ":1\r\n"),
        (&["XGROUP", "DESTROY", "s", "g"], ":1\r\n"),
    ] {
        assert_eq!(asked(&mut shard, 0, words), answer, "{words:?}");
    }
}

/// Commands about connections and subscriptions.
#[test]
fn the_server_answers_about_sessions_as_redis_does() {
    let mut shard = Shard::of(&Redis, &[]);
    shard.accept(0);
    for (words, answer) in [
        (&["CLIENT", "SETNAME", "me"][..], "+OK\r\n"),
        (&["CLIENT", "GETNAME"], "$2\r\nme\r\n"),
        (&["CLIENT", "SETINFO", "LIB-NAME", "x"], "+OK\r\n"),
        (&["CONFIG", "GET", "save"], "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        (&["COMMAND", "DOCS"], "*0\r\n"),
        (&["NOTHING"], "-ERR unknown command 'NOTHING', with args beginning with: \r\n"),
        (&["GET"], "-ERR wrong number of arguments for 'get' command\r\n"),
        (&["HELLO", "4"], "-NOPROTO unsupported protocol version\r\n"),
        (
            &["AUTH", "x"],
            "-ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?\r\n",
        ),
        (&["FLUSHALL"], "+OK\r\n"),
        (
            &["SUBSCRIBE", "a", "b"],
            "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n",
        ),
        (&["PING"], "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
        (&["UNSUBSCRIBE", "a"], "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"),
        (&["PSUBSCRIBE", "n*"], "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:2\r\n"),
        (&["PUNSUBSCRIBE"], "*3\r\n$12\r\npunsubscribe\r\n$2\r\nn*\r\n:1\r\n"),
        (&["RESET"], "+RESET\r\n"),
        (&["UNSUBSCRIBE"], "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"),
        (&["QUIT"], "+OK\r\n"),
    ] {
        assert_eq!(asked(&mut shard, 0, words), answer, "{words:?}");
    }
    assert_eq!(shard.desk.closed, [0]);
}

#[test]
fn a_subscriber_of_resp_2_may_only_subscribe() {
    let mut shard = Shard::of(&Redis, &[]);
    shard.accept(0);
    asked(&mut shard, 0, &["SUBSCRIBE", "a"]);
    assert!(asked(&mut shard, 0, &["GET", "k"]).starts_with("-ERR Can't execute 'get'"));
    asked(&mut shard, 0, &["RESET"]);
    assert!(asked(&mut shard, 0, &["HELLO", "3"]).starts_with("%7\r\n$6\r\nserver\r\n"));
    assert_eq!(
        asked(&mut shard, 0, &["SUBSCRIBE", "a"]),
        ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
    );
    assert_eq!(asked(&mut shard, 0, &["GET", "k"]), "_\r\n");
}

/// What follows a command that waits is executed after its answer, however it came.
#[test]
fn commands_behind_one_that_waits_wait_too() {
    let mut shard = Shard::of(&Redis, &[]);
    (0..2).for_each(|connection| shard.accept(connection));
    let read = request(&["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]);
    let both = [&read[..], &request(&["PING"])[..], b"*1\r\n$4\r\nEC"].concat();
    shard.feed(0, &both).unwrap();
    assert_eq!(shard.staged(0), b"");
    asked(&mut shard, 1, &["XADD", "s", "5-5", "f", "v"]);
    let answer = String::from_utf8(shard.staged(0)).unwrap();
    assert!(
        answer.starts_with("*1\r\n*2\r\n$1\r\ns\r\n") && answer.ends_with("+PONG\r\n"),
        "{answer}"
    );
    shard.feed(0, b"HO\r\n").unwrap();
    assert!(shard.staged(0).starts_with(b"-ERR wrong number"));
    assert_eq!(asked(&mut shard, 0, &["PING"]), "+PONG\r\n");
    // A group that is destroyed ends the wait of its readers.
    asked(&mut shard, 1, &["XGROUP", "CREATE", "s", "g", "$"]);
    shard
        .feed(0, &request(&["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"]))
        .unwrap();
    assert_eq!(shard.staged(0), b"");
    asked(&mut shard, 1, &["XGROUP", "DESTROY", "s", "g"]);
    assert!(shard.staged(0).starts_with(b"-NOGROUP"));
}

#[test]
fn a_server_faults_on_what_breaks_the_rules() {
    for input in [
        &b"*1\r\n:1\r\n"[..],
        b"*x\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n$99999999999\r\n",
        b"*1\r\n$1\r\nxyz\r\n",
    ] {
        let mut shard = Shard::of(&Redis, &[]);
        shard.accept(0);
        assert_eq!(kind(&shard.feed(0, input)), "malformed", "{}", input.escape_ascii());
        assert!(shard.staged(0).starts_with(b"-ERR Protocol error: "));
    }
    // A request of HTTP is a line with an unknown command.
    let mut shard = Shard::of(&Redis, &[]);
    shard.accept(0);
    shard.feed(0, b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(shard.staged(0), b"$-1\r\n");
}
