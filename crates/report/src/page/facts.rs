//! The machine, the versions, the plan and the source of the page.

use std::fmt::Write as _;

use super::document::escape;
use crate::figures::bytes;
use crate::summary::Summary;
use crate::view::fleet;

/// Facts about the page's source that only the run's folder knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// SHA-256 of `journal.jsonl` in hexadecimal digits; `None` if there is no file.
    pub journal_sha256: Option<String>,
}

/// A list of facts, and the plan in a form that can be run again.
pub(crate) fn section(summary: &Summary, provenance: &Provenance) -> String {
    let run = &summary.run;
    let host = &run.host;
    let memory =
        if host.memory_bytes > 0 { bytes(host.memory_bytes as f64) } else { String::new() };
    let digest = provenance.journal_sha256.clone().unwrap_or_default();
    let meter = run.meter.as_ref().map_or(String::new(), |own| match (&own.meter, &own.absent) {
        (Some(meter), _) => format!("measured by {meter}"),
        (None, absent) => format!("not measured: {}", absent.as_deref().unwrap_or_default()),
    });
    let mut html = "<table class=\"facts\"><tbody>\n".to_owned();
    for (name, value) in [
        ("run", run.id.as_str()),
        ("started", &run.started),
        ("outcome", &run.outcome),
        ("weigh", &run.version),
        ("processor", &host.cpu),
        ("cores", &host.cores.to_string()),
        ("memory", &memory),
        ("kernel", &host.kernel),
        ("governor", &host.governor),
        ("clock source", &host.clock_source),
        ("congestion control", &host.congestion_control),
        ("virtualisation", &host.virtualisation),
        ("energy", &meter),
        ("seed", &run.plan.seed.to_string()),
        ("journal, SHA-256", &digest),
    ] {
        if !value.is_empty() {
            let value = escape(value);
            let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
        }
    }
    let hosts = fleet::lines(summary, false).into_iter().chain(fleet::bounds(summary, false));
    for (row, line) in hosts.enumerate() {
        let title = fleet::title(summary, false).filter(|_| row == 0).unwrap_or_default();
        let (name, value) = (escape(&title), escape(&line));
        let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    html.push_str("</tbody></table>\n");
    let mut targets: Vec<&str> = summary.cells.iter().map(|cell| cell.target.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    if !targets.is_empty() {
        let _ = writeln!(html, "<p>Targets: {}.</p>", escape(&targets.join(", ")));
    }
    let plan = run.plan.to_toml().unwrap_or_default();
    let _ = writeln!(
        html,
        "<details class=\"plan\"><summary>The plan, as resolved (TOML)</summary>\
         <pre tabindex=\"0\">{}</pre></details>",
        escape(&plan)
    );
    html + "<p class=\"note\">Everything on this page is made from the journal of the run; \
            <code>weigh report --html</code> makes it again. Charts by Apache ECharts (Apache \
            License 2.0).</p>\n"
}
