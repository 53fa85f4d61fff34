//! Shows a run while it runs, from the files in its folder: the generator does nothing for it but
//! write the journal and the live file.
//!
//! ```text
//!   journal.jsonl ──► follow ──┐
//!                              ├──► state ──► terminal     drawn twice a second at most
//!   live.jsonl ─────► live ────┤       └────► metrics      OpenMetrics
//!                              └──► web                    server-sent events, and the page
//! ```
//!
//! [`subject::Subject`] says whose: a run's, or those of a study's runs, one after another.
//! [`watching::Watching`] joins the two files; `process` reads open files and memory of the
//! generator from the kernel; `courtesy` keeps the reader out of the way of what is measured.

pub mod courtesy;
pub mod follow;
pub mod live;
pub mod metrics;
pub mod process;
pub mod state;
pub mod subject;
pub mod terminal;
pub mod watching;
pub mod web;

pub use follow::{Follower, JournalLine, Lost};
pub use live::LiveReader;
pub use state::RunState;
pub use subject::Subject;
pub use watching::Watching;
