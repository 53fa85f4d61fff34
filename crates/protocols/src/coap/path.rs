//! The resource of a trial: host, path and query as options (RFC 7252, section 6.4).

use weigh_model::Pattern;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;

use super::codec::{OptionWriter, number};

/// Host, path and query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Empty for an address: the server knows its own.
    host: Vec<u8>,
    segments: Parts,
    query: Parts,
}

impl Place {
    /// Appends host and path.
    pub(super) fn put(&self, out: &mut Vec<u8>, writer: &mut OptionWriter) {
        self.put_host(out, writer);
        self.put_path(out, writer);
    }

    /// Appends the host, if it is a name.
    pub(super) fn put_host(&self, out: &mut Vec<u8>, writer: &mut OptionWriter) {
        if !self.host.is_empty() {
            writer.put(out, number::URI_HOST, &self.host);
        }
    }

    /// Appends the path.
    pub(super) fn put_path(&self, out: &mut Vec<u8>, writer: &mut OptionWriter) {
        self.segments.iter().for_each(|segment| writer.put(out, number::URI_PATH, segment));
    }

    /// Appends the query; false if there is none.
    pub(super) fn put_query(&self, out: &mut Vec<u8>, writer: &mut OptionWriter) -> bool {
        self.query.iter().for_each(|part| writer.put(out, number::URI_QUERY, part));
        !self.query.is_empty()
    }

    /// Number of the last option of host and path; 0 if there is none.
    pub(super) fn last_before_query(&self) -> u16 {
        match (self.segments.is_empty(), self.host.is_empty()) {
            (false, _) => number::URI_PATH,
            (true, false) => number::URI_HOST,
            (true, true) => 0,
        }
    }
}

/// The resource that requests of a trial name: the path of the target's URL, else the key; and
/// below it `list`.
///
/// # Errors
/// A path that is not one, or a part of it that is too long for an option.
pub(super) fn place(trial: &Trial, list: Option<u32>) -> Result<Place, Invalid> {
    let endpoint = trial.endpoint.as_ref();
    let (named, key) = match trial.load.pattern {
        Pattern::Poll => ("coap.poll_path", "poll_path"),
        _ => ("coap.path", "path"),
    };
    let (named, path) = match endpoint.map_or("", |endpoint| endpoint.path.as_str()) {
        "" => (named, trial.settings.text(key)),
        path => ("target", path),
    };
    let host = endpoint.map_or("", |endpoint| endpoint.host.as_str());
    // Section 6.4, item 5: only a name is sent. IPv6 has colons, and no name is of digits alone.
    let is_address =
        host.contains(':') || host.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
    let host = if is_address || host == LOCAL { "" } else { host };
    let (mut segments, query) = read(path).ok_or_else(|| {
        Invalid::new(
            named,
            format!("{path:?} is not a path"),
            "type one that starts with /, with parts of at most 255 bytes and a space as %20",
        )
    })?;
    segments.extend(list.map(|list| list.to_string().into_bytes()));
    Ok(Place { host: host.as_bytes().to_vec(), segments, query })
}

/// Segments of a path, or parts of a query.
type Parts = Vec<Vec<u8>>;

/// The segments of a path and the parts of its query, without escapes.
pub(super) fn read(path: &str) -> Option<(Parts, Parts)> {
    let path = path.split('#').next().unwrap_or_default();
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let path = path.strip_prefix('/')?;
    let parts = |text: &str, by: char| text.split(by).map(unescaped).collect::<Option<Vec<_>>>();
    let segments = if path.is_empty() { Vec::new() } else { parts(path, '/')? };
    Some((segments, query.map_or(Some(Vec::new()), |query| parts(query, '&'))?))
}

/// A part with its percent escapes replaced; `None` if it is malformed or too long (section
/// 5.10.1).
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        (bytes, rest) = match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push((digit(high)? << 4 | digit(low)?) as u8);
                (bytes, after)
            }
            (b'%', _) => return None,
            (byte, after) if byte.is_ascii_graphic() => {
                bytes.push(*byte);
                (bytes, after)
            }
            _ => return None,
        };
    }
    (bytes.len() <= PART_BYTES_MAX).then_some(bytes)
}

/// The longest value of Uri-Path and Uri-Query.
const PART_BYTES_MAX: usize = 255;

/// Stands for the address of this machine.
const LOCAL: &str = "localhost";

#[cfg(test)]
mod tests {
    use weigh_model::Load;
    use weigh_model::trial::Settings;

    use super::*;

    #[test]
    fn only_names_are_sent_as_the_host() {
        let of = |url: &str| {
            let trial = Trial {
                id: String::new(),
                point: Default::default(),
                repetition: 0,
                seed: 1,
                protocol: "coap".to_owned(),
                target: url.to_owned(),
                endpoint: Some(crate::urls::endpoint(url).unwrap()),
                load: Load::closed(Pattern::Publish, 1),
                settings: Settings::default(),
            };
            String::from_utf8(place(&trial, None).unwrap().host).unwrap()
        };
        assert_eq!(of("coap://192.0.2.7/a"), "");
        assert_eq!(of("coap://[2001:db8::1]/a"), "");
        assert_eq!(of("coap://localhost/a"), "");
        assert_eq!(of("coap://example.net/a"), "example.net");
    }

    /// The example of section 6.4: coap://example.net/.well-known/core and others of section 6.3.
    #[test]
    fn paths_become_segments() {
        let read = |path: &str| {
            let text = |parts: Vec<Vec<u8>>| {
                parts.into_iter().map(|part| String::from_utf8(part).unwrap()).collect::<Vec<_>>()
            };
            read(path).map(|(segments, query)| (text(segments), text(query)))
        };
        let own = |segments: &[&str], query: &[&str]| {
            let owned = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
            Some((owned(segments), owned(query)))
        };
        assert_eq!(read("/.well-known/core"), own(&[".well-known", "core"], &[]));
        assert_eq!(read("/"), own(&[], &[]));
        assert_eq!(
            read("/%7Esensors/temp.xml?a=1&b=%26"),
            own(&["~sensors", "temp.xml"], &["a=1", "b=&"])
        );
        assert_eq!(read("/a/"), own(&["a", ""], &[]));
        for wrong in ["", "a", "/%", "/%4", "/%zz", "/a b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read(&format!("/{}", "x".repeat(256))), None);
    }
}
