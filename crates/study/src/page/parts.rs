//! Parts of the page: rows, lists, and what is folded away.

/// Text with notes beside it.
pub(crate) fn row(text: &str, side: &str) -> String {
    let side = match side {
        "" => String::new(),
        side => format!("<aside class=\"side\">{side}</aside>"),
    };
    format!("<div class=\"row\"><div>{text}</div>{side}</div>\n")
}

/// Content that is shown when it is asked for.
pub(crate) fn fold(summary: &str, content: &str) -> String {
    match content {
        "" => String::new(),
        content => format!("<details><summary>{summary}</summary>{content}</details>\n"),
    }
}

/// A list of HTML items; nothing where there are none.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: String = items.into_iter().map(|item| format!("<li>{item}</li>\n")).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}
