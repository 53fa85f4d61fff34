//! Sentences of a study as HTML: what stands between backquotes is code.

use weigh_report::page::document::escape;

/// `text` as it may stand in HTML, with `<code>` for what stands between backquotes.
pub(super) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd one out is no pair: it stays as it is.
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::prose;

    #[test]
    fn backquotes_make_code_and_nothing_else_makes_markup() {
        assert_eq!(prose("the preset `wifi <1>`"), "the preset <code>wifi &lt;1&gt;</code>");
        assert_eq!(prose("a ` alone & <b>"), "a ` alone &amp; &lt;b&gt;");
    }
}
