//! Hosts on one machine: each party of a trial in a network namespace of its own, joined by
//! wires that carry whole packets of 1,500 bytes, with a path between them or none.
//!
//! As root, or as anybody else where the kernel lets users make namespaces ([`ground`]). The
//! namespaces have no names and no files: they live in descriptors and threads of this program
//! and its children, so whatever ends the program ends them, `kill -9` too. Linux only.
//!
//! ```no_run
//! use weigh_testbed::hosts::{Ground, HostSpec, Scene, SceneSpec};
//! let ground = Ground::take()?; // first thing in main, while there is one thread
//! let lte = weigh_model::path::preset("lte")?;
//! let client = HostSpec { name: "generator".into(), path: Some(lte) };
//! let server = HostSpec { name: "target".into(), path: None };
//! let scene = Scene::set(ground, &SceneSpec::of(vec![client, server]))?;
//! scene.begin(7);
//! scene.host("generator")?.enter()?; // this thread's sockets are the generator's now
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod ground;
mod host;
mod namespace;
mod netlink;
mod offloads;
mod scene;
pub(crate) mod tuning;

pub use error::HostsError;
pub use ground::Ground;
pub use host::{Door, Host};
pub use offloads::Offloads;
pub use scene::{Carrier, HostSpec, Scene, SceneSpec};
