//! Makes the job of an agent: the protocol of the trial, its bodies, its TLS, its local addresses.

use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, memfd_create};
use weigh_engine::job::Job;
use weigh_engine::object::ObjectFile;
use weigh_engine::rendezvous::Rendezvous;
use weigh_fleet::{Material, Order, Part, Secrets, Workshop};
use weigh_model::body::BodySource;
use weigh_model::endpoint::Credentials;
use weigh_model::trial::Settings;
use weigh_model::{Arrival, Endpoint, Pattern, Trial, tls};
use weigh_testbed::link::urgency;
use weigh_testbed::pinning::CoreSet;

use crate::case::lanes::{Against, Lane};
use crate::case::material::{self, composer};
use crate::exit::{Exit, Stop};
use crate::targets::addresses::sources;
use crate::targets::tls::CertificateFiles;
use crate::targets::{layers, oscore};
use crate::trial::series::reported_every;

/// Makes jobs of orders, on the host of an agent.
pub struct Bench {
    /// The cores for shards, one for each; `None` leaves the choice to the scheduler.
    cores: Option<CoreSet>,
}

impl Bench {
    /// A workshop on this host. Shards get cores of their own only if the process was given some of
    /// the host's cores (Kubernetes, Slurm, taskset): otherwise another agent may be on them.
    pub fn of_this_host() -> Bench {
        let there = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let cores = CoreSet::allowed().ok().filter(|own| own.count() < number_of_cores(&there));
        Bench { cores }
    }
}

impl Workshop for Bench {
    fn job(
        &self,
        part: &Part,
        material: &Material,
        meeting: Arc<dyn Rendezvous>,
    ) -> Result<Job, String> {
        job(&part.order, part.secrets.as_ref(), material, meeting).map_err(|stop| stop.to_string())
    }

    fn thread_started(&self, part: &Part, shard: u32) {
        let arrival = &part.order.trial.load.arrival;
        let place = shard.saturating_sub(part.here.start) as usize;
        if let Some(cores) = &self.cores {
            // An affinity that cannot be set leaves the thread where the scheduler puts it.
            let _ = CoreSet::of([cores.cores()[place % cores.cores().len()]]).pin_this_thread();
            if arrival.is_open() && *arrival != Arrival::Burst {
                // Without the right to do so, the send lag shows the effect.
                let _ = urgency::before_others(urgency::Rank::Generator);
            }
        }
    }
}

fn job(
    order: &Order,
    secrets: Option<&Secrets>,
    material: &Material,
    rendezvous: Arc<dyn Rendezvous>,
) -> Result<Job, Stop> {
    let files = PemFiles::of(order, secrets)?;
    let endpoint = endpoint(order, secrets);
    let mut trial: Trial = order.trial.clone();
    files.name_in(&mut trial.settings);
    let own = secrets.map(|own| own.settings.clone()).unwrap_or_default();
    trial.settings.0.extend(own);
    trial.endpoint = Some(endpoint.clone());
    let protocol = weigh_protocols::find(&trial.protocol)?;
    let lane = Lane {
        protocol,
        against: Against::Foreign(endpoint.clone()),
        given: Default::default(),
        settings: trial.settings.clone(),
        durability: None,
    };
    let dial = protocol.dial(&oscore::with_own_ids(&trial))?;
    // Certificates that are made for a run are never made here.
    let vault = CertificateFiles::new(PathBuf::new());
    let (dial, _) = layers::dial(&lane, dial, (&endpoint, trial.seed), &vault)?;
    let is_streamed =
        matches!((trial.load.pattern, &trial.load.body), (Pattern::Transfer, BodySource::File(_)));
    let object = is_streamed.then(|| object(&material.body)).transpose()?;
    let own = material::Material {
        body: if is_streamed { Vec::new() } else { material.body.clone() },
        object_bytes: object.as_ref().map_or(0, ObjectFile::bytes),
        trace: material.trace.clone(),
    };
    let (composer, _) = composer(&trial, &own, order.unix_ns)?;
    let address = order.target.address;
    Ok(Job {
        object,
        sources: sources(&trial, address),
        consumers: None,
        dial,
        composer,
        address,
        trace: own.trace,
        shards: order.shards,
        every: order.every.unwrap_or_else(|| reported_every(&trial.load, None)),
        messages: None,
        is_metered: false,
        may_be_cut_off: false,
        rendezvous,
        trial,
    })
}

/// A file in memory that is sent piece by piece.
fn object(bytes: &[u8]) -> Result<ObjectFile, Stop> {
    let file = in_memory("object", bytes)?;
    // Opened by its name, it stays when the descriptor is closed.
    let opened = ObjectFile::open(&format!("/proc/self/fd/{}", file.as_raw_fd()));
    opened.map_err(|error| Stop::new(Exit::Generator, error))
}

fn endpoint(order: &Order, secrets: Option<&Secrets>) -> Endpoint {
    let target = &order.target;
    let user = secrets.filter(|own| !own.user.is_empty());
    Endpoint {
        scheme: target.scheme.clone(),
        host: target.host.clone(),
        port: target.port,
        path: target.path.clone(),
        credentials: user
            .map(|own| Credentials { user: own.user.clone(), password: own.password.clone() }),
        address: Some(target.address),
    }
}

/// Certificates and keys of an order as files in memory, which no other process can open by name.
#[derive(Default)]
struct PemFiles(Vec<(&'static str, Option<OwnedFd>)>);

impl PemFiles {
    fn of(order: &Order, secrets: Option<&Secrets>) -> Result<PemFiles, Stop> {
        if !tls::is_on(&order.trial.settings) {
            return Ok(PemFiles::default());
        }
        let authority = order.tls.as_ref().and_then(|own| own.pem.as_deref()).unwrap_or_default();
        let of_client = |part: fn(&Secrets) -> &String| secrets.map(part).map(String::as_str);
        let parts = [
            ("tls_ca", authority),
            ("tls_cert", of_client(|own| &own.certificate_pem).unwrap_or_default()),
            ("tls_key", of_client(|own| &own.key_pem).unwrap_or_default()),
        ];
        let file = |(key, pem): (&'static str, &str)| match pem {
            "" => Ok((key, None)),
            pem => in_memory(key, pem.as_bytes()).map(|file| (key, Some(file))),
        };
        Ok(PemFiles(parts.into_iter().map(file).collect::<Result<_, _>>()?))
    }

    /// Replaces the names of the coordinator's files.
    fn name_in(&self, settings: &mut Settings) {
        for (key, file) in &self.0 {
            let path = file.as_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
            settings.0.insert((*key).to_owned(), path.unwrap_or_default());
        }
    }
}

fn in_memory(name: &str, bytes: &[u8]) -> Result<OwnedFd, Stop> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    Ok(file.into())
}

/// Number of cores in a list of the kernel, such as `0-3,8`.
fn number_of_cores(list: &str) -> u32 {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    list.trim().split(',').filter_map(range).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_of_cores_is_counted() {
        for (list, count) in [("0-3,8\n", 5), ("0", 1), ("2-2,4-5", 3), ("", 0)] {
            assert_eq!(number_of_cores(list), count, "{list:?}");
        }
    }
}
