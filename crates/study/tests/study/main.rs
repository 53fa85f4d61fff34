//! Studies as users meet them: a small one that is read, and judged by recorded runs; and every
//! slip that is named before anything starts.

mod answers;
mod fixture;
mod less_evidence;
mod loading;
mod occasions;
mod plans;
mod schema;
