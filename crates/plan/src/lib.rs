//! The language of plans: what a user asks in a file, and the cases that come of it. Text goes
//! in, a resolved [`Plan`](weigh_model::plan::Plan) or a list of errors with their places comes
//! out. Knows no protocol by name.

pub mod matrix;
