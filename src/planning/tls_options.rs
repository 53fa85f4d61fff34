//! Flags that put the measured protocols inside TLS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use weigh_model::{quic, tls};

use crate::planning::options::with_flag;
use weigh_runner::case::lanes::Lane;
use weigh_runner::exit::Stop;

/// Flags about TLS.
#[derive(Args, Clone, Debug)]
pub struct TlsOptions {
    /// Use TLS: off, on, 1.2, 1.3 or both (measure without and with TLS) [default: off]
    ///
    /// on: TLS 1.3, or 1.2 if the server does not have it. URLs such as https:// and mqtts:// use
    /// TLS by default.
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    tls: Option<Choice>,
    /// PEM file of the CA that signed the server certificate
    ///
    /// [default: a CA made for the run; for URLs the system's CAs]
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// PEM certificate. With a URL: the client's. With a built-in server: the server's
    ///
    /// A built-in server also needs --cacert, with the CA of this certificate.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of the private key of --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Accept every certificate; every result carries a warning
    #[arg(long)]
    insecure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Choice {
    Off,
    On,
    #[value(name = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    Tls13,
    Both,
}

impl Choice {
    fn words(self) -> &'static [&'static str] {
        match self {
            Choice::Off => &["off"],
            Choice::On => &["on"],
            Choice::Tls12 => &["1.2"],
            Choice::Tls13 => &["1.3"],
            Choice::Both => &["off", "on"],
        }
    }
}

impl TlsOptions {
    /// Applies these flags to the lanes.
    ///
    /// # Errors
    /// If a flag has no effect because no lane uses TLS, or contradicts a lane.
    pub fn spread(&self, lanes: Vec<Lane>) -> Result<Vec<Lane>, Stop> {
        let Some(choice) = self.tls else { return self.with_files(lanes) };
        let mut all = Vec::new();
        for lane in lanes {
            for word in choice.words() {
                // QUIC has only the one with TLS.
                let is_quic = quic::is_on(lane.protocol, &lane.settings);
                if choice == Choice::Both && *word == "off" && is_quic {
                    continue;
                }
                let mut given = lane.given.clone();
                given.insert("tls".to_owned(), (*word).to_owned());
                all.push(Lane::new(lane.protocol, lane.against.clone(), given)?);
            }
        }
        self.with_files(all)
    }

    fn with_files(&self, lanes: Vec<Lane>) -> Result<Vec<Lane>, Stop> {
        let mut keys: BTreeMap<&str, String> = BTreeMap::new();
        for (key, path) in tls::FILES.iter().zip([&self.cacert, &self.cert, &self.key]) {
            keys.extend(path.as_deref().map(|path| (*key, absolute(path))));
        }
        keys.extend(self.insecure.then(|| ("tls_verify", "false".to_owned())));
        let Some(first) = keys.keys().next().copied() else { return Ok(lanes) };
        if !lanes.iter().any(|lane| tls::is_on(&lane.settings)) {
            let flag = match first {
                "tls_ca" => "--cacert",
                "tls_cert" => "--cert",
                "tls_key" => "--key",
                _ => "--insecure",
            };
            return Err(Stop::usage(format!(
                "{flag}: no target is measured with TLS\nhelp: add --tls on, or leave it out"
            )));
        }
        lanes
            .into_iter()
            .map(|lane| {
                if !tls::is_on(&lane.settings) {
                    return Ok(lane);
                }
                let mut given = lane.given.clone();
                given.extend(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
                Lane::new(lane.protocol, lane.against, given)
                    .map_err(|invalid| Stop::from(with_flag(invalid)))
            })
            .collect()
    }
}

/// Returns the absolute path: servers run in their own folders, where a relative path names another
/// file.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
