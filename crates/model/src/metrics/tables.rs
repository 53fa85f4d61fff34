//! The tables of metrics in `docs/methodology.md`, made from the list.

use super::list::METRICS;
use super::metric::{Better, Metric};

/// The table of one section as Markdown, with a line break at its end.
pub fn tables(section: &str) -> String {
    let rows = METRICS.iter().filter(|metric| metric.section == section).map(row);
    format!("| metric | unit | better | definition | source |\n|---|---|---|---|---|\n{}", {
        rows.collect::<String>()
    })
}

/// Returns the page `text` with every table between its marks made anew.
///
/// # Errors
/// If a mark is not closed.
pub fn with_tables(text: &str) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (section, after) = after.split_once(" -->\n").ok_or("a mark has no end")?;
        let at = after.find(CLOSE).ok_or_else(|| format!("metrics: {section} is not closed"))?;
        made += &format!("{before}{OPEN}{section} -->\n{}", tables(section));
        rest = &after[at..];
    }
    Ok(made + rest)
}

fn row(metric: &Metric) -> String {
    let better = match metric.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "",
    };
    let plain = |text: &str| text.replace('|', "\\|");
    let name = metric.name.split('{').enumerate().map(|(at, part)| match part.split_once('}') {
        Some((slot, rest)) if at > 0 => format!("{}{rest}", slot.replace('|', "/").to_uppercase()),
        _ => part.to_owned(),
    });
    let (name, what) = (name.collect::<String>(), plain(metric.what));
    let what = what.replace("{place}", "").replace("{both}", "").replace(['{', '}'], "");
    format!("| `{name}` | {} | {better} | {what} | {} |\n", metric.unit(), plain(metric.source))
}

const OPEN: &str = "<!-- metrics: ";
const CLOSE: &str = "<!-- end -->";

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_methodology_lists_every_metric() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/methodology.md");
        let text = fs::read_to_string(path).unwrap();
        let made = with_tables(&text).unwrap();
        if env::var_os("WEIGH_WRITE_DOCS").is_some() {
            fs::write(path, &made).unwrap();
        }
        for metric in METRICS {
            let mark = format!("{OPEN}{} -->", metric.section);
            assert!(made.contains(&mark), "{mark}: {} has no table", metric.name);
        }
        assert!(
            env::var_os("WEIGH_WRITE_DOCS").is_some() || text == made,
            "out of date: WEIGH_WRITE_DOCS=1 cargo test -p weigh-model makes it anew"
        );
    }
}
