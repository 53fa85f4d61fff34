//! Studies as users meet them: a small one that is read, and judged by recorded runs; and every
//! slip that is named before anything starts.

mod fixture;
mod loading;
mod plans;
mod schema;
mod verdicts;
