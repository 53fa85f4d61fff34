//! The routes of both servers.

use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::extract::{RawQuery, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::access::Access;
use super::shared::Shared;
use super::{assets, events, report};

/// All routes.
pub fn page(shared: Arc<Shared>, access: Access) -> Router {
    let router = Router::new()
        .route("/", get(assets::page))
        .route("/page.js", get(assets::page_script))
        .route("/state.js", get(assets::state_script))
        .route("/pictures.js", get(assets::pictures_script))
        .route("/page.css", get(assets::style))
        .route("/weigh-charts.js", get(assets::charts))
        .route("/events", get(events::stream))
        .route("/report.html", get(report::download))
        .route("/metrics", get(expose));
    guarded(router, shared, access)
}

/// The metrics alone.
pub fn metrics(shared: Arc<Shared>, access: Access) -> Router {
    guarded(Router::new().route("/metrics", get(expose)), shared, access)
}

fn guarded(router: Router<Arc<Shared>>, shared: Arc<Shared>, access: Access) -> Router {
    router
        .fallback(async || (StatusCode::NOT_FOUND, "There is no such page here."))
        .layer(middleware::from_fn_with_state(Arc::new(access), guard))
        .with_state(shared)
}

/// Answers only who may see the run, and keeps the browser from loading or sending anything
/// elsewhere: the data are not the page's.
async fn guard(
    State(access): State<Arc<Access>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let (mut response, cookie) = match access.judge(&headers, query.as_deref()) {
        Ok(granted) => (next.run(request).await, granted.cookie),
        Err(denied) => ((StatusCode::FORBIDDEN, denied).into_response(), None),
    };
    let own = response.headers_mut();
    for (name, value) in POLICIES {
        own.insert(name, HeaderValue::from_static(value));
    }
    if let Some(cookie) = cookie {
        own.insert(header::SET_COOKIE, cookie);
    }
    response
}

async fn expose(State(shared): State<Arc<Shared>>) -> Response {
    let exposed = shared.exposed.clone();
    // A long journal is read here at the first request.
    let text = tokio::task::spawn_blocking(move || {
        exposed.lock().unwrap_or_else(PoisonError::into_inner).text()
    });
    match text.await {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// The type of OpenMetrics 1.0 (section "Overall Structure").
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// W3C, "Content Security Policy Level 3"; the token in a URL is not passed on. Charts set the
/// `style` of their own elements, which the policy calls attributes.
const POLICIES: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];
