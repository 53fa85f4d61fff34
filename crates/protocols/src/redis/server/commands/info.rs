//! INFO: counters in the lines that tools expect.

use std::fmt::Write;

use super::super::peer::{Peer, Words};
use super::super::place::{Refusal, Turn};
use super::super::world::World;
use super::session::VERSION;
use crate::redis::codec::put_bulk;

/// INFO [section ...]. Without a section it leaves `commandstats` out; `all` and `everything` show
/// it.
pub(super) fn info(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let asks_all = ["all", "everything"].iter().any(|own| words.is(1, own));
    let asks = |name: &str| {
        let is_named = words.from(1).any(|own| own.eq_ignore_ascii_case(name.as_bytes()));
        asks_all || is_named || (words.len() == 1 && name != "commandstats")
    };
    let commands: u64 = world.calls.values().sum();
    let mut text = String::new();
    if asks("server") {
        _ = write!(
            text,
            "# Server\r\nredis_version:{VERSION}\r\nredis_mode:standalone\r\n\
             server_name:weigh\r\n\r\n"
        );
    }
    if asks("clients") {
        let blocked = world.blocked.len();
        _ = write!(text, "# Clients\r\nblocked_clients:{blocked}\r\n\r\n");
    }
    if asks("memory") {
        let (used, most) = (world.bytes, world.rules.memory_bytes_max);
        _ = write!(text, "# Memory\r\nused_memory:{used}\r\nmaxmemory:{most}\r\n\r\n");
    }
    if asks("persistence") {
        let appends = u8::from(turn.out.stores());
        _ = write!(text, "# Persistence\r\nloading:0\r\naof_enabled:{appends}\r\n\r\n");
    }
    if asks("stats") {
        _ = write!(
            text,
            "# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{commands}\r\n\
             client_output_buffer_limit_disconnections:{}\r\n\r\n",
            world.connections, world.disconnects
        );
    }
    if asks("replication") {
        text.push_str("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n");
    }
    if asks("commandstats") {
        text.push_str("# Commandstats\r\n");
        for (name, calls) in &world.calls {
            _ = write!(text, "cmdstat_{}:calls={calls}\r\n", name.to_ascii_lowercase());
        }
        text.push_str("\r\n");
    }
    if asks("keyspace") {
        let keys = world.keys.keys().filter(|key| key.db == peer.db).count();
        _ = write!(text, "# Keyspace\r\ndb{}:keys={keys},expires=0\r\n", peer.db);
    }
    put_bulk(turn.out.stage(peer.place.connection), text.as_bytes());
    Ok(())
}
