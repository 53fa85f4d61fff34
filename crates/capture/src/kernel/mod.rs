//! The kernel's own counts, without a capture: `TCP_INFO` of own sockets, and sock_diag for all
//! sockets.

pub mod agreement;
mod diag;
pub mod figures;
mod watch;

pub use agreement::{Agreement, Difference, agreement};
pub use diag::SocketTable;
pub use figures::{Role, SocketView, Source, TcpFigures};
pub use watch::{KernelAccount, KernelWatch, Sample};
