//! Runs plans: resolves them to cases, gives each trial its target, its load and its probes, and
//! records every measurement as an event in a journal. The command line uses it, and other programs
//! can:
//!
//! ```no_run
//! # fn main() -> Result<(), weigh_runner::exit::Stop> {
//! let plan = r#"
//!     vary.protocol = ["tcp", "mqtt"]
//!     load = { pattern = "publish", messages = 1000, warmup = "0s" }
//! "#;
//! let runner = weigh_runner::runner::Runner::new("/usr/local/bin/weigh", "runs")?;
//! let finished = runner.run("two-cases", plan)?;
//! for cell in &finished.summary.cells {
//!     println!("{}: {:?} of {} lost", cell.name, cell.ledger.lost, cell.ledger.sent);
//! }
//! println!("run: {}", finished.folder.path().display());
//! # Ok(())
//! # }
//! ```
//!
//! The library prints nothing (see [`watcher`]). Built-in servers and generators run in processes
//! of the program that it is given.

pub mod advice;
pub mod case;
pub mod discharges;
pub mod emulate;
pub mod energy;
pub mod exit;
pub mod fleet;
pub mod input_file;
pub mod interrupts;
pub mod preflight;
pub mod probe;
pub mod probes;
pub mod run;
pub mod rundown;
pub mod runner;
pub mod scheduler;
pub mod sealed_bodies;
pub mod search;
pub mod study;
pub mod targets;
pub mod trial;
pub mod watcher;
