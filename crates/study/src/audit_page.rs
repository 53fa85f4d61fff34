//! The page of an audit: which rules the printed figures break, where, with the
//! arithmetic, and what follows from them. It needs no run.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::audit::figure::{Fact, Figure};
use crate::audit::{Audit, Body, Finding, needs};
use weigh_model::Rule;
use weigh_model::warnings::Severity;
use weigh_report::page::document::{STYLE, escape, section, still};

/// An audit for the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Audited<'a> {
    /// Question of each study, by the study's name; empty if unknown.
    pub about: &'a [(String, String)],
    /// Findings of the audit.
    pub audit: &'a Audit,
}

/// The page of an audit; `command` makes it again.
pub fn page(audited: &Audited<'_>, command: &str) -> String {
    let mut papers: Vec<Paper<'_>> = papers_of(audited).collect();
    papers.sort_by(|left, right| left.body.name.cmp(&right.body.name));
    let title = match &papers[..] {
        [one] => format!("Audit of the figures of {}", one.body.name),
        many => format!("Audit of the figures of {} studies", many.len()),
    };
    let mut body = header(&title, &papers);
    body += "<main id=\"main\">\n";
    body += &section("summary", "Rules and studies", &matrix(&papers));
    for (index, paper) in papers.iter().enumerate() {
        body += &section(&format!("study-{index}"), &paper.body.name, &one(index, paper));
    }
    body += &section("rules", "The rules", &rules());
    let again = format!("<pre tabindex=\"0\">{}</pre>\n", escape(command));
    body += &section("repeat", "How to make this page again", &again);
    body += "</main>\n";
    still(&title, &body, STYLE)
}

/// A study with what was found in it.
struct Paper<'a> {
    body: &'a Body,
    about: &'a str,
    findings: Vec<&'a Finding>,
}

fn papers_of<'a>(audited: &'a Audited<'_>) -> impl Iterator<Item = Paper<'a>> {
    let Audited { about, audit } = audited;
    audit.studies.iter().map(move |body| {
        let known = about.iter().find(|(name, _)| *name == body.name);
        let findings = audit.findings.iter().filter(|finding| finding.study == body.name);
        Paper { body, about: known.map_or("", |(_, about)| about), findings: findings.collect() }
    })
}

impl Paper<'_> {
    fn rules(&self) -> BTreeSet<Rule> {
        self.findings.iter().map(|finding| finding.rule).collect()
    }

    fn of(&self, rule: Rule) -> impl Iterator<Item = &Finding> {
        self.findings.iter().copied().filter(move |finding| finding.rule == rule)
    }
}

fn header(title: &str, papers: &[Paper<'_>]) -> String {
    let figures: usize = papers.iter().map(|paper| paper.body.figures.len()).sum();
    let findings: usize =
        papers.iter().flat_map(|paper| &paper.findings).map(|f| 1 + f.also.len()).sum();
    let rules: BTreeSet<Rule> = papers.iter().flat_map(Paper::rules).collect();
    format!(
        "<a class=\"skip\" href=\"#main\">Skip to the findings</a>\n<header>\n<p \
         class=\"run\"><b>Weighbridge</b> {} · audit</p>\n<h1>{}</h1>\n<div class=\"answer\">\
         <p>{}, {} under {} of {} rules. Nothing was run: every finding is arithmetic on printed \
         figures, and on facts about how they were made.</p>\n<p>A finding is a question to \
         the author of a figure, not a verdict on the system that was measured.</p></div>\n\
         </header>\n",
        env!("CARGO_PKG_VERSION"),
        escape(title),
        counted(figures, "figure", "figures"),
        counted(findings, "finding", "findings"),
        rules.len(),
        Rule::ALL.len(),
    )
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Number of findings by rule and study.
fn matrix(papers: &[Paper<'_>]) -> String {
    let heads: String = papers
        .iter()
        .enumerate()
        .map(|(index, paper)| {
            let name = escape(&paper.body.name);
            format!("<th scope=\"col\"><a href=\"#study-{index}\">{name}</a></th>")
        })
        .collect();
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Rules and studies\">\
         <table>\n<thead><tr><th scope=\"col\">rule</th>{heads}</tr></thead>\n<tbody>\n"
    );
    for rule in Rule::ALL {
        let cells: String =
            papers.iter().enumerate().map(|(index, paper)| cell(rule, index, paper)).collect();
        let title = escape(rule.title());
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\"><a href=\"#rule-{rule}\">{rule}</a> {title}</th>{cells}</tr>"
        );
    }
    html + "</tbody></table></div>\n<p class=\"note\">Number of findings of each rule; one figure \
    may be in several. <b>!</b> figures contradict each other. <b>0</b> the rule was checked and \
    nothing was found. <b>–</b> the rule could not be checked, because figures that it needs are \
    missing.</p>\n"
}

fn cell(rule: Rule, index: usize, paper: &Paper<'_>) -> String {
    let number: usize = paper.of(rule).map(|finding| 1 + finding.also.len()).sum();
    if number == 0 {
        let is_unasked = paper.body.unasked.contains(&rule);
        return format!("<td>{}</td>", if is_unasked { "–" } else { "0" });
    }
    let is_invalid = paper.of(rule).any(|finding| finding.severity == Severity::Invalid);
    let (class, mark) = if is_invalid { (" class=\"invalid\"", "! ") } else { ("", "") };
    format!("<td{class}>{mark}<a href=\"#study-{index}-{rule}\">{number}</a></td>")
}

/// A study: its findings by rule, what follows from its figures, and the figures.
fn one(index: usize, paper: &Paper<'_>) -> String {
    let mut html = match paper.about {
        "" => String::new(),
        about => format!("<p>{}</p>\n", escape(about)),
    };
    if paper.findings.is_empty() {
        html += "<p>No rule that could be checked is broken.</p>\n";
    }
    for rule in paper.rules() {
        html += &by_rule(index, paper, rule);
    }
    html + &worked(paper.body) + &known(paper.body) + &printed(paper.body)
}

fn by_rule(index: usize, paper: &Paper<'_>, rule: Rule) -> String {
    let is_invalid = paper.of(rule).any(|finding| finding.severity == Severity::Invalid);
    let class = if is_invalid { " class=\"invalid\"" } else { "" };
    let mut html = format!(
        "<h3{class} id=\"study-{index}-{rule}\">{rule} {}</h3>\n<p class=\"note\">{}. Instead: \
         {}.</p>\n<ul class=\"findings\">\n",
        escape(rule.title()),
        escape(&capital(rule.means())),
        escape(rule.instead()),
    );
    for finding in paper.of(rule) {
        let place = escape(&finding.place.to_string());
        let _ = write!(html, "<li>{} <span>{place}</span>", escape(&finding.seen));
        let items = || finding.also.iter().map(|seen| format!("<li>{}</li>", escape(seen)));
        html += &match finding.also.len() {
            0 => String::new(),
            few if few <= OPEN_MAX => format!("<ul>{}</ul>", items().collect::<String>()),
            many => format!(
                "<details><summary>{many} more in this table</summary><ul>{}</ul></details>",
                items().collect::<String>()
            ),
        };
        html += "</li>\n";
    }
    html + "</ul>\n"
}

/// Results that follow from the figures, and checks that hold.
fn worked(body: &Body) -> String {
    if body.worked.is_empty() {
        return String::new();
    }
    let mut html = "<h3>Worked out</h3>\n<ul class=\"findings\">\n".to_owned();
    for one in &body.worked {
        let mark = match one.holds {
            Some(true) => "holds: ",
            Some(false) => "<b class=\"invalid\">does not hold</b>: ",
            None => "",
        };
        let place = escape(&one.place.to_string());
        let _ = writeln!(html, "<li>{mark}{} <span>{place}</span></li>", escape(&one.said));
    }
    html + "</ul>\n"
}

/// Further facts, and their sources.
fn known(body: &Body) -> String {
    if body.facts.is_empty() {
        return String::new();
    }
    let items: String = body.facts.iter().map(fact).collect();
    format!(
        "<details class=\"paper\"><summary>Further facts</summary><ul>{items}\
         </ul></details>\n"
    )
}

fn fact(fact: &Fact) -> String {
    let of = [fact.table.as_deref(), fact.subject.as_deref()];
    let of: Vec<&str> = of.into_iter().flatten().collect();
    let of = if of.is_empty() { "all of it".to_owned() } else { of.join(", ") };
    format!(
        "<li>{}: {}: {} <span>({})</span></li>",
        escape(&of),
        escape(&fact.key.replace('_', " ")),
        escape(&fact.value),
        if fact.is_said { "stated" } else { "found elsewhere" }
    )
}

/// The figures as they are printed.
fn printed(body: &Body) -> String {
    let rows: String = body.figures.iter().map(row).collect();
    format!(
        "<details><summary>The figures as printed: {}</summary><div class=\"wide\" \
         tabindex=\"0\" role=\"region\" aria-label=\"Figures of {}\"><table>\n<thead><tr><th \
         scope=\"col\">figure</th><th scope=\"col\" class=\"text\">table</th><th scope=\"col\" \
         class=\"text\">series</th><th scope=\"col\">line</th></tr></thead>\n<tbody>\n{rows}\
         </tbody></table></div></details>\n",
        body.figures.len(),
        escape(&body.name)
    )
}

fn row(figure: &Figure) -> String {
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"text\">{}</td><td class=\"text\">{} \
         <span>({})</span></td><td>{}</td></tr>\n",
        escape(&figure.printed),
        escape(&figure.place.table),
        escape(&figure.place.series.replace(';', ", ")),
        escape(&figure.cell()),
        figure.place.line
    )
}

/// Every rule: what a broken one means, what to do instead, what it needs to be asked.
fn rules() -> String {
    let mut html = "<dl>\n".to_owned();
    for rule in Rule::ALL {
        let _ = writeln!(
            html,
            "<dt id=\"rule-{rule}\">{rule} {}</dt><dd><p>{}.</p><p>Instead: {}.</p><p \
             class=\"note\">Needs: {}.</p></dd>",
            escape(rule.title()),
            escape(&capital(rule.means())),
            escape(rule.instead()),
            escape(needs(rule)),
        );
    }
    html + "</dl>\n"
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// More findings of a table than this are folded.
const OPEN_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Source, audit};

    const TABLE: &str = "study,table,series,x,x_unit,y,y_unit\n\
        lab,T <1>,protocol=HTTP;clients=60;stat=average_cpu,10000,messages,97,percent\n\
        lab,T <1>,protocol=HTTP;clients=60;stat=max_cpu,10000,messages,95.3,percent\n\
        other,T,protocol=MQTT;stat=mean_rtt,,,5,ms\n";

    fn made() -> String {
        let source = Source { name: "t.csv".to_owned(), text: TABLE.to_owned() };
        let audit = audit(&[source], &[]).unwrap();
        let about = [("lab".to_owned(), "A & B".to_owned())];
        page(&Audited { about: &about, audit: &audit }, "weigh audit t.csv --page a.html")
    }

    #[test]
    fn every_finding_stands_with_its_place_and_every_rule_is_explained() {
        let html = made();
        assert!(html.contains("the maximum is 95.3 %, below the mean of 97 %"));
        assert!(html.contains("t.csv:3 [T &lt;1&gt;]") && html.contains("A &amp; B"));
        assert!(!html.contains("T <1>"), "what is printed is escaped");
        for rule in Rule::ALL {
            assert_eq!(html.matches(&format!("<dt id=\"rule-{rule}\"")).count(), 1, "{rule}");
            assert!(html.contains(&escape(rule.instead())), "{rule}");
        }
    }

    #[test]
    fn the_matrix_tells_what_was_found_from_what_could_not_be_asked() {
        let html = made();
        let row = |rule: &str| {
            let start = html.find(&format!("<a href=\"#rule-{rule}\"")).unwrap();
            html[start..].split("</tr>").next().unwrap().to_owned()
        };
        assert!(
            row("L07").contains("class=\"invalid\">! <a") && row("L07").ends_with("<td>–</td>")
        );
        assert_eq!(row("L18").matches("<td>–</td>").count(), 2);
    }

    #[test]
    fn links_within_the_page_lead_somewhere() {
        let html = made();
        for link in html.split("href=\"#").skip(1) {
            let id = link.split('"').next().unwrap();
            assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}
