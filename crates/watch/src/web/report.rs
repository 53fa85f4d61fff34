//! The report of a run so far, made in memory: the folder may be read-only, and the run may still
//! write its own.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use weigh_report::RunFolder;
use weigh_report::page::{Provenance, page};

use super::shared::Shared;

/// Sends the report as a file to be saved.
pub async fn download(State(shared): State<Arc<Shared>>) -> Response {
    let Ok(_permit) = shared.reports.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let folder = shared.subject.newest();
    let made = tokio::task::spawn_blocking(move || made(&folder)).await;
    match made {
        Ok(Ok(Made { id, page })) => {
            let name = format!("attachment; filename=\"report-{}.html\"", file_name(&id));
            let kind = "text/html; charset=utf-8".to_owned();
            ([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], page)
                .into_response()
        }
        Ok(Err(problem)) => (StatusCode::CONFLICT, problem).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

struct Made {
    id: String,
    page: String,
}

fn made(folder: &Path) -> Result<Made, String> {
    let path = folder.to_string_lossy();
    let folder = RunFolder::find(folder, &path).map_err(|error| error.to_string())?;
    let journal = folder.read_journal().map_err(|error| error.to_string())?;
    let summary = folder.summary(&journal.events).map_err(|error| error.to_string())?;
    let provenance = Provenance { journal_sha256: folder.journal_sha256() };
    let page = page(&summary, &journal.events, &provenance);
    Ok(Made { id: summary.run.id, page })
}

/// An id without what a header or a file name cannot have.
fn file_name(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    id.chars().map(letter).collect()
}
