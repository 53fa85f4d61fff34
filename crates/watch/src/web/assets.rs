//! The files of the page. It loads nothing from elsewhere, and its charts are the report's.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use weigh_report::charts::BUNDLE;
use weigh_report::page::document::STYLE;

/// The page.
pub async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("page.html"))
}

/// The script that shows what is known.
pub async fn page_script() -> Response {
    script(include_str!("page.js"))
}

/// The script that computes what is known from the events.
pub async fn state_script() -> Response {
    script(include_str!("state.js"))
}

/// The script that makes the charts' options.
pub async fn pictures_script() -> Response {
    script(include_str!("pictures.js"))
}

/// The chart library with Weighbridge's formatters.
pub async fn charts() -> Response {
    script(BUNDLE)
}

/// The report's style, and what the page needs besides.
pub async fn style() -> Response {
    file("text/css; charset=utf-8", concat_style())
}

fn concat_style() -> String {
    format!("{STYLE}{}", include_str!("page.css"))
}

fn script(text: &'static str) -> Response {
    file("text/javascript; charset=utf-8", text)
}

fn file(kind: &'static str, text: impl IntoResponse) -> Response {
    // Another version of weigh may be at the same address a moment later.
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response()
}
