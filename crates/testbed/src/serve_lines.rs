//! The lines between `weigh serve` and the process that started it: pure functions,
//! for both sides.
//!
//! ```text
//! child  → parent  listening on mqtt://127.0.0.1:40123      once, when it takes connections
//! parent → child   report
//! child  → parent  {"connections":60,"received":600,...}    what it counted, as JSON
//! parent → child   anything else
//! child  → parent  error: unknown request "anything else": type report
//! ```
//!
//! The child ends when its stdin ends, or on SIGTERM. All other messages go to stderr.
//! A stage of the pipeline takes the same request; once it answers, the hops of all counted
//! readings are in their file.

use std::net::IpAddr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weigh_model::Endpoint;

/// Requests of a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The counts up to now.
    Report,
}

impl Request {
    /// Reads a line of the parent.
    ///
    /// # Errors
    /// What to type instead; send it with [`error_line`].
    pub fn parse(line: &str) -> Result<Request, String> {
        match line.trim() {
            "report" => Ok(Request::Report),
            other => Err(format!("unknown request {other:?}: type report")),
        }
    }

    /// The line without its end.
    pub fn line(self) -> &'static str {
        match self {
            Request::Report => "report",
        }
    }
}

/// The child's first line, without its end.
pub fn listening_line(endpoint: &Endpoint) -> String {
    format!("{LISTENING}{endpoint}")
}

/// Reads the child's first line.
///
/// # Errors
/// What the line was instead.
pub fn parse_listening(line: &str) -> Result<Endpoint, String> {
    let url = line.trim().strip_prefix(LISTENING).ok_or_else(|| {
        format!("expected the first line `{LISTENING}URL`, found {:?}", line.trim())
    })?;
    let mut endpoint = Endpoint::parse(url)?.with_port(0)?;
    endpoint.address = endpoint.host.parse::<IpAddr>().ok().map(|ip| (ip, endpoint.port).into());
    Ok(endpoint)
}

/// A report as a line, without its end.
///
/// # Errors
/// If it cannot be written as JSON, which none that the model can hold does.
pub fn report_line(report: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(report).map_err(|error| error.to_string())
}

/// An answer that names the error of a request, without its end.
pub fn error_line(text: &str) -> String {
    format!("{ERROR}{}", text.replace(['\n', '\r'], " "))
}

/// Reads the answer to [`Request::Report`].
///
/// # Errors
/// The error that the child reported, or that its line is not a report.
pub fn parse_report<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    if let Some(error) = line.trim().strip_prefix(ERROR) {
        return Err(error.to_owned());
    }
    serde_json::from_str(line)
        .map_err(|error| format!("expected a report, found {:?}: {error}", line.trim()))
}

const LISTENING: &str = "listening on ";
const ERROR: &str = "error: ";

#[cfg(test)]
mod tests {
    use weigh_model::server::ServerReport;

    use super::*;

    #[test]
    fn both_sides_understand_each_other() {
        let endpoint = Endpoint::at("mqtt", "127.0.0.1:40123".parse().unwrap());
        assert_eq!(listening_line(&endpoint), "listening on mqtt://127.0.0.1:40123");
        assert_eq!(parse_listening(&format!("{}\n", listening_line(&endpoint))), Ok(endpoint));
        assert_eq!(Request::parse("report\n"), Ok(Request::Report));
        assert_eq!(Request::parse(Request::Report.line()), Ok(Request::Report));
        let mut report = ServerReport { received: 7, ..ServerReport::default() };
        report.dropped.insert("queue_full".to_owned(), 3);
        assert_eq!(parse_report(&report_line(&report).unwrap()), Ok(report));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let error = Request::parse("repport").unwrap_err();
        let answer = error_line(&error);
        assert_eq!(
            parse_report::<ServerReport>(&answer),
            Err("unknown request \"repport\": type report".into())
        );
        assert!(parse_report::<ServerReport>("{}").unwrap_err().contains("expected a report"));
        assert!(parse_listening("hello").unwrap_err().contains("found \"hello\""));
        assert!(parse_listening("listening on ftp://a").is_err());
        assert!(!error_line("a\nb").contains('\n'));
    }
}
