//! The cost model of a server's processor time: what it pays for ([`Driver`]), how much of it a
//! load has ([`Load`]), and the fit of both to measured cells ([`Fitted`]). Reasons:
//! `docs/decisions/0038-cost-model.md`.

mod driver;
mod fit;
mod load;

pub use driver::Driver;
pub use fit::{FLOOR_CORES, Fitted, Measured, error, held_out};
pub use load::Load;
