//! Peers that mean ill: at least 60 kinds of bad client against every reference server, and as many
//! kinds of bad server against every client, on virtual time and on sockets. The kinds are tables,
//! one line each, in `lists`.
//!
//! A server must serve the next honest client with an exact ledger, in bounded memory and steps. A
//! client must end with a ledger that adds up and a named cause.

mod bad_client;
mod bad_server;
mod clients;
mod desk;
mod honest;
mod kind;
mod lists;
mod memory;
mod servers;
mod silent;
mod sockets;
mod speaker;
mod tamper;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;
