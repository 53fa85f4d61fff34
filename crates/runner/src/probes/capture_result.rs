//! Splits captured bytes by the counts of the codecs, and reports them by hop and by connection.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use weigh_model::numbers::count;

use weigh_capture::account::{Connection, Disagreement};
use weigh_capture::{Account, Traffic};
use weigh_engine::contents::{ConnectionContent, Contents};
use weigh_model::Warning;
use weigh_model::connections::{ConnectionRow, Connections, hop_name};
use weigh_model::protocol::Role;

/// Splits the content of every connection by its codec's counts, and warns if codec and capture do
/// not agree.
pub fn split(account: &mut Account, contents: &Contents) -> Option<Warning> {
    let is_listed = account.connections_folded == 0 && contents.connections_untold == 0;
    let differences = if is_listed {
        let counted = RefCell::new(by_local_end(contents));
        account.attribute(&|connection| Some(next(&counted, connection)?.counts))
    } else {
        account.attribute_totals(&contents.total)
    };
    differing(&differences)
}

/// Splits the sums of all connections behind a relay, which have other ends and carry the same
/// bytes together.
pub fn split_as_one(account: &mut Account, contents: &Contents) -> Option<Warning> {
    let found = account.attribute_totals(&contents.total);
    match differing(&found) {
        Some(Warning::Wire(text, advice)) => {
            Some(Warning::Wire(format!("behind the relay: {text}"), advice))
        }
        other => other,
    }
}

/// Connections of an account, with the client roles of their codecs.
pub fn rows(account: &Account, contents: Option<&Contents>, trial: &str) -> Connections {
    let counted = RefCell::new(contents.map(by_local_end).unwrap_or_default());
    let row = |connection: &Connection| {
        let content = next(&counted, connection);
        ConnectionRow {
            local: connection.initiator.to_string(),
            remote: connection.responder.to_string(),
            hop: content.map(|content| hop_name(content.role).to_owned()),
            seat: content.map(|content| content.index),
            figures: connection.figures().collect(),
        }
    };
    let rows: Vec<ConnectionRow> = account.connections.iter().take(ROWS_MAX).map(row).collect();
    let untold = account.sessions().saturating_sub(rows.len() as u64);
    Connections { trial: trial.to_owned(), rows, untold }
}

/// Packets and bytes by hop: from publishers to the broker, and from the broker to subscribers.
pub fn hops(account: &Account, contents: &Contents, messages: u64) -> BTreeMap<String, f64> {
    let counted = RefCell::new(by_local_end(contents));
    let mut hops: BTreeMap<&'static str, Traffic> = BTreeMap::new();
    for connection in &account.connections {
        if let Some(content) = next(&counted, connection) {
            *hops.entry(hop_name(content.role)).or_default() += connection.total();
        }
    }
    let is_whole = account.connections_folded == 0 && contents.connections_untold == 0;
    if !is_whole || !hops.contains_key(hop_name(Role::Consumer)) {
        return BTreeMap::new();
    }
    let figures = hops.into_iter().flat_map(|(hop, traffic)| {
        let (packets, bytes) = (traffic.packets as f64, traffic.bytes() as f64);
        let each = (messages > 0).then(|| ("bytes_per_message", bytes / messages as f64));
        [("packets", packets), ("bytes", bytes)]
            .into_iter()
            .chain(each)
            .map(move |(name, value)| (format!("wire.hops.{hop}.{name}"), value))
    });
    figures.collect()
}

/// Counts by local end, in the order of opening: a port may be used again.
pub type ByLocalEnd<'c> = HashMap<SocketAddr, VecDeque<&'c ConnectionContent>>;

/// The generator's counts by local end, each in the order of opening.
pub fn by_local_end(contents: &Contents) -> ByLocalEnd<'_> {
    let mut rows: Vec<&ConnectionContent> = contents.rows.iter().collect();
    rows.sort_by_key(|row| row.opened_at);
    let mut found = ByLocalEnd::new();
    for row in rows {
        if let Some(local) = row.local {
            found.entry(local).or_default().push_back(row);
        }
    }
    found
}

/// The count of the next connection, in the order of opening.
pub fn next<'c>(
    counted: &RefCell<ByLocalEnd<'c>>,
    connection: &Connection,
) -> Option<&'c ConnectionContent> {
    counted.borrow_mut().get_mut(&connection.initiator)?.pop_front()
}

fn differing(differences: &[Disagreement]) -> Option<Warning> {
    let first = differences.first()?;
    let Disagreement { connection, direction, counted_bytes, captured_bytes } = first;
    let name = connection.as_deref().unwrap_or("all connections together");
    Some(Warning::Wire(
        format!(
            "codecs and capture differ in the content of {} directions of connections, the first: \
             {name}, {direction}: {} bytes by the codec, {} on the wire",
            count(differences.len() as u64),
            count(*counted_bytes),
            count(*captured_bytes)
        ),
        "bytes in flight on a broken connection are in one of the counts only; if none \
         broke, it is a fault of Weighbridge: please report it with the run folder",
    ))
}

/// Maximum number of connections that are listed one by one.
const ROWS_MAX: usize = 100;
