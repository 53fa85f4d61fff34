//! A scene: all hosts of a trial and the links between them. It is removed when it is dropped,
//! and whenever the program ends.

use std::io;
use std::net::Ipv4Addr;

use crate::link::counts::PathCounts;
use crate::link::forwarder::{Forwarder, Options};
use crate::link::port::Port;
use crate::link::switch::Place;
use weigh_model::path::Path;

use super::error::HostsError;
use super::host::Host;
use super::namespace::Namespace;
use super::netlink::{Mac, Netlink, index_of};
use super::offloads::{self, Offloads};
use super::rights::NamespaceRights;
use super::tuning;

/// Specification of a scene.
#[derive(Clone, Debug)]
pub struct SceneSpec {
    /// The hosts, at most 200.
    pub hosts: Vec<HostSpec>,
    /// State of the offloads on the links.
    pub offloads: Offloads,
    /// Device that carries packets over paths.
    pub carrier: Carrier,
    /// Settings of the forwarder, if there is one.
    pub forwarder: Options,
}

/// Specification of one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSpec {
    /// Its name, unique in the scene.
    pub name: String,
    /// Path between it and all others; `None` for a plain link. Between two hosts with paths
    /// a packet passes the sender's `up` and the receiver's `down`.
    pub path: Option<Path>,
}

/// Device that carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// TAP devices where `/dev/net/tun` may be opened, else packet rings; without any path, the
    /// kernel as a router.
    #[default]
    Best,
    /// TAP devices and Weighbridge's forwarder, whatever the paths.
    Tap,
    /// Packet rings and Weighbridge's forwarder, whatever the paths.
    Ring,
}

/// Existing hosts.
#[derive(Debug)]
pub struct Scene {
    // Dropped first: it must not forward between hosts that are being removed.
    forwarder: Option<Forwarder>,
    hosts: Vec<Host>,
    /// Where the links meet, if the hosts' ends are not the forwarder's own.
    _middle: Option<Namespace>,
    offloads: Offloads,
    untuned: Vec<String>,
}

/// Connection between the hosts of one scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    Router,
    Tap,
    Ring,
}

impl SceneSpec {
    /// Specifies these hosts, and defaults for all else.
    pub fn of(hosts: Vec<HostSpec>) -> SceneSpec {
        SceneSpec {
            hosts,
            offloads: Offloads::default(),
            carrier: Carrier::default(),
            forwarder: Options::default(),
        }
    }

    fn joint(&self) -> Result<Joint, HostsError> {
        let is_free = |host: &HostSpec| host.path.as_ref().is_none_or(Path::is_free);
        let joint = match self.carrier {
            Carrier::Tap => Joint::Tap,
            Carrier::Ring => Joint::Ring,
            Carrier::Best if self.hosts.iter().all(is_free) => Joint::Router,
            Carrier::Best if Port::tap_is_open().is_ok() => Joint::Tap,
            Carrier::Best => Joint::Ring,
        };
        if self.offloads == Offloads::AsCaptured && joint != Joint::Router {
            return Err(HostsError::Scene(
                "offloads cannot be on with a path: a super-packet would be delayed, lost and \
                 counted as one; leave them off, or remove the path"
                    .to_owned(),
            ));
        }
        Ok(joint)
    }

    fn check(&self) -> Result<(), HostsError> {
        if self.hosts.is_empty() || self.hosts.len() > HOSTS_MAX {
            let number = self.hosts.len();
            return Err(HostsError::Scene(format!("{number} hosts; expected 1 to {HOSTS_MAX}")));
        }
        for (index, host) in self.hosts.iter().enumerate() {
            if self.hosts[..index].iter().any(|other| other.name == host.name) {
                let name = &host.name;
                return Err(HostsError::Scene(format!("two hosts have the name {name:?}")));
            }
        }
        Ok(())
    }

    /// Smallest packet size (MTU) of any path: all hosts must agree, since TCP takes the size
    /// from its own interface and no router reports a smaller one.
    fn mtu(&self) -> u16 {
        let of_paths = self.hosts.iter().filter_map(|host| Some(host.path.as_ref()?.mtu));
        of_paths.min().unwrap_or(MTU)
    }
}

impl Scene {
    /// Makes a scene. Paths stay in their first state until they [`begin`](Scene::begin).
    ///
    /// # Errors
    /// [`HostsError::Scene`] for an impossible one, [`HostsError::Step`] for what the kernel
    /// refused. In both cases nothing of it remains.
    pub fn set(_ground: NamespaceRights, spec: &SceneSpec) -> Result<Scene, HostsError> {
        spec.check()?;
        let joint = spec.joint()?;
        let mtu = spec.mtu();
        let mut hosts = Vec::new();
        for (index, host) in spec.hosts.iter().enumerate() {
            let namespace =
                Namespace::make().map_err(HostsError::step(&host.name, "making its namespace"))?;
            hosts.push(Host { name: host.name.clone(), address: address(index), namespace });
        }
        let middle = match joint {
            Joint::Tap => None,
            Joint::Router | Joint::Ring => {
                Some(Namespace::make().map_err(HostsError::step("the middle", "making it"))?)
            }
        };
        let mut ports = Vec::new();
        let mut untuned = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            let wired = match &middle {
                None => host.inside(|| Port::tap(Host::INTERFACE).map(Some)),
                Some(middle) => wire(middle, host, index, joint, mtu, spec.offloads),
            };
            ports.extend(wired.map_err(HostsError::step(&host.name, joint.wiring()))?);
            let number = hosts.len();
            let furnished = host.inside(|| furnish(index, number, joint, mtu, spec.offloads));
            let failed = furnished.map_err(HostsError::step(&host.name, "its addresses"))?;
            untuned.extend(failed.into_iter().map(|what| format!("{}: {what}", host.name)));
        }
        await_wires(&hosts, middle.as_ref())?;
        if let (Some(middle), Joint::Router) = (&middle, joint) {
            let forwarding = middle.inside(tuning::forward);
            forwarding.map_err(HostsError::step("the router", "net.ipv4.ip_forward = 1"))?;
        }
        let forwarder = match joint {
            Joint::Router => None,
            Joint::Tap | Joint::Ring => {
                let places = hosts
                    .iter()
                    .zip(&spec.hosts)
                    .map(|(host, spec)| Place { address: host.address, path: spec.path.clone() });
                let started =
                    Forwarder::start(ports.into_iter().zip(places).collect(), &spec.forwarder);
                Some(started.map_err(HostsError::step("the forwarder", "starting it"))?)
            }
        };
        Ok(Scene { forwarder, hosts, _middle: middle, offloads: spec.offloads, untuned })
    }

    /// Starts or restarts all paths: steps count from now, random losses come from `seed`.
    pub fn begin(&self, seed: u64) {
        if let Some(forwarder) = &self.forwarder {
            forwarder.begin(seed);
        }
    }

    /// The hosts, in the order of the specification.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the host of this name.
    ///
    /// # Errors
    /// [`HostsError::Scene`] with the known names.
    pub fn host(&self, name: &str) -> Result<&Host, HostsError> {
        self.hosts.iter().find(|host| host.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.hosts.iter().map(Host::name).collect();
            HostsError::Scene(format!(
                "unknown host {name:?}; expected one of {}",
                names.join(", ")
            ))
        })
    }

    /// Counts of the forwarder, if there is one, in the order of the hosts.
    pub fn path_counts(&self) -> Option<PathCounts> {
        self.forwarder.as_ref().map(Forwarder::counts)
    }

    /// Error that stopped the forwarder, if one did.
    pub fn failed(&self) -> Option<String> {
        self.forwarder.as_ref().and_then(Forwarder::failed)
    }

    /// What carries the packets: `router`, `tap` or `packet ring`.
    pub fn carrier(&self) -> &'static str {
        self.forwarder.as_ref().map_or("router", Forwarder::carrier)
    }

    /// Whether the forwarder has real-time priority; `None` without one.
    pub fn has_priority(&self) -> Option<bool> {
        self.forwarder.as_ref().map(Forwarder::has_priority)
    }

    /// State of the offloads on its links.
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Settings of the hosts that the machine did not allow to change: a warning on high loads.
    pub fn untuned(&self) -> &[String] {
        &self.untuned
    }
}

impl Joint {
    fn wiring(self) -> &'static str {
        match self {
            Joint::Tap => "making its TAP device",
            Joint::Router | Joint::Ring => "joining it by a wire",
        }
    }
}

/// Makes a link from the middle to a host and configures the middle's end. For rings that end is
/// the forwarder's port.
fn wire(
    middle: &Namespace,
    host: &Host,
    index: usize,
    joint: Joint,
    mtu: u16,
    offloads: Offloads,
) -> io::Result<Option<Port>> {
    let port = port(index);
    middle.inside(|| {
        let mut netlink = Netlink::open()?;
        netlink.add_wire(&port, Host::INTERFACE, rustix::fd::AsFd::as_fd(&host.namespace))?;
        if offloads == Offloads::Off {
            offloads::turn_off(&port)?;
        }
        // What is forbidden here is forbidden in the host too, which reports it.
        let _ = tuning::without_ipv6(&port);
        netlink.turn_on(&port, mac(MIDDLE, index), mtu, None)?;
        if joint == Joint::Ring {
            return Port::ring(&port).map(Some);
        }
        let number = index_of(&port)?;
        netlink.add_route(number, host.address)?;
        netlink.add_neighbour(number, host.address, mac(HOSTS, index))?;
        Ok(None)
    })
}

/// Gives a host, from inside, its address and neighbours; returns what could not be tuned.
fn furnish(
    index: usize,
    hosts: usize,
    joint: Joint,
    mtu: u16,
    offloads: Offloads,
) -> io::Result<Vec<String>> {
    let mut netlink = Netlink::open()?;
    netlink.set_up("lo")?;
    if offloads == Offloads::Off {
        offloads::turn_off(Host::INTERFACE)?;
    }
    let mut untuned = tuning::tune();
    if let Err(error) = tuning::without_ipv6(Host::INTERFACE) {
        untuned.push(format!("IPv6 is on: {error}"));
    }
    let queue = (joint == Joint::Tap).then_some(TAP_QUEUE);
    netlink.turn_on(Host::INTERFACE, mac(HOSTS, index), mtu, queue)?;
    let number = index_of(Host::INTERFACE)?;
    netlink.add_address(number, address(index), NETWORK_BITS)?;
    for other in (0..hosts).filter(|other| *other != index) {
        // A router receives packets for its own address; the forwarder passes frames on unchanged.
        let next = match joint {
            Joint::Router => mac(MIDDLE, index),
            Joint::Tap | Joint::Ring => mac(HOSTS, other),
        };
        netlink.add_neighbour(number, address(other), next)?;
    }
    Ok(untuned)
}

/// Waits until every link carries packets at both ends.
fn await_wires(hosts: &[Host], middle: Option<&Namespace>) -> Result<(), HostsError> {
    for (index, host) in hosts.iter().enumerate() {
        let is_ready = || Netlink::open()?.wait_ready(Host::INTERFACE);
        host.inside(is_ready).map_err(HostsError::step(&host.name, "waiting for its wire"))?;
        if let Some(middle) = middle {
            let is_ready = || Netlink::open()?.wait_ready(&port(index));
            middle
                .inside(is_ready)
                .map_err(HostsError::step(&host.name, "waiting for its wire"))?;
        }
    }
    Ok(())
}

/// The middle's end of a host's link.
fn port(index: usize) -> String {
    format!("port{index}")
}

/// 10.87.0.1, 10.87.0.2 ...: private (RFC 1918), and visible to the hosts only.
fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 87, 0, index as u8 + 1)
}

/// Locally administered addresses (IEEE 802, second bit of the first byte): of a family and a
/// number.
fn mac(family: u8, index: usize) -> Mac {
    [0x02, 0x57, 0x42, 0x00, family, index as u8 + 1]
}

const HOSTS: u8 = 0;
const MIDDLE: u8 = 1;
const NETWORK_BITS: u8 = 24;
/// Fits in one byte of the address, with some to spare.
const HOSTS_MAX: usize = 200;
/// The payload of an Ethernet frame (IEEE 802.3).
const MTU: u16 = 1500;
/// Packets that may wait for the forwarder when it is not running: 70 ms at 140,000 a second.
const TAP_QUEUE: u32 = 10_000;
