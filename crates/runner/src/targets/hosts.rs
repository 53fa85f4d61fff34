//! The stage of a trial: the network namespaces of generator and target, and the links between
//! them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use weigh_engine::socket_host::SocketHost;
use weigh_model::path::Path;
use weigh_testbed::hosts::{
    Door, Host, HostSpec, HostsError, NamespaceRights, Offloads, Scene, SceneSpec,
};

use crate::case::Case;
use crate::case::share::TargetShare;
use crate::exit::{Exit, Stop};
use crate::watcher::Watcher;

/// Permission to make network namespaces for generator and target in this run.
#[derive(Clone, Debug, Default)]
pub enum Privileges {
    /// Not needed: plain loopback.
    #[default]
    Loopback,
    /// They can.
    NamespaceRights(NamespaceRights),
    /// Needed, but the machine does not allow it: the reason, and the fix.
    Forbidden(String, String),
}

impl Privileges {
    /// Acquires the rights if a case needs them. Call it while there is one thread.
    ///
    /// # Errors
    /// A process with other threads. A machine that does not allow it causes only a warning.
    pub fn take(cases: &[Case], watcher: &dyn Watcher) -> Result<Privileges, Stop> {
        if !cases.iter().any(|case| case.has_hosts) {
            return Ok(Privileges::Loopback);
        }
        match NamespaceRights::take() {
            Ok(ground) => Ok(Privileges::NamespaceRights(ground)),
            Err(HostsError::Forbidden { reason, fix, .. }) => {
                watcher.say(&format!(
                    "no network namespaces, so no path and no wire: {reason}; {fix}"
                ));
                Ok(Privileges::Forbidden(reason, fix))
            }
            Err(error) => Err(Stop::new(Exit::Internal, error)),
        }
    }
}

/// Hosts, relay and path that a trial needs between generator and target.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Rights to network namespaces.
    pub privileges: Privileges,
    /// The path.
    pub path: Option<Path>,
    /// True if a relay is between generator and target.
    pub has_relay: bool,
    /// Segmentation offloads of the links.
    pub offloads: Offloads,
    /// True if subscribers have a host of their own, separate from the publishers'.
    pub has_subscribers: bool,
    /// True if the wire is captured.
    pub is_heard: bool,
    /// The file for captured packets.
    pub file: Option<PathBuf>,
    /// Cores and memory of the target.
    pub share: TargetShare,
    /// True if one session is to be recorded packet by packet: the case has none yet.
    pub shows_session: bool,
}

impl Stage {
    /// Identifies a stage among those of a run.
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

    /// Sets up the scene; `None` if generator and target stay on loopback.
    ///
    /// # Errors
    /// A scene that cannot be set up.
    pub fn set(&self) -> Result<Option<Scene>, Stop> {
        let Privileges::NamespaceRights(ground) = self.privileges else { return Ok(None) };
        if !self.has_hosts() {
            return Ok(None);
        }
        let host = |name: &str, path| HostSpec { name: name.to_owned(), path };
        let mut hosts = vec![host(GENERATOR, self.path.clone()), host(TARGET, None)];
        if self.has_relay {
            // The second hop has the same path as the first, like a broker's.
            hosts[1].path.clone_from(&self.path);
            hosts.push(host(RELAY, None));
        }
        hosts.extend(self.has_subscribers.then(|| host(SUBSCRIBER, self.path.clone())));
        let spec = SceneSpec { offloads: self.offloads, ..SceneSpec::of(hosts) };
        let scene = Scene::set(ground, &spec);
        scene.map(Some).map_err(|error| Stop::new(Exit::Internal, error))
    }

    /// True if generator and target have network namespaces.
    pub fn has_hosts(&self) -> bool {
        self.path.is_some() || self.is_heard
    }
}

/// True for a host of clients: their wires are counted, and their path has the directions up and
/// down.
pub fn is_client(host: &Host) -> bool {
    matches!(host.name(), GENERATOR | SUBSCRIBER)
}

/// The generator's route to the subscribers' host, if they have one.
pub fn subscribers(scene: &Scene) -> Option<Arc<dyn SocketHost>> {
    let there = scene.host(SUBSCRIBER).ok()?.door();
    let home = scene.host(GENERATOR).ok()?.door();
    Some(Arc::new(SubscriberHost { there, home }))
}

/// A host on which to make sockets, and the one to return to.
struct SubscriberHost {
    there: Door,
    home: Door,
}

impl SocketHost for SubscriberHost {
    fn enter(&self, make: &mut dyn FnMut()) -> io::Result<()> {
        self.there.enter()?;
        make();
        self.home.enter()
    }
}

/// The subscribers' host.
pub const SUBSCRIBER: &str = "subscriber";

/// The generator's host, with the publishers.
pub const GENERATOR: &str = "generator";

/// The target's host.
pub const TARGET: &str = "target";

/// The relay's host.
pub const RELAY: &str = "relay";
