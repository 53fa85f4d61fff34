//! The clients of a trial: producers that send requests, and consumers that poll.

use std::sync::Arc;

use weigh_model::connection::Connection;
use weigh_model::load::{Polling, Topology};
use weigh_model::mark::MARK_BYTES;
use weigh_model::protocol::{Invalid, Role, Seat};
use weigh_model::trial::Trial;

use super::poll::{PollConnection, Question};
use super::request;
use crate::http1_core::caller::HttpConnection;

/// Makes the connection of a client.
pub(super) type MakeConnection = Box<dyn Fn(Seat) -> Box<dyn Connection> + Send + Sync>;

/// Says how the connections of a trial are made.
///
/// # Errors
/// A trial that HTTP/1.1 cannot run.
pub(super) fn maker(trial: &Trial, is_kept: bool) -> Result<MakeConnection, Invalid> {
    let path = request::path(trial)?;
    if let Some(polling) = trial.load.polling() {
        return polled(trial, path, polling, is_kept);
    }
    let template = Arc::new(request::template(trial, path, is_kept)?);
    Ok(Box::new(move |_seat| Box::new(HttpConnection::new(template.clone()))))
}

/// Makes the connections of a trial whose consumers poll `path`, to which its producers post.
/// In pairs each producer has its own list below it.
fn polled(
    trial: &Trial,
    path: &str,
    polling: Polling,
    is_kept: bool,
) -> Result<MakeConnection, Invalid> {
    let load = &trial.load;
    if load.topology == Topology::Shared {
        return Err(Invalid::new(
            "load.topology",
            "consumers of poll cannot share one cursor",
            "type --topology fan-in, fan-out or pairs",
        ));
    }
    if !is_kept {
        return Err(Invalid::new(
            "http1.keep_alive",
            "a consumer of poll keeps its connection open",
            "leave http1.keep_alive at true",
        ));
    }
    if load.connections > 1 && load.size.is_some_and(|size| size.0 < MARK_BYTES as u64) {
        return Err(Invalid::new(
            "load.size",
            "bodies without room for a mark cannot be distinguished in one list of many producers",
            format!("type at least {MARK_BYTES}B, or one producer (-c 1)"),
        ));
    }
    let fields = request::fields(trial, is_kept, false)?;
    let lists = if load.topology == Topology::Pairs { load.connections } else { 1 };
    let path_of = |list: u32| match load.topology {
        Topology::Pairs => format!("{path}/{list}"),
        _ => path.to_owned(),
    };
    let templates =
        (0..lists).map(|list| request::template(trial, &path_of(list), is_kept).map(Arc::new));
    let templates = templates.collect::<Result<Vec<_>, _>>()?;
    let questions: Vec<_> =
        (0..lists).map(|list| Arc::new(Question::new(&path_of(list), &fields, polling))).collect();
    Ok(Box::new(move |seat| {
        let list = seat.index as usize % templates.len();
        match seat.role {
            Role::Producer => Box::new(HttpConnection::new(templates[list].clone())),
            Role::Consumer => Box::new(PollConnection::new(questions[list].clone(), seat.index)),
        }
    }))
}
