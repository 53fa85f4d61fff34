//! The stage of a trial: whether its parties are hosts of their own, which ones there are, and what
//! lies between them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use weigh_engine::outlet::Outlet;
use weigh_model::path::Path;
use weigh_testbed::hosts::{Door, Ground, Host, HostSpec, HostsError, Offloads, Scene, SceneSpec};

use crate::case::Case;
use crate::case::share::TargetShare;
use crate::exit::{Exit, Stop};
use crate::watcher::Watcher;

/// Whether generator and target can be hosts of their own in this run.
#[derive(Clone, Debug, Default)]
pub enum Privileges {
    /// Nobody asks for it: plain loopback.
    #[default]
    Loopback,
    /// They can.
    Ground(Ground),
    /// Somebody asks, and the machine forbids it: why, and the mend.
    Forbidden(String, String),
}

impl Privileges {
    /// Takes the ground if a case asks for it. To be called while there is one thread.
    ///
    /// # Errors
    /// If it is too late. That the machine forbids it is no error but a doubt.
    pub fn take(cases: &[Case], watcher: &dyn Watcher) -> Result<Privileges, Stop> {
        if !cases.iter().any(|case| case.has_hosts) {
            return Ok(Privileges::Loopback);
        }
        match Ground::take() {
            Ok(ground) => Ok(Privileges::Ground(ground)),
            Err(HostsError::Forbidden { reason, mend, .. }) => {
                watcher.say(&format!("no hosts, so no path and no wire: {reason}; {mend}"));
                Ok(Privileges::Forbidden(reason, mend))
            }
            Err(error) => Err(Stop::new(Exit::Internal, error)),
        }
    }
}

/// What a trial asks to lie between generator and target.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// What it stands on.
    pub privileges: Privileges,
    /// The path.
    pub path: Option<Path>,
    /// Whether a relay stands between generator and target.
    pub has_relay: bool,
    /// Whether the kernel cuts and joins packets on the wires.
    pub offloads: Offloads,
    /// Whether subscribers have a host of their own, apart from the publishers'.
    pub has_subscribers: bool,
    /// Whether somebody listens on the wire.
    pub is_heard: bool,
    /// Where the packets are kept.
    pub file: Option<PathBuf>,
    /// What the target is given of the machine.
    pub share: TargetShare,
    /// Whether one session is to be told packet by packet: the case has none yet.
    pub shows_session: bool,
}

impl Stage {
    /// What tells the stages of a run apart.
    pub fn key(&self) -> String {
        let mut key = String::new();
        if self.has_relay {
            key += " behind a relay";
        }
        if self.has_hosts() {
            let Stage { path, offloads, has_subscribers, .. } = self;
            key += &format!(" across {path:?}, {offloads:?}, {has_subscribers}");
        }
        if self.share.is_asked() {
            key += &format!(" within {:?}", self.share);
        }
        key
    }

    /// Sets the scene; `None` where generator and target stay on loopback.
    pub fn set(&self) -> Result<Option<Scene>, Stop> {
        let Privileges::Ground(ground) = self.privileges else { return Ok(None) };
        if !self.has_hosts() {
            return Ok(None);
        }
        let host = |name: &str, path| HostSpec { name: name.to_owned(), path };
        let mut hosts = vec![host(GENERATOR, self.path.clone()), host(TARGET, None)];
        if self.has_relay {
            // The second hop crosses the path as the first one does, as a broker's would.
            hosts[1].path.clone_from(&self.path);
            hosts.push(host(RELAY, None));
        }
        hosts.extend(self.has_subscribers.then(|| host(SUBSCRIBER, self.path.clone())));
        let spec = SceneSpec { offloads: self.offloads, ..SceneSpec::of(hosts) };
        let scene = Scene::set(ground, &spec);
        scene.map(Some).map_err(|error| Stop::new(Exit::Internal, error))
    }

    /// Whether its parties are hosts of their own.
    pub fn has_hosts(&self) -> bool {
        self.path.is_some() || self.is_heard
    }
}

/// Whether clients are on it: those whose wires count, and whose path is up and down.
pub fn is_client(host: &Host) -> bool {
    matches!(host.name(), GENERATOR | SUBSCRIBER)
}

/// The generator's way to the subscribers' host, where they have one.
pub fn subscribers(scene: &Scene) -> Option<Arc<dyn Outlet>> {
    let there = scene.host(SUBSCRIBER).ok()?.door();
    let home = scene.host(GENERATOR).ok()?.door();
    Some(Arc::new(Aside { there, home }))
}

/// A host to make sockets on, and the one to come back to.
struct Aside {
    there: Door,
    home: Door,
}

impl Outlet for Aside {
    fn through(&self, make: &mut dyn FnMut()) -> io::Result<()> {
        self.there.enter()?;
        make();
        self.home.enter()
    }
}

/// The subscribers' host.
pub const SUBSCRIBER: &str = "subscriber";

/// The generator's host; publishers are on it.
pub const GENERATOR: &str = "generator";

/// The target's host.
pub const TARGET: &str = "target";

/// The relay's host.
pub const RELAY: &str = "relay";
