//! Who may see a run, and what the server answers to all others.

use std::net::TcpListener;
use std::time::Duration;

use weigh_watch::web::{Serving, serve};

use crate::client::{request, send, served, serving_at, stored};

#[test]
fn the_page_and_its_files_come_with_a_policy_that_loads_nothing_from_elsewhere() {
    let (server, _) = served(&stored(), "127.0.0.1:0");
    for (path, kind) in [
        ("/", "text/html"),
        ("/page.js", "text/javascript"),
        ("/state.js", "text/javascript"),
        ("/pictures.js", "text/javascript"),
        ("/weigh-charts.js", "text/javascript"),
        ("/page.css", "text/css"),
        ("/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    ] {
        let answer = request(server, path, &[]);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.headers.contains(&format!("content-type: {kind}")), "{}", answer.headers);
        for policy in ["default-src 'none'", "script-src 'self'", "no-referrer", "nosniff"] {
            assert!(answer.headers.contains(policy), "{policy} of {path}");
        }
        assert!(!answer.headers.contains("access-control"), "{}", answer.headers);
        assert!(!answer.text().is_empty());
    }
    assert_eq!(request(server, "/journal.jsonl", &[]).status, 404);
    let post = format!("POST / HTTP/1.1\r\nHost: {server}\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(send(server, &post).status, 405);
}

#[test]
fn another_host_name_is_refused_on_loopback() {
    let (server, rest) = served(&stored(), "127.0.0.1:0");
    assert_eq!(rest, "", "loopback needs no token");
    let answer = request(server, "/events", &["Host: evil.example"]);
    assert_eq!(answer.status, 403);
    assert_eq!(answer.text(), "This server answers only requests to localhost.");
    assert_eq!(request(server, "/", &["Host: localhost"]).status, 200);
}

#[test]
fn an_address_for_all_interfaces_needs_the_token_on_every_route() {
    let (server, rest) = served(&stored(), "0.0.0.0:0");
    let token = rest.strip_prefix("?token=").expect("a token");
    assert_eq!(token.len(), 32);
    for path in ["/", "/page.js", "/weigh-charts.js", "/events", "/report.html", "/metrics", "/no"]
    {
        assert_eq!(request(server, path, &[]).status, 403, "{path}");
        let wrong = format!("{path}?token=0123456789abcdef0123456789abcdef");
        let answer = request(server, &wrong, &[]);
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.text().starts_with("The token is wrong"), "{path}");
    }
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(request(server, "/metrics", &[&bearer]).status, 200);
    let first = request(server, &format!("/?token={token}"), &[]);
    let cookie = first.headers.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect(&first.headers);
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
    let mut stream = request(server, "/events", &[&cookie]);
    assert_eq!((stream.status, stream.event().unwrap().name.as_str()), (200, "run_started"));
}

/// Two addresses: the one for Prometheus has nothing else.
#[test]
fn metrics_have_an_address_of_their_own() {
    let loopback = Some("127.0.0.1:0".parse().unwrap());
    let serving = Serving { metrics: loopback, ..Serving::default() };
    let server = serving_at(&stored(), serving).0;
    let text = request(server, "/metrics", &[]).text();
    assert!(text.contains("weigh_watch_up 1\n") && text.ends_with("# EOF\n"), "{text}");
    for path in ["/", "/events", "/report.html"] {
        assert_eq!(request(server, path, &[]).status, 404, "{path}");
    }
}

/// A page that `--open` started does not stay for ever.
#[test]
fn the_server_ends_after_the_run() {
    let serving = Serving {
        page: Some("127.0.0.1:0".parse().unwrap()),
        ends_after_run: Some(Duration::from_millis(1)),
        ..Serving::default()
    };
    serve(&stored(), serving, &|_| ()).unwrap();
}

#[test]
fn a_port_that_is_taken_is_named_with_its_option() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let said = |text: &str| panic!("{text}");
    for (page, metrics, option) in
        [(Some(address), None, "--web"), (None, Some(address), "--metrics")]
    {
        let serving = Serving { page, metrics, ..Serving::default() };
        let error = serve(&stored(), serving, &said).unwrap_err().to_string();
        let expected = format!(
            "{address}: another process uses this port\nhelp: type {option} 127.0.0.1:0 for a \
             free port"
        );
        assert_eq!(error, expected);
    }
}
