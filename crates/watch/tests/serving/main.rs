//! The server of a run that is watched, over real TCP.

mod access;
mod client;
mod events;
mod large;
mod prometheus;
mod study;
