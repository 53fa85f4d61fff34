//! All pictures of a run, as options of ECharts: made once here, drawn by `charts` on the page and
//! on the command line. Options contain no colours and no functions, only their names (`"$c1"`,
//! `"@mark"`), and refer to data that pictures share (`{"$rows": [...]}`).

mod axes;
mod cost;
mod curves;
mod dots;
mod flow;
mod gallery;
mod histograms;
mod loads;
mod modelled;
mod over_time;
mod picture;
pub mod scale;
mod search;
mod selection;
mod session;
mod shared;
mod stacked;
mod tcp_looks;
mod way;
mod wire;

pub use gallery::Gallery;
pub use picture::{Kind, Picture, lean};
pub use selection::{Named, chosen};
