//! A compose file: all agents on one host, each in a container with its own cores.

use std::collections::BTreeMap;

use serde::Serialize;
use weigh_model::protocol::Invalid;

use super::bus_files::BusFiles;
use super::check;
use super::options::LaunchOptions;
use super::yaml::yaml;

/// Prints the file.
pub(super) fn print(options: &LaunchOptions) -> Result<String, Invalid> {
    check::reached_from_containers(options)?;
    let image = literal(check::image(options)?);
    let files = NAMES.zip(options.places());
    let words = options.agent_words(files.map(|(name, _)| format!("/run/secrets/{name}")));
    let service = |rank: u32| {
        let mut words: Vec<String> = words.iter().map(|word| literal(word)).collect();
        words.extend(["--rank".to_owned(), rank.to_string()]);
        Service {
            image: image.clone(),
            entrypoint: [literal(&options.binary.display().to_string())],
            command: words,
            cpuset: cores_of(rank, options.cores),
            network_mode: options.host_network.then_some("host"),
            restart: "no",
            secrets: files.given().map(|(name, _)| name).collect(),
        }
    };
    let services = (0..options.agents).map(|rank| (format!("agent-{rank:04}"), service(rank)));
    let secrets = files.given().map(|(name, file)| (name, Secret { file: literal(file) }));
    let file = Compose {
        name: options.job_name(),
        services: services.collect(),
        secrets: secrets.collect(),
    };
    Ok(format!("{HEAD}{}", yaml(&file)?))
}

/// Compose replaces `$NAME` in every string; `$$` is a dollar sign.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// Cores of an agent. A quota would stop its threads in the middle of a period; a set does not.
fn cores_of(rank: u32, cores: u32) -> String {
    let first = rank * cores;
    match cores {
        1 => first.to_string(),
        _ => format!("{first}-{}", first + cores - 1),
    }
}

#[derive(Serialize)]
struct Compose {
    name: String,
    services: BTreeMap<String, Service>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    secrets: BTreeMap<&'static str, Secret>,
}

#[derive(Serialize)]
struct Service {
    image: String,
    entrypoint: [String; 1],
    command: Vec<String>,
    cpuset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_mode: Option<&'static str>,
    restart: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<&'static str>,
}

#[derive(Serialize)]
struct Secret {
    file: String,
}

/// Names of the files in a container.
const NAMES: BusFiles<&str> = BusFiles {
    credentials: Some("bus-credentials"),
    ca: Some("bus-ca"),
    certificate: Some("bus-certificate"),
    key: Some("bus-key"),
};

const HEAD: &str = "\
# Start: docker compose -f FILE up --abort-on-container-failure. Stop: Ctrl-C.
# If an agent fails, the others are ended.
";
