//! Hosts on one machine: each party of a trial in a network namespace of its own, joined by
//! wires that carry whole packets of 1,500 bytes, with a path between them or none.
//!
//! Works as root, or as another user if the kernel lets users make namespaces ([`rights`]). The
//! namespaces have no names and no files: they live in descriptors and threads of this program
//! and its children, so they end with the program, also after `kill -9`. Linux only.
//!
//! ```no_run
//! use weigh_testbed::hosts::{NamespaceRights, HostSpec, Scene, SceneSpec};
//! let ground = NamespaceRights::take()?; // first thing in main, while there is one thread
//! let lte = weigh_model::path::preset("lte")?;
//! let client = HostSpec { name: "generator".into(), path: Some(lte) };
//! let server = HostSpec { name: "target".into(), path: None };
//! let scene = Scene::set(ground, &SceneSpec::of(vec![client, server]))?;
//! scene.begin(7);
//! scene.host("generator")?.enter()?; // this thread's sockets are the generator's now
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod host;
mod namespace;
mod netlink;
mod offloads;
mod rights;
mod scene;
pub(crate) mod tuning;

pub use error::HostsError;
pub use host::{Door, Host};
pub use offloads::Offloads;
pub use rights::NamespaceRights;
pub use scene::{Carrier, HostSpec, Scene, SceneSpec};
