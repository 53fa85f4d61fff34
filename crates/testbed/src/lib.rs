//! Finds and starts servers, each in its own process and folder, on its own cores, ready before
//! the first message and always stopped; and checks beforehand what cannot work.
//!
//! A **target** is data ([`target::Target`], `targets/*.toml`, gathered in [`catalogue`]); a
//! [`managed::ManagedServer`] is one that runs. A [`reference::ReferenceServer`] is our own
//! `weigh serve` as a child. Both stand on [`process::ManagedProcess`]. [`doctor`] is pure: it
//! compares what is asked ([`doctor::Demand`]) with what was found ([`facts::Facts`]).

pub mod bus;
pub mod cache;
pub mod catalogue;
pub mod cgroup;
pub mod counter;
pub mod descriptors;
pub mod doctor;
pub mod facts;
pub mod family;
pub mod find;
pub mod hosts;
pub mod install;
pub mod link;
pub mod listening;
pub mod managed;
pub mod package;
pub mod patience;
pub mod pinning;
pub mod pipeline;
pub mod placement;
pub mod process;
pub mod programs;
pub mod reference;
pub mod serve_lines;
pub mod target;

mod spawner;
mod template;
