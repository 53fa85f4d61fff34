//! Connects to NATS and says in one sentence why that fails.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, ServerAddr};

use super::options::BusOptions;
use crate::error::FleetError;

/// A connection that was made.
pub struct Connected {
    /// The client.
    pub client: Client,
    /// JetStream on it.
    pub jetstream: Context,
    /// True if only its two ends can read what is sent.
    pub is_private: bool,
}

/// Connects and checks that JetStream is there.
pub async fn connect(options: &BusOptions) -> Result<Connected, FleetError> {
    let server = options.server()?;
    let place = format!("{}:{}", server.host(), server.port());
    let is_local = is_loopback(server.host());
    let made = async || {
        Ok::<_, FleetError>(
            connect_options(options, &server, is_local)?.connect(server.clone()).await,
        )
    };
    let client = match made().await? {
        // A busy host or a lost packet: once more, before a user is asked to look.
        Err(error) if error.kind() == ConnectErrorKind::TimedOut => made().await?,
        first => first,
    };
    let client = client.map_err(|error| FleetError::Bus(refusal(&place, &error)))?;
    let has_tls = insists_on_tls(options, &server) || client.server_info().tls_required;
    let is_private = is_local || has_tls;
    let mut jetstream = jetstream::new(client.clone());
    jetstream.set_timeout(PATIENCE);
    check_jetstream(&client, &place).await?;
    Ok(Connected { client, jetstream, is_private })
}

fn connect_options(
    options: &BusOptions,
    server: &ServerAddr,
    is_local: bool,
) -> Result<ConnectOptions, FleetError> {
    let mut connect = ConnectOptions::new()
        .name("weigh")
        .connection_timeout(PATIENCE)
        .request_timeout(Some(PATIENCE))
        .ping_interval(PING_INTERVAL)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| if attempts < 2 { Duration::ZERO } else { RETRY });
    if let Some(file) = &options.nkey_seed {
        let text = read(file, "nkey seed")?;
        let seed = text.lines().next().unwrap_or_default().trim();
        if !is_seed(seed) {
            let why = "its first line is not 58 letters and digits that begin with SU";
            return Err(wrong_file(file, "the seed of a user's nkey", why));
        }
        connect = connect.nkey(seed.to_owned());
    }
    if let Some(file) = &options.creds {
        let wrong = |error: std::io::Error| {
            wrong_file(file, "a credentials file of NATS", &error.to_string())
        };
        connect = connect.credentials(&read(file, "credentials")?).map_err(wrong)?;
    }
    if let Some(token) = &options.token {
        connect = connect.token(token.clone());
    }
    if let Some(file) = &options.ca {
        read_pem(file, "certificate authority", "CERTIFICATE")?;
        connect = connect.add_root_certificates(file.clone());
    }
    if let Some((certificate, key)) = &options.client_cert {
        read_pem(certificate, "client certificate", "CERTIFICATE")?;
        read_pem(key, "client key", "PRIVATE KEY")?;
        connect = connect.add_client_certificate(certificate.clone(), key.clone());
    }
    if let Some(user) = server.username() {
        let plain = |text: &str| decoded(text).ok_or_else(|| BusOptions::wrong_url(&options.url));
        connect = match server.password() {
            Some(password) => connect.user_and_password(plain(user)?, plain(password)?),
            None => connect.token(plain(user)?),
        };
    }
    if insists_on_tls(options, server) {
        connect = connect.require_tls(true);
    } else if is_local {
        // Another server of a cluster would not be on a loopback address.
        connect = connect.ignore_discovered_servers();
    }
    Ok(connect)
}

/// True if the user expects TLS: one who names certificates does.
fn insists_on_tls(options: &BusOptions, server: &ServerAddr) -> bool {
    server.tls_required() || options.ca.is_some() || options.client_cert.is_some()
}

/// A part of a URL without percent signs (RFC 3986, section 2.1); `None` if it is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let coded = after.split_at_checked(2).filter(|_| *first == b'%');
        let coded = coded.and_then(|(digits, next)| {
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, next))
        });
        let (byte, next) = coded.unwrap_or((*first, after));
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8(bytes).ok()
}

fn read(file: &Path, what: &str) -> Result<String, FleetError> {
    fs::read_to_string(file).map_err(|error| {
        let file = file.display();
        FleetError::Options(format!(
            "cannot read the {what} of the bus from {file}: {error}; help: name a file that this \
             user may read"
        ))
    })
}

/// Checks that a file has an object with this label (RFC 7468).
fn read_pem(file: &Path, what: &str, label: &str) -> Result<(), FleetError> {
    match read(file, what)?.contains(&format!("{label}-----")) {
        true => Ok(()),
        false => Err(wrong_file(file, &format!("a {what} in PEM"), &format!("it has no {label}"))),
    }
}

fn wrong_file(file: &Path, what: &str, why: &str) -> FleetError {
    let file = file.display();
    FleetError::Options(format!("{file} is not {what}: {why}; help: name one, or leave it out"))
}

/// True for the seed of a user as NATS writes it: 58 characters of RFC 4648, section 6.
fn is_seed(text: &str) -> bool {
    let is_coded = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
    text.len() == 58 && text.starts_with("SU") && text.bytes().all(is_coded)
}

fn refusal(place: &str, error: &ConnectError) -> String {
    let text = error.to_string();
    // What TLS has to say comes as an error of the socket.
    let is_of_tls = error.kind() == ConnectErrorKind::Tls || text.contains("peer certificate");
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => format!(
            "the bus at {place} refuses the credentials; help: give the nkey seed, the credentials \
             file or the token that its configuration names"
        ),
        _ if text.contains("fatal alert") => format!(
            "the bus at {place} refuses the connection by TLS ({text}); help: give the certificate \
             and the key of a client that its authority signed (--bus-cert and --bus-key of \
             agents, --fleet-cert and --fleet-key of a run)"
        ),
        _ if text.contains("certificate or key") => format!(
            "the client certificate for the bus at {place} and its key do not belong together; \
             help: name the key with which the certificate was asked for"
        ),
        _ if text.contains("corrupt message") => format!(
            "the bus at {place} has no TLS; help: give it a certificate (tls in the configuration \
             of nats-server), or type nats:// and leave the certificates out"
        ),
        _ if is_of_tls => format!(
            "the bus at {place} cannot be trusted ({text}); help: name the authority that signed \
             its certificate (--bus-ca of agents, --fleet-ca of a run)"
        ),
        _ => format!(
            "the bus at {place} cannot be reached ({text}); help: start it there with nats-server \
             -js, or correct its URL"
        ),
    }
}

/// Asks for the account itself: the client's own call expects the answer of newer servers.
async fn check_jetstream(client: &Client, place: &str) -> Result<(), FleetError> {
    let missing = |reason: &str| {
        FleetError::Bus(format!(
            "the bus at {place} has no JetStream ({reason}); help: start nats-server with -js, or \
             enable JetStream for the account"
        ))
    };
    match client.request("$JS.API.INFO", bytes::Bytes::new()).await {
        Err(error) if error.kind() == RequestErrorKind::NoResponders => {
            Err(missing("it is not enabled"))
        }
        Err(error) => Err(FleetError::Bus(format!("the bus at {place} does not answer ({error})"))),
        Ok(answer) => {
            let answer: AccountInfo = serde_json::from_slice(&answer.payload).unwrap_or_default();
            answer.error.map_or(Ok(()), |error| Err(missing(&error.description)))
        }
    }
}

/// What is read of the answer to a question for the account.
#[derive(Default, serde::Deserialize)]
struct AccountInfo {
    error: Option<AccountError>,
}

#[derive(serde::Deserialize)]
struct AccountError {
    #[serde(default)]
    description: String,
}

fn is_loopback(host: &str) -> bool {
    let plain = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || plain.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

const PATIENCE: Duration = Duration::from_secs(5);
/// Two pings without an answer end a connection: it is noticed as cut after 6 s.
const PING_INTERVAL: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_urls_are_decoded() {
        for (coded, plain) in [("ann", "ann"), ("a%40b%2F", "a@b/"), ("%c3%a4", "ä"), ("5%", "5%")]
        {
            assert_eq!(decoded(coded).as_deref(), Some(plain));
        }
        assert_eq!(decoded("%ff"), None);
    }

    #[test]
    fn seeds_of_users_are_known_by_their_form() {
        let seed = format!("SU{}", "A7".repeat(28));
        assert!(is_seed(&seed));
        let operator = seed.replacen("SU", "SO", 1);
        for wrong in ["", "SU", &seed[1..], &format!("{seed}A"), &operator, &seed.to_lowercase()] {
            assert!(!is_seed(wrong), "{wrong}");
        }
        assert!(!is_seed(&seed.replace('7', "1")), "1 is not a character of the code");
    }

    #[test]
    fn only_loopback_addresses_are_private_without_tls() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "10.0.0.1", "0.0.0.0", "[fe80::1]", "bus"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
