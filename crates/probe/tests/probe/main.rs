//! Findings about servers whose limits are known, about odd ones, and about endpoints of other
//! kinds.

mod demands;
mod mosquitto;
mod newer;
mod odd_brokers;
mod pushed;
mod queues;
mod reference;
mod rig;
mod strangers;
