//! TLS of a lane: certificates, trust, and costs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weigh_engine::layer::tls::{
    Certificates, ClientChoice, Figures, Identity, MadeFor, ServerChoice, Tally, TlsError,
    Versions, secure_dial, secure_host, upgrade_dial, upgrade_host,
};
use weigh_model::endpoint::Endpoint;
use weigh_model::event::TrialFinished;
use weigh_model::protocol::{Dial, Host, Invalid, Transport};
use weigh_model::trial::Settings;
use weigh_model::{Warning, quic as quic_keys, tls, websocket};
use weigh_testbed::managed::TlsFiles;

use crate::case::lanes::{Against, Lane};
use crate::exit::{Exit, Stop};
use crate::targets::handshakes::Handshakes;
use crate::targets::{dtls, quic};

/// The error of a program without QUIC.
pub(super) const NO_QUIC: &str =
    "this program was built without QUIC\nhelp: build it with --features quic";

/// Counts of the TLS of a trial; `None` without TLS.
pub type Counted = Option<(Arc<Tally>, bool)>;

/// The certificates of a run, made when a server first needs them. Their keys are never in the
/// folder: with them, the recipient of a run could impersonate its servers.
pub struct CertificateFiles {
    folder: PathBuf,
    made: OnceLock<(Certificates, PathBuf)>,
}

impl CertificateFiles {
    /// Certificates for this folder.
    pub fn new(folder: PathBuf) -> CertificateFiles {
        CertificateFiles { folder, made: OnceLock::new() }
    }

    /// Arguments of the reference server of this lane, besides its settings.
    ///
    /// # Errors
    /// Certificates that cannot be made or written.
    pub fn serve_arguments(&self, lane: &Lane) -> Result<Vec<OsString>, Stop> {
        let has_own = !lane.settings.text("tls_cert").is_empty() || tls::has_psk(&lane.settings);
        if !tls::is_on(&lane.settings) || has_own {
            return Ok(Vec::new());
        }
        let (made, key) = self.made()?;
        let certificate = made.of(MadeFor::Server).0;
        let files = [("tls_ca", made.authority()), ("tls_cert", certificate)];
        let files = files.into_iter().chain([("tls_key", key.clone())]);
        let name = lane.protocol.name();
        let set = |(key, path): (&str, PathBuf)| {
            let mut word = OsString::from(format!("{name}.{key}="));
            word.push(path);
            ["--set".into(), word]
        };
        Ok(files.flat_map(set).collect())
    }

    /// The certificate authority of the run's servers, if one was needed.
    pub fn authority(&self) -> Option<PathBuf> {
        Some(self.known()?.authority())
    }

    /// Certificate files for a managed server of this lane.
    ///
    /// # Errors
    /// Certificates that cannot be made or written.
    pub fn files(&self, lane: &Lane) -> Result<Option<TlsFiles<'_>>, Stop> {
        if !tls::is_on(&lane.settings) {
            return Ok(None);
        }
        let (_, key) = self.made()?;
        let mutual = lane.settings.flag("tls_mutual");
        Ok(Some(TlsFiles { folder: &self.folder, key, mutual }))
    }

    fn made(&self) -> Result<&(Certificates, PathBuf), Stop> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let record = |error: &dyn std::fmt::Display| Stop::new(Exit::Record, error);
        let folder = std::path::absolute(&self.folder).map_err(|error| record(&error))?;
        let made =
            Certificates::make_with_keys_in_memory(&folder).map_err(|error| record(&error))?;
        let key = made.of(MadeFor::Server).1;
        Ok(self.made.get_or_init(|| (made, key)))
    }

    /// The certificates made so far, if any.
    fn known(&self) -> Option<&Certificates> {
        self.made.get().map(|(made, _)| made)
    }
}

/// Checks a lane's TLS without starting anything.
///
/// # Errors
/// The setting that contradicts the others.
pub fn check(lane: &Lane, endpoint: &Endpoint) -> Result<(), Invalid> {
    let settings = &lane.settings;
    let given = |key: &str| !settings.text(key).is_empty();
    let place = |key: &str| format!("{}.{key}", lane.protocol.name());
    if !tls::is_on(settings) {
        let mut keys = tls::FILES.into_iter().chain([tls::PSK_IDENTITY, tls::PSK]);
        return match keys.find(|key| given(key)) {
            Some(key) => {
                Err(Invalid::new(place(key), "there is no TLS", "leave it out, or type --tls on"))
            }
            None => Ok(()),
        };
    }
    let is_datagram = dtls::is_over_datagrams(lane.protocol);
    if is_datagram && !dtls::IS_BUILT {
        return Err(dtls::refused(place("tls")));
    }
    if quic_keys::is_on(lane.protocol, settings) && !quic::IS_BUILT {
        let (problem, fix) = NO_QUIC.split_once("\nhelp: ").unwrap_or((NO_QUIC, ""));
        return Err(Invalid::new(lane.protocol.name(), problem, fix));
    }
    if tls::has_psk(settings) {
        return dtls::check_psk(lane.protocol.name(), settings);
    }
    check_files(lane)?;
    let has_made_files = !lane.is_foreign() && !given("tls_cert");
    if has_made_files {
        return Ok(());
    }
    let wrong = |error: TlsError| {
        let said = error.to_string();
        // The file that is wrong, with the key that names it.
        let named = |key: &&str| given(key) && said.starts_with(settings.text(key));
        let key = tls::FILES.into_iter().find(|key| named(key)).unwrap_or("tls");
        let (problem, fix) = said.split_once("; ").unwrap_or((&said, "check these settings"));
        Invalid::new(place(key), problem, fix.replacen("give ", "type ", 1))
    };
    let choice = client(settings, endpoint, lane.is_foreign(), None);
    let checked = if is_datagram { dtls::check(choice) } else { choice.check() };
    checked.map_err(wrong)
}

/// Checks what is secret in a lane's TLS: plans do not have it, so [`check`] does not see it.
///
/// # Errors
/// The setting that contradicts the others.
pub fn check_secrets(lane: &Lane) -> Result<(), Invalid> {
    let (settings, name) = (&lane.settings, lane.protocol.name());
    if !tls::has_psk(settings) {
        return Ok(());
    }
    if !tls::is_on(settings) {
        let fix = "leave it out, or type --tls on";
        return Err(Invalid::new(format!("{name}.{}", tls::PSK), "there is no TLS", fix));
    }
    dtls::check_key(name, settings)
}

/// Checks which files of certificates a lane has, without reading them.
fn check_files(lane: &Lane) -> Result<(), Invalid> {
    let settings = &lane.settings;
    let given = |key: &str| !settings.text(key).is_empty();
    let place = |key: &str| format!("{}.{key}", lane.protocol.name());
    if given("tls_cert") != given("tls_key") {
        let key = if given("tls_cert") { "tls_key" } else { "tls_cert" };
        return Err(Invalid::new(
            place(key),
            "certificate and key belong together",
            "type --cert FILE --key FILE",
        ));
    }
    let is_reference = matches!(lane.against, Against::Reference);
    if is_reference && given("tls_cert") && !given("tls_ca") {
        return Err(Invalid::new(
            place("tls_ca"),
            "no CA is given for the certificate of the reference server",
            "add --cacert FILE",
        ));
    }
    if !lane.is_foreign() && given("tls_ca") && !given("tls_cert") {
        return Err(Invalid::new(
            place("tls_ca"),
            "applies to servers given by URL",
            match is_reference {
                true => "for the built-in server give all three: --cacert, --cert, --key",
                false => "leave it out, or start the server yourself and type its URL",
            },
        ));
    }
    if matches!(lane.against, Against::Managed(_)) && given("tls_cert") {
        return Err(Invalid::new(
            place("tls_cert"),
            "a managed server uses certificates that are made for the run",
            "leave --cert and --key out, or start it yourself and type its URL",
        ));
    }
    if lane.is_foreign() && settings.flag("tls_mutual") {
        return Err(Invalid::new(
            place("tls_mutual"),
            "an external server decides itself whether it asks for client certificates",
            "leave it out, and type --cert FILE --key FILE",
        ));
    }
    Ok(())
}

/// Adds TLS to a client, if the lane asks for it.
///
/// # Errors
/// Certificates that cannot be read or made, and a key log that cannot be written.
pub fn dial(
    lane: &Lane,
    dial: Dial,
    endpoint: &Endpoint,
    vault: &CertificateFiles,
) -> Result<(Dial, Counted), Stop> {
    if !tls::is_on(&lane.settings) {
        return Ok((dial, None));
    }
    let made = if lane.is_foreign() { None } else { vault.known() };
    let choice = client(&lane.settings, endpoint, lane.is_foreign(), made);
    check_key_log()?;
    let tally = Arc::default();
    let dial = match dial.transport {
        transport if is_in_quic(transport, &lane.settings) => {
            quic::dial(dial, &lane.settings, &choice, &tally)?
        }
        Transport::Datagram => dtls::dial(dial, &lane.settings, choice.clone(), &tally)?,
        _ if lane.protocol.properties().upgrades_to_tls => {
            upgrade_dial(dial, &choice, &tally).map_err(Stop::usage)?
        }
        _ => secure_dial(dial, &choice, &tally).map_err(Stop::usage)?,
    };
    let is_checked = choice.verifies || tls::has_psk(&lane.settings);
    Ok((dial, Some((tally, is_checked))))
}

/// Clients of a server that Weighbridge started with certificates of the run.
pub fn dial_to_made(dial: Dial, settings: &Settings, vault: &CertificateFiles) -> Option<Dial> {
    let endpoint = Endpoint::parse("made://localhost").ok()?;
    let choice = client(settings, &endpoint, false, Some(vault.known()?));
    match dial.transport {
        transport if is_in_quic(transport, settings) => {
            quic::dial(dial, settings, &choice, &Arc::default()).ok()
        }
        Transport::Datagram => dtls::dial(dial, settings, choice, &Arc::default()).ok(),
        _ => secure_dial(dial, &choice, &Arc::default()).ok(),
    }
}

/// Adds TLS to the reference server, if these settings ask for it. Certificates that were not given
/// are read from `folder`, or made there. `upgrades` is that of the protocol
/// ([`weigh_model::protocol::Properties::upgrades_to_tls`]).
///
/// # Errors
/// Missing or invalid certificates.
pub fn host(
    host: Host,
    upgrades: bool,
    settings: &Settings,
    folder: Option<&Path>,
) -> Result<Host, Stop> {
    if !tls::is_on(settings) {
        return Ok(host);
    }
    if tls::has_psk(settings) {
        return dtls::host_with_psk(host, settings);
    }
    let made = match folder {
        Some(folder) if !Certificates::at(folder).authority().exists() => {
            Some(Certificates::make(folder).map_err(Stop::usage)?)
        }
        Some(folder) => Some(Certificates::at(folder)),
        None => None,
    };
    let identity = given_identity(settings)
        .or_else(|| made.as_ref().map(|made| identity(made, MadeFor::Server)))
        .ok_or_else(|| {
            Stop::usage(
                "tls: the server has no certificate: type --certificates DIR to have them made \
                 there, or set tls_cert and tls_key",
            )
        })?;
    let authority = given_path(settings, "tls_ca").or(made.map(|made| made.authority()));
    let is_mutual = settings.flag("tls_mutual");
    let clients = match authority {
        Some(path) => is_mutual.then_some(path),
        None if is_mutual => {
            return Err(Stop::usage("tls_mutual: set tls_ca to the CA of the client certificates"));
        }
        None => None,
    };
    let choice = ServerChoice {
        versions: versions(settings),
        identity,
        clients,
        alpn: alpn(settings),
        resumes: settings.flag("tls_resume"),
    };
    let secured = match host.transport {
        transport if is_in_quic(transport, settings) => return quic::host(host, settings, &choice),
        Transport::Datagram => return dtls::host(host, choice),
        _ if upgrades => upgrade_host(host, &choice, &Arc::default()),
        _ => secure_host(host, &choice, &Arc::default()),
    };
    secured.map_err(Stop::usage)
}

/// True if a protocol with this carrier is inside QUIC under these settings.
fn is_in_quic(transport: Transport, settings: &Settings) -> bool {
    transport == Transport::Streams || settings.flag(quic_keys::ON.key)
}

/// The handshakes that TLS counted. Of QUIC none: its packets of the handshake continue behind the
/// end of the handshake, so that captures have others.
pub fn handshakes(counted: &Counted) -> Option<Handshakes> {
    let figures = counted.as_ref()?.0.figures();
    if figures.negotiated.as_ref().is_some_and(|words| words.starts_with("QUIC")) {
        return None;
    }
    let bytes = (figures.handshake_sent_bytes, figures.handshake_received_bytes);
    Some(Handshakes { bytes, count: figures.full + figures.resumed })
}

/// Adds the costs of TLS to the record of a trial.
pub fn tell(counted: &Counted, finished: &mut TrialFinished) {
    let Some((tally, verifies)) = counted else { return };
    let figures = tally.figures();
    finished.metrics.extend(metrics(&figures));
    let negotiated = figures.negotiated.map(|words| ("tls".to_owned(), words));
    finished.scene.extend(negotiated);
    if !verifies {
        let warning = Warning::CertificatesUnchecked(figures.unchecked);
        finished.warnings.push(warning.record());
    }
}

/// Checks early that the key log can be written; rustls would ignore the error.
fn check_key_log() -> Result<(), Stop> {
    let Some(path) = std::env::var_os("SSLKEYLOGFILE") else { return Ok(()) };
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    opened.map(|_| ()).map_err(|error| {
        let path = path.display();
        Stop::usage(format!(
            "SSLKEYLOGFILE={path}: cannot be written: {error}; name another file, or unset it"
        ))
    })
}

fn metrics(figures: &Figures) -> BTreeMap<String, f64> {
    let mut metrics = BTreeMap::new();
    for (part, value) in &figures.handshake_time_ns {
        metrics.insert(format!("tls_handshake_time_ns.{part}"), *value);
    }
    let count = figures.full + figures.resumed;
    metrics.insert("tls_handshakes_full".to_owned(), figures.full as f64);
    metrics.insert("tls_handshakes_resumed".to_owned(), figures.resumed as f64);
    if count > 0 {
        let each = |bytes: u64| bytes as f64 / count as f64;
        let (sent, received) = (figures.handshake_sent_bytes, figures.handshake_received_bytes);
        metrics.insert("tls_handshake_sent_bytes".to_owned(), each(sent));
        metrics.insert("tls_handshake_received_bytes".to_owned(), each(received));
    }
    if let Some(rate) = figures.handshakes_per_s {
        metrics.insert("tls_handshakes_per_s".to_owned(), rate);
    }
    let added = figures.record_sent_bytes + figures.record_received_bytes;
    metrics.insert("tls_record_bytes".to_owned(), added as f64);
    metrics
}

fn client(
    settings: &Settings,
    endpoint: &Endpoint,
    is_foreign: bool,
    made: Option<&Certificates>,
) -> ClientChoice {
    let own_name = settings.text("tls_name");
    let name = match (own_name, is_foreign) {
        // Built-in servers are reached by address, and SNI has only names.
        ("", false) => "localhost",
        ("", true) => &endpoint.host,
        (name, _) => name,
    };
    let made_identity = made.map(|made| identity(made, MadeFor::Client));
    ClientChoice {
        versions: versions(settings),
        authority: given_path(settings, "tls_ca").or(made.map(Certificates::authority)),
        identity: given_identity(settings)
            .or(made_identity.filter(|_| settings.flag("tls_mutual"))),
        name: name.to_owned(),
        alpn: alpn(settings),
        resumes: settings.flag("tls_resume"),
        verifies: settings.flag("tls_verify"),
    }
}

fn identity(made: &Certificates, whom: MadeFor) -> Identity {
    let (certificate, key) = made.of(whom);
    Identity { certificate, key }
}

fn given_identity(settings: &Settings) -> Option<Identity> {
    let certificate = given_path(settings, "tls_cert")?;
    Some(Identity { certificate, key: given_path(settings, "tls_key")? })
}

fn given_path(settings: &Settings, key: &str) -> Option<PathBuf> {
    Some(settings.text(key)).filter(|text| !text.is_empty()).map(PathBuf::from)
}

fn versions(settings: &Settings) -> Versions {
    match settings.text("tls") {
        "1.2" => Versions::Tls12,
        "1.3" => Versions::Tls13,
        _ => Versions::Both,
    }
}

/// With WebSocket, TLS carries HTTP/1.1 (RFC 6455, section 1.7; the registry of ALPN, RFC 7301).
fn alpn(settings: &Settings) -> Vec<Vec<u8>> {
    if websocket::is_on(settings) {
        return vec![b"http/1.1".to_vec()];
    }
    let names = settings.text("tls_alpn").split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect()
}
