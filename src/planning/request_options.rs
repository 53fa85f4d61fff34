//! Flags for the form of requests and messages: header fields, method, confirming statuses, topic.

use std::path::Path;

use clap::Args;
use weigh_model::Protocol;
use weigh_protocols::grpc::method::PROTO;
use weigh_protocols::{PROTOCOLS, fields};

use crate::planning::call_options::CallOptions;
use crate::planning::options::with_flag;
use weigh_runner::case::lanes::Lane;
use weigh_runner::exit::Stop;
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};

/// Flags about requests and messages.
#[derive(Args, Clone, Debug)]
pub struct RequestOptions {
    /// Header field of every request, "NAME: VALUE", or @FILE with one per line
    ///
    /// For http1, http2 and http3; metadata for grpc. Authorization, Cookie and all fields from
    /// @FILE are never recorded.
    #[arg(short = 'H', long = "header", visible_alias = "metadata", value_name = "FIELD|@FILE")]
    headers: Vec<String>,
    /// Header field that is never printed or recorded
    #[arg(long = "secret-header", value_name = "FIELD|@FILE")]
    secret_headers: Vec<String>,
    /// Method: POST, GET, HEAD, PUT, PATCH or DELETE; for gRPC package.Service/Method
    ///
    /// [default: POST; GET for a URL if neither --body nor -s is given; for gRPC
    /// weigh.store.v1.Store/Append]
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// HTTP statuses that confirm a message, such as 200,204,3xx [default: 2xx]
    #[arg(long, value_name = "STATUSES")]
    status: Option<String>,
    /// Topic of MQTT messages, such as farm/{client}/{seq} [default: weigh/TRIAL/{client}]
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    #[command(flatten)]
    calls: CallOptions,
}

impl RequestOptions {
    /// Returns options with these header fields, each "NAME: VALUE".
    pub fn of_headers(headers: Vec<String>) -> RequestOptions {
        RequestOptions {
            headers,
            secret_headers: Vec::new(),
            method: None,
            status: None,
            topic: None,
            calls: CallOptions::default(),
        }
    }

    /// Applies these flags to the lanes.
    ///
    /// # Errors
    /// If a file cannot be read, or if a flag applies to none of these lanes.
    pub fn apply(&self, lanes: Vec<Lane>) -> Result<Vec<Lane>, Stop> {
        let (shown, secret) = self.fields()?;
        let mut changes: Vec<(&str, &str, String)> = Vec::new();
        let join = |list: &[String]| {
            list.iter().fold(String::new(), |all, field| fields::joined(&all, field))
        };
        if !shown.is_empty() {
            changes.push(("-H", fields::HEADERS.key, join(&shown)));
        }
        if !secret.is_empty() {
            changes.push(("-H", fields::SECRET_HEADERS.key, join(&secret)));
        }
        for (flag, key, value) in [
            ("--method", "method", &self.method),
            ("--status", "status", &self.status),
            ("--topic", "topic", &self.topic),
        ] {
            changes.extend(value.as_ref().map(|value| (flag, key, value.clone())));
        }
        changes.extend(self.calls.changes());
        let is_unheard = |(_, key, value): &&(&str, &str, String)| {
            !lanes.iter().any(|own| takes(own.protocol, key, value))
        };
        if let Some((flag, key, value)) = changes.iter().find(is_unheard) {
            let is_name = value.chars().any(char::is_lowercase);
            let has_grpc = lanes.iter().any(|own| own.protocol.name() == "grpc");
            if *key == "method" && is_name && has_grpc {
                return Err(Stop::usage(format!(
                    "{flag}: {value:?} is not a gRPC method\nhelp: type package.Service/{value}"
                )));
            }
            return Err(Stop::usage(unheard(flag, &takers(key, value))));
        }
        lanes.into_iter().map(|lane| changed(lane, &changes)).collect()
    }

    /// Returns the public header fields, and the secret ones.
    fn fields(&self) -> Result<(Vec<String>, Vec<String>), Stop> {
        let (mut shown, mut secret) = (Vec::new(), Vec::new());
        for word in &self.headers {
            match word.strip_prefix('@') {
                Some(file) => secret.extend(lines("-H", file)?),
                None if fields::is_secret(word) => secret.push(word.clone()),
                None => shown.push(word.clone()),
            }
        }
        for word in &self.secret_headers {
            match word.strip_prefix('@') {
                Some(file) => secret.extend(lines("--secret-header", file)?),
                None => secret.push(word.clone()),
            }
        }
        Ok((shown, secret))
    }
}

/// True if the value of a key is for this protocol: methods of services have a slash or a dot,
/// those of HTTP do not.
fn takes(protocol: &'static dyn Protocol, key: &str, value: &str) -> bool {
    let is_of_service = value.contains(['/', '.']);
    let has_services = protocol.has_setting(PROTO.key);
    protocol.has_setting(key) && (key != "method" || has_services == is_of_service)
}

/// Returns the names of the protocols that take a value of a key.
fn takers(key: &str, value: &str) -> Vec<&'static str> {
    let protocols = PROTOCOLS.iter().filter(|protocol| takes(**protocol, key, value));
    protocols.map(|protocol| protocol.name()).collect()
}

/// The error of an option that no protocol of the command takes.
fn unheard(flag: &str, takers: &[&str]) -> String {
    match takers {
        [only] => format!(
            "{flag}: belongs to {only}, which is not among the protocols to measure\nhelp: leave \
             it out, or name {only}"
        ),
        [others @ .., last] => format!(
            "{flag}: belongs to {} and {last}, of which this command measures none\nhelp: leave \
             it out, or name one of them",
            others.join(", ")
        ),
        [] => format!("{flag}: belongs to no protocol\nhelp: leave it out"),
    }
}

fn changed(lane: Lane, changes: &[(&str, &str, String)]) -> Result<Lane, Stop> {
    let mut given = lane.given.clone();
    let own = |change: &&(&str, &str, String)| takes(lane.protocol, change.1, &change.2);
    for (_, key, value) in changes.iter().filter(own) {
        let own = given.entry((*key).to_owned()).or_default();
        *own = match *key == fields::HEADERS.key || *key == fields::SECRET_HEADERS.key {
            // Each of these values is a whole list already.
            true if own.is_empty() => value.clone(),
            true => format!("{own}|{value}"),
            false => value.clone(),
        };
    }
    Lane::new(lane.protocol, lane.against, given).map_err(|invalid| Stop::from(with_flag(invalid)))
}

/// Returns the lines of a file, without empty ones.
fn lines(flag: &str, file: &str) -> Result<Vec<String>, Stop> {
    let text = input_file::text(Path::new(file), TEXT_BYTES_MAX).map_err(|error| {
        let fix = "name a file with one header field in each line";
        Stop::usage(format!("{flag} @{file}: cannot be read: {error}\nhelp: {fix}"))
    })?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
