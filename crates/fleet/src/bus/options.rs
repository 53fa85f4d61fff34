//! Where the bus is, and how a process is let in.

use std::path::PathBuf;

use async_nats::ServerAddr;

use crate::error::FleetError;

/// Where the bus is, and how to be let in. At most one of the credentials may be given.
#[derive(Clone, Default)]
pub struct BusOptions {
    /// `nats://HOST:PORT`, or `tls://HOST:PORT` to insist on TLS; with `USER:PASSWORD@` or `TOKEN@`
    /// before the host if that lets in.
    pub url: String,
    /// Name of the fleet: letters, digits, `-` and `_`. Fleets with different names share a bus
    /// without seeing each other. Empty for `default`.
    pub name: String,
    /// File with an nkey seed.
    pub nkey_seed: Option<PathBuf>,
    /// File with credentials (`.creds`): a user JWT and its seed.
    pub creds: Option<PathBuf>,
    /// Token.
    pub token: Option<String>,
    /// Certificates in PEM that the server's is to be signed by; `None` for those of the system.
    pub ca: Option<PathBuf>,
    /// Certificate and key in PEM that the client shows.
    pub client_cert: Option<(PathBuf, PathBuf)>,
}

impl BusOptions {
    /// The fleet's name.
    ///
    /// # Errors
    /// [`FleetError::Options`] if it has other characters than letters, digits, `-` and `_`.
    pub(crate) fn fleet(&self) -> Result<&str, FleetError> {
        if self.name.is_empty() {
            return Ok("default");
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if self.name.len() <= NAME_MAX && self.name.bytes().all(is_plain) {
            return Ok(&self.name);
        }
        let text = format!(
            "expected at most {NAME_MAX} letters, digits, '-' and '_' as the fleet's name, found \
             {:?}",
            self.name
        );
        Err(FleetError::Options(text))
    }

    /// The error for something else than a URL of NATS, without its secrets.
    pub(crate) fn wrong_url(url: &str) -> FleetError {
        let url = shown(url);
        FleetError::Options(format!(
            "expected the bus as nats://HOST:PORT or tls://HOST:PORT, found {url:?}"
        ))
    }

    /// The server's address.
    ///
    /// # Errors
    /// [`FleetError::Options`] if it is not a URL of NATS, or several credentials are given.
    pub(crate) fn server(&self) -> Result<ServerAddr, FleetError> {
        let wrong = || BusOptions::wrong_url(&self.url);
        if !["nats://", "tls://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(wrong());
        }
        let server: ServerAddr = self.url.parse().map_err(|_| wrong())?;
        if server.host().is_empty() {
            return Err(wrong());
        }
        let given = [
            self.nkey_seed.is_some(),
            self.creds.is_some(),
            self.token.is_some(),
            server.has_user_pass(),
        ];
        if given.into_iter().filter(|is_given| *is_given).count() > 1 {
            return Err(FleetError::Options(
                "several credentials are given for the bus; help: leave one of the nkey seed, the \
                 credentials file, the token and the user in the URL"
                    .to_owned(),
            ));
        }
        Ok(server)
    }
}

/// A URL without what may be a secret in it.
fn shown(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}…{}", &url[..scheme + 3], &url[at..]),
        _ => url.to_owned(),
    }
}

const NAME_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn options(url: &str) -> BusOptions {
        BusOptions { url: url.to_owned(), ..BusOptions::default() }
    }

    #[test]
    fn urls_name_the_scheme_and_hide_secrets() {
        assert_eq!(options("nats://127.0.0.1:4222").server().unwrap().port(), 4222);
        assert!(options("tls://bus.example").server().unwrap().tls_required());
        for wrong in ["127.0.0.1:4222", "http://bus", "nats://", "ws://bus:80"] {
            let error = options(wrong).server().unwrap_err().to_string();
            assert!(error.contains("expected the bus as nats://"), "{error}");
        }
        let error = options("http://ann:secret@bus").server().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn one_credential_is_enough() {
        let mut both = options("nats://ann:secret@127.0.0.1");
        both.token = Some("t".to_owned());
        assert!(both.server().unwrap_err().to_string().contains("several credentials"));
    }

    #[test]
    fn names_of_fleets_fit_into_subjects() {
        let named = |name: &str| BusOptions { name: name.to_owned(), ..BusOptions::default() };
        assert_eq!(named("").fleet(), Ok("default"));
        assert_eq!(named("lab_2-a").fleet(), Ok("lab_2-a"));
        for wrong in ["a.b", "a b", ">", "*", "ä", &"x".repeat(65)] {
            assert!(named(wrong).fleet().is_err(), "{wrong}");
        }
    }
}
