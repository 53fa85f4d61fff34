//! Decides whether a request may see the run. On a loopback address it may if it was addressed to
//! this machine: a page of another site that has its name point here is refused. On any other
//! address it needs the token.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, header};
use subtle::ConstantTimeEq;

/// Who may see the run at an address.
#[derive(Debug)]
pub struct Access {
    bound: SocketAddr,
    /// The token; `None` on a loopback address.
    token: Option<String>,
}

/// Answer to a request that may see the run.
#[derive(Debug, Default, PartialEq)]
pub struct Granted {
    /// The cookie that later requests of the browser bring.
    pub cookie: Option<HeaderValue>,
}

/// Reason, in one sentence, for which a request may not see the run.
pub type Denied = &'static str;

impl Access {
    /// Access at the address `bound`, which uses `token` only if it is not a loopback address.
    pub fn new(bound: SocketAddr, token: &str) -> Access {
        Access { bound, token: (!bound.ip().is_loopback()).then(|| token.to_owned()) }
    }

    /// The URL of a path, with the token if one is needed. An address for all interfaces is shown
    /// as it was bound.
    pub fn url(&self, path: &str) -> String {
        let token = self.token.as_ref().map_or_else(String::new, |own| format!("?token={own}"));
        format!("http://{}{path}{token}", self.bound)
    }

    /// Decides on a request by its headers and its query.
    pub fn judge(&self, headers: &HeaderMap, query: Option<&str>) -> Result<Granted, Denied> {
        match &self.token {
            Some(token) => self.judge_token(token, headers, query),
            None if self.is_addressed_here(headers) => Ok(Granted::default()),
            None => Err("This server answers only requests to localhost."),
        }
    }

    fn judge_token(
        &self,
        token: &str,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<Granted, Denied> {
        let is_right = |given: &str| bool::from(given.as_bytes().ct_eq(token.as_bytes()));
        let cookie = self.cookie_name();
        if cookies(headers).any(|(name, value)| name == cookie && is_right(value)) {
            return Ok(Granted::default());
        }
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let bearer = text(header::AUTHORIZATION).and_then(|own| own.strip_prefix("Bearer "));
        let mut parts = query.unwrap_or_default().split('&');
        let asked = parts.find_map(|part| part.strip_prefix("token="));
        match (bearer, asked) {
            (Some(given), _) if is_right(given.trim()) => Ok(Granted::default()),
            (_, Some(given)) if is_right(given) => {
                let kept = format!("{cookie}={token}; Path=/; HttpOnly; SameSite=Strict");
                Ok(Granted { cookie: HeaderValue::from_str(&kept).ok() })
            }
            (None, None) => {
                Err("This page needs the token: open the URL that weigh watch printed.")
            }
            _ => Err("The token is wrong: open the URL that weigh watch printed."),
        }
    }

    /// Cookies do not know ports: two runs that are watched on one host have one each.
    fn cookie_name(&self) -> String {
        format!("weigh_watch_{}", self.bound.port())
    }

    fn is_addressed_here(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let Some(name) = host.map(without_port) else { return false };
        match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || address == self.bound.ip(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

/// A token of 128 random bits, as 32 hexadecimal digits.
///
/// # Errors
/// If the kernel gives no random numbers.
pub fn new_token() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lists = headers.get_all(header::COOKIE).into_iter().filter_map(|own| own.to_str().ok());
    lists.flat_map(|list| list.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// The name of a Host header: `[::1]:80` gives `::1`.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn headers(pairs: &[(header::HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, text)| (name.clone(), HeaderValue::from_static(text))).collect()
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_are_answered() {
        let access = Access::new("127.0.0.1:80".parse().unwrap(), TOKEN);
        let of = |host| access.judge(&headers(&[(header::HOST, host)]), None).is_ok();
        for right in ["localhost", "LOCALHOST:8080", "127.0.0.1:80", "127.8.9.1", "[::1]:80"] {
            assert!(of(right), "{right}");
        }
        for wrong in ["evil.example", "localhost.evil.example:80", "10.0.0.1", "", "127.0.0.1.nip"]
        {
            assert!(!of(wrong), "{wrong}");
        }
        assert!(access.judge(&HeaderMap::new(), None).is_err());
        assert_eq!(access.url("/"), "http://127.0.0.1:80/", "no token is needed");
    }

    #[test]
    fn elsewhere_the_token_is_needed_in_one_of_three_places() {
        let access = Access::new("10.0.0.7:81".parse().unwrap(), TOKEN);
        assert_eq!(access.url("/"), format!("http://10.0.0.7:81/?token={TOKEN}"));
        let none = HeaderMap::new();
        let query = format!("from=3&token={TOKEN}");
        let first = access.judge(&none, Some(&query)).unwrap().cookie.unwrap();
        let first = first.to_str().unwrap().to_owned();
        assert_eq!(first, format!("weigh_watch_81={TOKEN}; Path=/; HttpOnly; SameSite=Strict"));
        let cookie = "other=1; weigh_watch_81=0123456789abcdef0123456789abcdef";
        assert!(access.judge(&headers(&[(header::COOKIE, cookie)]), None).is_ok());
        let bearer = "Bearer 0123456789abcdef0123456789abcdef";
        assert!(access.judge(&headers(&[(header::AUTHORIZATION, bearer)]), None).is_ok());
        let port = "weigh_watch_80=0123456789abcdef0123456789abcdef";
        for wrong in [
            access.judge(&none, None),
            access.judge(&none, Some("token=")),
            access.judge(&none, Some("token=0123")),
            access.judge(&headers(&[(header::COOKIE, port)]), None),
            access.judge(&headers(&[(header::AUTHORIZATION, "Bearer no")]), Some("token=no")),
        ] {
            assert!(wrong.is_err());
        }
    }

    #[test]
    fn tokens_differ_and_have_32_digits() {
        let (one, other) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.chars().all(|digit| digit.is_ascii_hexdigit()), "{one}");
    }
}
