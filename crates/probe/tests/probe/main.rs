//! What is found out about servers whose limits are known, about odd ones, and about what is no
//! server.

mod demands;
mod mosquitto;
mod odd_brokers;
mod reference;
mod rig;
mod strangers;
