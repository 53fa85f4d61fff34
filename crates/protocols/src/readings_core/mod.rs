//! Lists of readings, which consumers of the pattern `poll` request over HTTP and over CoAP: their
//! form in JSON, and the lists that a reference server keeps.

mod kept;
mod list;

pub(crate) use kept::{Found, Query, Readings};
pub(crate) use list::{Page, each_of_batch, put_batch, put_json_string};
