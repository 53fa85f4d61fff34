//! Errors of Redis: the word that an error begins with, the code that the engine keeps of it, and
//! what to do about it.

use weigh_model::connection::Fault;
use weigh_model::protocol::ErrorWords;

/// An error that this folder knows.
struct Known {
    /// The first word, or the beginning of the text.
    start: &'static str,
    advice: &'static str,
    /// True if no command of the connection will do better.
    is_of_session: bool,
}

/// Code of an error that is none of [`KNOWN`].
const OTHER: u16 = 0;

/// Codes are places in this list, from 1. Append only: results hold them.
const KNOWN: &[Known] = &[
    of_session(
        "NOAUTH",
        "the server requires a password: give --user NAME and set WEIGH_PASSWORD, or type \
         redis://USER:PASSWORD@HOST",
    ),
    of_session("WRONGPASS", "user or password is wrong: check --user and WEIGH_PASSWORD"),
    of_command("NOPERM", "the user may not do this: ACL SETUSER gives it the command and the key"),
    of_command("LOADING", "the server reads its data from disk: wait until it is ready"),
    of_command(
        "READONLY",
        "the server is a replica: type the URL of the primary (INFO replication names it)",
    ),
    of_command(
        "OOM",
        "the server's maxmemory is used up: lower redis.maxlen, raise maxmemory, or delete keys",
    ),
    of_command(
        "MOVED",
        "the key is on another node of a cluster, and redirects are not followed: type the URL of \
         the node that the answer names (redis-cli CLUSTER SLOTS)",
    ),
    of_command(
        "ASK",
        "the key is being moved to another node of a cluster: wait until the slots are stable",
    ),
    of_command("CLUSTERDOWN", "the cluster has no node for the key: repair it first"),
    of_command("MASTERDOWN", "the replica has lost its primary: type the URL of the primary"),
    of_command(
        "MISCONF",
        "the server cannot write to its disk and refuses writes: read its log, free the disk",
    ),
    of_command("NOREPLICAS", "fewer replicas than min-replicas-to-write: start them"),
    of_command("BUSY", "the server runs a script: wait, or type redis-cli SCRIPT KILL"),
    of_command(
        "WRONGTYPE",
        "the key holds another type: type --set redis.key=NAME, or delete the key",
    ),
    of_command(
        "NOGROUP",
        "the consumer group is gone: another client deleted the key or the group",
    ),
    of_session(
        "ERR max number of clients",
        "the server accepts no more clients: lower -c or raise its maxclients",
    ),
    of_session(
        "DENIED",
        "protected mode accepts only loopback: set a password or `protected-mode no` there",
    ),
    of_session("NOPROTO", "the server does not support RESP 3: type --set redis.resp=2"),
    of_command("UNKNOWN", ErrorWords::ADVICE),
    of_command(
        "ERR unknown command",
        "the server does not know the command: it is older, or not Redis",
    ),
    of_command("ERR", ErrorWords::ADVICE),
];

const fn of_command(start: &'static str, advice: &'static str) -> Known {
    Known { start, advice, is_of_session: false }
}

const fn of_session(start: &'static str, advice: &'static str) -> Known {
    Known { start, advice, is_of_session: true }
}

/// The code of an error.
pub(super) fn code(text: &[u8]) -> u16 {
    let starts = |known: &Known| {
        let rest = text.strip_prefix(known.start.as_bytes());
        rest.is_some_and(|rest| rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric()))
    };
    KNOWN.iter().position(starts).map_or(OTHER, |at| at as u16 + 1)
}

/// The fault of an error after which the connection is of no use; `None` for errors of one command.
pub(super) fn fault(text: &[u8]) -> Option<Fault> {
    let code = code(text);
    let known = KNOWN.get(usize::from(code).checked_sub(1)?)?;
    known.is_of_session.then(|| refused(text))
}

/// An error as the end of the session.
pub(super) fn refused(text: &[u8]) -> Fault {
    let reason = &text[..text.len().min(SHOWN_BYTES_MAX)];
    Fault::Refused { code: code(text), reason: String::from_utf8_lossy(reason).into_owned() }
}

/// Name and advice of a code.
pub(super) fn words(code: u16) -> ErrorWords {
    let known = usize::from(code).checked_sub(1).and_then(|at| KNOWN.get(at));
    match known {
        Some(known) => ErrorWords { name: format!("error {}", known.start), advice: known.advice },
        None => ErrorWords { name: "an error".to_owned(), advice: ErrorWords::ADVICE },
    }
}

/// Bytes of an error that a fault shows.
const SHOWN_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_known_by_their_first_word() {
        for (text, name) in [
            ("MOVED 3999 127.0.0.1:6381", "error MOVED"),
            ("ASK 3999 127.0.0.1:6381", "error ASK"),
            ("LOADING Redis is loading the dataset in memory", "error LOADING"),
            ("READONLY You can't write against a read only replica.", "error READONLY"),
            ("OOM command not allowed when used memory > 'maxmemory'.", "error OOM"),
            ("ERR max number of clients reached", "error ERR max number of clients"),
            ("ERR unknown command 'XADD', with args", "error ERR unknown command"),
            ("ERR syntax error", "error ERR"),
            ("BUSYGROUP Consumer Group name already exists", "an error"),
        ] {
            assert_eq!(words(code(text.as_bytes())).name, name, "{text}");
        }
        assert!(fault(b"NOAUTH Authentication required.").is_some());
        assert!(fault(b"OOM command not allowed").is_none());
        assert!(fault(b"").is_none());
    }
}
