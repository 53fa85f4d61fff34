//! URLs on the command lines of HTTP tools.

use super::tool::{Asked, Given};

/// Sets the given URL, and accepts every certificate, as these tools do.
pub fn ask(given: &Given, asked: &mut Asked, method: &str) {
    asked.sets.push(format!("http1.method={method}"));
    let url = http_url(given.text("URL"));
    asked.sets.extend(path_of(&url));
    if url.starts_with("https://") {
        asked.sets.push(ANY_CERTIFICATE.to_owned());
    }
    asked.word = url;
}

/// Has the server's certificate checked unless `is_any`, for a tool that checks it too.
pub fn check_certificate(asked: &mut Asked, is_any: bool) {
    asked.sets.retain(|set| is_any || set != ANY_CERTIFICATE);
}

/// Returns a URL with its scheme, which some of these tools add themselves. A word without a dot, a
/// colon and a slash is a word of Weighbridge: `reference`. A query right after the host belongs to
/// the root (RFC 3986, 6.2.3).
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

/// Returns the path of a URL that names none; a reference server has its own default.
fn path_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    (!rest.trim_end_matches('/').contains(['/', '?'])).then(|| "http1.path=/".to_owned())
}

/// Setting that accepts every certificate.
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
