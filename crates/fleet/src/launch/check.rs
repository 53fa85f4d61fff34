//! What is refused before anything is printed.

use std::net::IpAddr;

use weigh_model::fleet::AGENTS_MAX;
use weigh_model::protocol::Invalid;

use super::options::LaunchOptions;
use crate::allow::AllowList;

/// Checks what all launchers need.
pub(super) fn all(options: &LaunchOptions) -> Result<(), Invalid> {
    if !(1..=AGENTS_MAX).contains(&options.agents) {
        let problem = format!("{} is not a number of agents", options.agents);
        return Err(Invalid::new("--agents", problem, format!("type 1 to {AGENTS_MAX}")));
    }
    bus(&options.bus)?;
    if options.may_load.is_empty() {
        let problem = "without it the agents may load nothing";
        return Err(Invalid::new("--may-load", problem, "type --may-load HOST:PORT"));
    }
    AllowList::parse(&options.may_load)
        .map_err(|problem| Invalid::new("--may-load", problem, "type HOST:PORT"))?;
    if let Some(name) = &options.fleet_name {
        fleet_name(name)?;
    }
    if !(1..=CORES_MAX).contains(&options.cores) {
        let problem = format!("{} is not a number of cores", options.cores);
        return Err(Invalid::new("--cores", problem, format!("type 1 to {CORES_MAX}")));
    }
    if options.memory_mib == 0 {
        return Err(Invalid::new("--memory", "an agent needs memory", "type at least 1MiB"));
    }
    if options.deadline.as_secs() < DEADLINE_MIN_S {
        let problem = format!("{:?} is too short for a run", options.deadline);
        return Err(Invalid::new("--deadline", problem, "type at least 1m"));
    }
    let binary = options.binary.to_str().unwrap_or_default();
    plain("--binary", binary, "type the path of weigh on the hosts")?;
    let mut files = options.flags().zip(options.places()).given();
    files.try_for_each(|(flag, place)| plain(flag, place, "type the path of a file"))
}

/// Returns the image, which containers need.
pub(super) fn image(options: &LaunchOptions) -> Result<&str, Invalid> {
    let image = options.image.as_deref().unwrap_or_default();
    let fix = "type --image REGISTRY/NAME:TAG of an image with weigh in it";
    plain("--image", image, fix)?;
    Ok(image)
}

/// Refuses a bus that a container with its own network cannot reach.
pub(super) fn reached_from_containers(options: &LaunchOptions) -> Result<(), Invalid> {
    let host = host_of(&options.bus);
    let is_local = host == "localhost"
        || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if options.host_network || !is_local {
        return Ok(());
    }
    let problem = format!("{}: in a container, {host} is the container itself", options.bus);
    Err(Invalid::new("--bus", problem, "type an address that the containers can reach"))
}

/// Checks the URL: without credentials, which would be printed.
fn bus(url: &str) -> Result<(), Invalid> {
    let fix = "type nats://HOST:4222, or tls://HOST:4222";
    plain("--bus", url, fix)?;
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if !scheme.is_some_and(|scheme| SCHEMES.contains(&scheme)) || host_of(url).is_empty() {
        return Err(Invalid::new("--bus", format!("{url}: not the URL of a bus"), fix));
    }
    if authority(url).contains('@') {
        let problem = "the URL has credentials, which the printed text would show";
        let fix = "write them to a file of the hosts, and type --token-file, --nkey or --creds";
        return Err(Invalid::new("--bus", problem, fix));
    }
    Ok(())
}

fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The host of a URL; that of IPv6 has brackets.
fn host_of(url: &str) -> &str {
    let authority = authority(url);
    match authority.rfind(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// A fleet's name is part of subjects on the bus, and of names in Kubernetes (RFC 1123).
fn fleet_name(name: &str) -> Result<(), Invalid> {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.bytes().all(is_inner);
    if fits && !name.starts_with('-') && !name.ends_with('-') {
        return Ok(());
    }
    let problem = format!("{name:?} is not the name of a fleet");
    let fix = format!("type at most {NAME_LENGTH_MAX} of a to z, 0 to 9, and - between them");
    Err(Invalid::new("--fleet-name", problem, fix))
}

/// A value with letters that can be seen: a line break would be a line of the printed text.
pub(super) fn plain(place: &str, value: &str, fix: &str) -> Result<(), Invalid> {
    if value.is_empty() {
        return Err(Invalid::new(place, "it is missing", fix));
    }
    if value.starts_with('-') {
        return Err(Invalid::new(place, format!("{value:?} would be taken as an option"), fix));
    }
    if value.chars().any(char::is_control) {
        return Err(Invalid::new(place, format!("{value:?} has control characters"), fix));
    }
    Ok(())
}

/// Schemes of URLs of NATS.
const SCHEMES: [&str; 2] = ["nats", "tls"];

/// Most cores of an agent.
const CORES_MAX: u32 = 4096;

/// Shortest time for a run, in seconds.
const DEADLINE_MIN_S: u64 = 60;

/// Longest name of a fleet: with what Kubernetes adds for a pod, it is below 63 letters.
const NAME_LENGTH_MAX: usize = 32;
