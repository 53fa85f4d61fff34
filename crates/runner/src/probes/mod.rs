//! What is seen of a trial beside its messages, one file for each.

pub mod activity;
pub mod background;
pub mod crossing;
pub mod departures;
pub mod emulated;
pub mod heard;
pub mod hearing;
pub mod hop_files;
pub mod layers;
pub mod messages;
pub mod metering;
pub mod on_air;
pub mod outside;
pub mod power;
pub mod pulses;
pub mod session;
pub mod staged;
pub mod taken;
pub mod tcp_view;
pub mod watched;
