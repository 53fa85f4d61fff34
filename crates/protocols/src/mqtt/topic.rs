//! Topic names and filters (MQTT 5.0, section 4.7), and the templates that users write them in.

/// True if `topic` may be published to (sections 4.7.1 and 4.7.3).
pub fn is_name(topic: &str) -> bool {
    !topic.is_empty()
        && topic.len() <= TOPIC_BYTES_MAX
        && !topic.bytes().any(|byte| matches!(byte, b'+' | b'#' | 0))
}

/// True if `filter` may be subscribed to: `+` fills a whole level, `#` is the last level
/// (section 4.7.1), a shared one is `$share/GROUP/FILTER` (section 4.8.2).
pub fn is_filter(filter: &str) -> bool {
    let filter = if filter.starts_with("$share/") {
        match shared(filter) {
            Some((_, inner)) => inner,
            None => return false,
        }
    } else {
        filter
    };
    if filter.is_empty() || filter.len() > TOPIC_BYTES_MAX || filter.contains('\0') {
        return false;
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_right = match level {
            "+" => true,
            "#" => levels.peek().is_none(),
            _ => !level.contains(['+', '#']),
        };
        if !is_right {
            return false;
        }
    }
    true
}

/// True if messages on `topic` belong to the unshared `filter`. Topics that start with `$` are
/// not matched by filters that start with a wildcard (section 4.7.2).
pub fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        match (wanted, levels.next()) {
            // "#" also stands for the level above it.
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (wanted, Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Group and filter of `$share/GROUP/FILTER`; `None` if it is not of that form.
pub fn shared(filter: &str) -> Option<(&str, &str)> {
    let (group, inner) = filter.strip_prefix("$share/")?.split_once('/')?;
    (!group.is_empty() && !group.contains(['+', '#']) && !inner.is_empty())
        .then_some((group, inner))
}

/// Values of placeholders.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'a> {
    /// `%c`: the client identifier.
    pub client_id: &'a str,
    /// `%i`: the index of the connection among those of its role.
    pub index: u32,
    /// `%u`: the user name.
    pub user: &'a str,
    /// `%t`: the tag of the trial, four hexadecimal digits.
    pub tag: u16,
    /// `%r`: the role, `p` or `c`.
    pub role: &'a str,
    /// `%s`: the number of the message; without one [`NUMBER`] stands there.
    pub sequence: Option<u64>,
}

/// Stands where the number of each message is filled in later; no topic has it (section 1.5.4).
pub const NUMBER: char = '\0';

/// A text with placeholders: `%c`, `%i`, `%u`, `%t`, `%r`, `%s`, and `%%` for a percent sign;
/// `{client}` and `{seq}` are `%i` and `%s`, as in bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
}

impl Template {
    /// Takes `text`; an unknown placeholder is an error that names it.
    ///
    /// # Errors
    /// The unknown placeholder, or a single % at the end.
    pub fn parse(text: &str) -> Result<Template, String> {
        let text = text.replace("{client}", "%i").replace("{seq}", "%s");
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                continue;
            }
            match characters.next() {
                Some('c' | 'i' | 'u' | 't' | 'r' | 's' | '%') => {}
                Some(other) => return Err(format!("unknown placeholder %{other}")),
                None => return Err("it ends with a single %".to_owned()),
            }
        }
        Ok(Template { text })
    }

    /// True if the placeholder `%letter` occurs.
    pub fn has(&self, letter: char) -> bool {
        has_placeholder(&self.text, letter)
    }

    /// The text with everything filled in.
    pub fn fill(&self, names: &Names<'_>) -> String {
        fill(&self.text, names)
    }

    /// A filter for the topics of all connections: levels that differ between them become `+`.
    pub fn filter(&self, names: &Names<'_>) -> String {
        self.filter_but(&['c', 'i', 'r', 's'], names)
    }

    /// A filter for the topics of one connection: levels that differ between messages become `+`.
    pub fn filter_of_one(&self, names: &Names<'_>) -> String {
        self.filter_but(&['s'], names)
    }

    fn filter_but(&self, letters: &[char], names: &Names<'_>) -> String {
        let levels = self.text.split('/').map(|level| {
            let differs = letters.iter().any(|letter| has_placeholder(level, *letter));
            if differs { "+".to_owned() } else { fill(level, names) }
        });
        levels.collect::<Vec<_>>().join("/")
    }

    /// Position of `%i` in a topic, so that it can be read back; `None` if it cannot.
    pub fn index_place(&self, names: &Names<'_>) -> Option<IndexPlace> {
        let level = self.text.split('/').position(|level| has_placeholder(level, 'i'))?;
        let (before, after) = self.text.split('/').nth(level)?.split_once("%i")?;
        let is_fixed = |part: &str| {
            !['c', 'i', 'r', 's'].into_iter().any(|letter| has_placeholder(part, letter))
        };
        if !is_fixed(before) || !is_fixed(after) {
            return None;
        }
        let (before, after) = (fill(before, names), fill(after, names));
        Some(IndexPlace { level, before, after })
    }
}

/// Position of the producer's index in a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPlace {
    level: usize,
    before: String,
    after: String,
}

impl IndexPlace {
    /// The producer that `topic` belongs to.
    pub fn read(&self, topic: &[u8]) -> Option<u32> {
        let level = topic.split(|byte| *byte == b'/').nth(self.level)?;
        let digits =
            level.strip_prefix(self.before.as_bytes())?.strip_suffix(self.after.as_bytes())?;
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

fn has_placeholder(text: &str, letter: char) -> bool {
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '%' && characters.next() == Some(letter) {
            return true;
        }
    }
    false
}

fn fill(text: &str, names: &Names<'_>) -> String {
    let mut filled = String::with_capacity(text.len() + 16);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            filled.push(character);
            continue;
        }
        match characters.next() {
            Some('c') => filled.push_str(names.client_id),
            Some('i') => filled.push_str(&names.index.to_string()),
            Some('u') => filled.push_str(names.user),
            Some('t') => filled.push_str(&format!("{:04x}", names.tag)),
            Some('r') => filled.push_str(names.role),
            Some('s') => match names.sequence {
                Some(sequence) => filled.push_str(&sequence.to_string()),
                None => filled.push(NUMBER),
            },
            _ => filled.push('%'),
        }
    }
    filled
}

/// Longest topic or filter in bytes (section 4.7.3).
const TOPIC_BYTES_MAX: usize = 65_535;

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of sections 4.7.1 and 4.7.2.
    #[test]
    fn filters_match_as_the_standard_says() {
        let table = [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking", true),
            ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true),
            ("sport/#", "sport", true),
            ("#", "anything/at/all", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("#", "$SYS/uptime", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/uptime", true),
            ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
            ("a/b", "a/B", false),
        ];
        for (filter, topic, expected) in table {
            assert_eq!(matches(filter, topic), expected, "{filter} {topic}");
        }
    }

    #[test]
    fn names_and_filters_are_checked() {
        for filter in ["#", "+", "a/+/b", "a/#", "/", "//", "$share/g/a/#", "a b/é"] {
            assert!(is_filter(filter), "{filter}");
        }
        for filter in
            ["", "a#", "a/#/b", "a+", "a/+b", "a\0", "$share/g", "$share//a", "$share/+/a"]
        {
            assert!(!is_filter(filter), "{filter}");
        }
        assert!(is_name("a/b") && is_name("/") && is_name("$SYS/x"));
        assert!(!is_name("") && !is_name("a/+") && !is_name("#") && !is_name("a\0b"));
        assert!(is_name(&"t".repeat(65_535)) && !is_name(&"t".repeat(65_536)));
    }

    #[test]
    fn templates_fill_derive_a_filter_and_read_the_index_back() {
        let names = Names {
            client_id: "c1",
            index: 7,
            user: "me",
            tag: 0xBEEF,
            role: "p",
            sequence: Some(9),
        };
        let template = Template::parse("weigh/%t/s%i-x/%u/100%%").unwrap();
        assert_eq!(template.fill(&names), "weigh/beef/s7-x/me/100%");
        assert_eq!(template.filter(&names), "weigh/beef/+/me/100%");
        let place = template.index_place(&names).unwrap();
        assert_eq!(place.read(b"weigh/beef/s41-x/me/100%"), Some(41));
        assert_eq!(place.read(b"weigh/beef/s-x/me"), None);
        assert_eq!(place.read(b"weigh/beef/s99999999999-x/me"), None);
        let numbered = Template::parse("farm/{client}/n{seq}").unwrap();
        assert_eq!(numbered.fill(&names), "farm/7/n9");
        assert_eq!(numbered.filter(&names), "farm/+/+");
        assert_eq!(numbered.filter_of_one(&names), "farm/7/+");
        assert_eq!(numbered.fill(&Names { sequence: None, ..names }), "farm/7/n\0");
        assert_eq!(numbered.index_place(&names).unwrap().read(b"farm/41/n3"), Some(41));
        assert!(Template::parse("%i%c").unwrap().index_place(&names).is_none());
        assert!(Template::parse("a/%x").unwrap_err().contains("%x"));
        assert!(!Template::parse("%%i").unwrap().has('i'));
    }
}
