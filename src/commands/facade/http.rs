//! What tools for HTTP have in common: how they take a URL.

use super::tool::{Asked, Given};

/// Asks for the URL that was given, over whatever TLS, as these tools accept every certificate.
pub fn ask(given: &Given, asked: &mut Asked, method: &str) {
    asked.sets.push(format!("http1.method={method}"));
    let url = http_url(given.text("URL"));
    asked.sets.extend(path_of(&url));
    if url.starts_with("https://") {
        asked.sets.push(ANY_CERTIFICATE.to_owned());
    }
    asked.word = url;
}

/// Has the server's certificate checked, unless it `is_any`, for a tool that checks it too.
pub fn check_certificate(asked: &mut Asked, is_any: bool) {
    asked.sets.retain(|set| is_any || set != ANY_CERTIFICATE);
}

/// A URL with its scheme, which some of these tools add themselves. A word without a dot, a colon
/// and a slash is one of ours: `reference`. A query right behind the host is one of the root
/// (RFC 3986, 6.2.3).
fn http_url(text: &str) -> String {
    let is_word = !text.contains(['.', ':', '/']) && text != "localhost";
    let url = match text {
        "reference" => return "http1".to_owned(),
        _ if is_word => return text.to_owned(),
        _ if text.contains("://") => text.to_owned(),
        _ => format!("http://{text}"),
    };
    let host = url.find("://").map_or(0, |at| at + 3);
    match url[host..].find(['/', '?']).map(|at| host + at) {
        Some(at) if url[at..].starts_with('?') => format!("{}/{}", &url[..at], &url[at..]),
        _ => url,
    }
}

/// What a URL asks for where it names nothing; a server of ours has a place of its own.
fn path_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    (!rest.trim_end_matches('/').contains(['/', '?'])).then(|| "http1.path=/".to_owned())
}

/// The setting that accepts every certificate.
const ANY_CERTIFICATE: &str = "http1.tls_verify=false";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_asks_for_the_root() {
        let root = Some("http1.path=/".to_owned());
        assert_eq!((path_of("http://h:1"), path_of("https://h/")), (root.clone(), root));
        assert_eq!((path_of("http://h/a"), path_of("http1")), (None, None));
        assert_eq!((path_of("http://h/?x=1"), path_of("http://h?x=1")), (None, None));
    }

    #[test]
    fn urls_get_the_scheme_that_was_left_out() {
        for (text, url) in [
            ("localhost:3000", "http://localhost:3000"),
            ("127.0.0.1/a", "http://127.0.0.1/a"),
            ("https://x", "https://x"),
            ("reference", "http1"),
            ("http://h:1?x=1", "http://h:1/?x=1"),
            ("h.de?next=a/b", "http://h.de/?next=a/b"),
            ("http://h/a?x=1", "http://h/a?x=1"),
        ] {
            assert_eq!(http_url(text), url);
        }
    }
}
