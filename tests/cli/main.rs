//! The command line as a user meets it: the built program, in a folder of its own, on small loads.
//! Nothing here asserts a time.

mod advising;
mod amqp;
mod amqp1;
mod auditing;
mod background;
mod brokers;
mod clocks;
mod coap;
mod commands;
mod diff;
#[cfg(feature = "dtls")]
mod dtls;
mod durability;
mod endings;
mod energy;
mod exports;
mod facades;
mod farms;
mod finished;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(all(feature = "fleet", feature = "tls"))]
mod fleet_credentials;
#[cfg(feature = "fleet")]
mod fleet_material;
#[cfg(feature = "fleet")]
mod fleet_protocols;
#[cfg(feature = "fleet")]
mod fleet_refused;
#[cfg(feature = "fleet")]
mod fleet_resumed;
#[cfg(not(feature = "fleet"))]
mod fleet_unbuilt;
mod foreign;
mod gates;
#[cfg(feature = "proto")]
mod grpc;
mod guide;
mod http2;
#[cfg(feature = "quic")]
mod http3;
mod isolation;
mod judging;
mod kafka;
mod kafka_groups;
mod lateness;
mod launching;
mod limit;
mod live;
mod loads;
mod main_job;
#[cfg(feature = "parquet")]
mod messages;
mod modelled;
#[cfg(feature = "quic")]
mod mqtt_quic;
mod nats;
mod numbers;
mod observing;
mod oscore;
mod outputs;
mod packaging;
mod packets;
mod path;
#[cfg(feature = "pipeline")]
mod pipeline;
mod plans;
mod polling;
mod probed;
mod probing;
mod push;
mod rates;
mod readme;
mod recording;
mod redirects;
mod redis;
mod refusals;
mod requests;
mod resume;
mod rig;
mod rundown;
mod runs;
mod sealed;
#[cfg(feature = "quic")]
mod segmentation;
mod serving;
mod slow_paths;
mod slurm;
#[cfg(feature = "pipeline")]
mod stages;
mod stored;
mod strangers;
mod studies;
mod sys;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
mod tools;
mod transfers;
#[cfg(feature = "watch")]
mod watching;
mod websocket;
mod weighing;
mod widths;
mod wire;
mod wrong_input;
