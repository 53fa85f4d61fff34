//! Trials over a real bus: `nats-server` with JetStream, agents as threads and as processes, the
//! engine's reference servers. Without `nats-server` the tests say SKIPPED, except with CI=true.

mod agents;
mod clocks;
mod cut;
mod fault_proxy;
mod killed;
mod nats;
mod proxy;
mod raw;
mod reference;
mod refused;
mod same_load;
mod target;
mod tls;
mod twice;
mod workshop;
