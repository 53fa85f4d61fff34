//! The list of load keys: each is documented everywhere, and its documentation is true.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Table;
use weigh_model::Pattern;
use weigh_plan::keys::Keys;
use weigh_plan::load_keys::{LOAD_KEYS, LoadKey};
use weigh_plan::{BodyWords, LoadWords};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
const BEGIN: &str = "<!-- load keys: written by WEIGH_WRITE_DOCS=1 cargo test -p weigh-plan -->\n";
const END: &str = "<!-- end of load keys -->";

#[test]
fn every_key_is_told_whole_and_once() {
    let mut names = BTreeSet::new();
    let mut flags = BTreeSet::new();
    for key in LOAD_KEYS {
        assert!(!key.definition.is_empty() && !key.definition.ends_with('.'), "{}", key.name);
        assert!(!key.default.ends_with('.'), "{}", key.name);
        assert!(Path::new(DOCS).join(key.source).is_file(), "{}: {}", key.name, key.source);
        assert!(names.insert(key.name), "{} stands twice", key.name);
        for other in key.others {
            assert!(names.insert(other), "{other} stands twice");
        }
        let Some(flag) = key.flag else { continue };
        let short = flag.short.into_iter().chain(flag.silent).map(String::from);
        let other =
            flag.other.iter().flat_map(|(long, short)| [(*long).to_owned(), (*short).into()]);
        for name in short.chain(other).chain([flag.long.to_owned()]) {
            assert!(flags.insert(name.clone()), "--{name} stands twice");
        }
    }
}

/// The fields of the words of a load are the keys, no more and no less.
#[test]
fn the_list_is_what_is_read() {
    let nothing = serde_json::to_value(LoadWords::default()).unwrap();
    let known: BTreeSet<&str> = nothing.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(known, LOAD_KEYS.iter().map(|key| key.name).collect());
    assert_eq!(serde_json::from_value::<LoadWords>(nothing.clone()).unwrap(), LoadWords::default());
    let wrong = toml::from_str::<LoadWords>("none = 1").unwrap_err().to_string();
    assert!(wrong.contains("unknown field `none`"), "{wrong}");
}

#[test]
fn every_way_to_write_a_key_finds_it() {
    let keys = Keys::new(weigh_protocols::PROTOCOLS);
    for key in LOAD_KEYS {
        let found = keys.find(&key.whole()).unwrap();
        assert!(found.doc.contains(key.definition) && found.is_varied, "{}", key.name);
        let mut written = vec![key.whole()];
        written.extend(key.others.iter().map(|other| (*other).to_owned()));
        assert_eq!(keys.written(&key.whole()), written);
        assert!(written.iter().all(|way| keys.find(way).unwrap() == found), "{}", key.name);
    }
}

/// What a default says first is what a load has that says nothing of the key.
#[test]
fn defaults_are_true_and_values_come_back() {
    let carried = [Pattern::Request, Pattern::Deliver, Pattern::Poll, Pattern::Batch];
    let mut seen = 0;
    // That a window is left out is kept as such: what it means hangs on arrival and protocol.
    for key in LOAD_KEYS.iter().filter(|key| key.name != "window") {
        let first = key.default.split([';', ',', ' ']).next().unwrap_or_default();
        // The default of the pattern depends on the protocol.
        if key.name == "pattern" {
            continue;
        }
        let Ok(value) = key.kind.read_word(first) else { continue };
        let pattern = match key.name.split('_').next() {
            Some("poll") => Pattern::Poll,
            Some("batch") => Pattern::Batch,
            Some("subscribers" | "topology") => Pattern::Deliver,
            _ => Pattern::Request,
        };
        let mut said = Table::new();
        said.insert(key.name.to_owned(), value.clone());
        let words: LoadWords = said.clone().try_into().unwrap();
        assert_eq!(Table::try_from(&words).unwrap(), said, "{}", key.name);
        let sealed = key.name.starts_with("body.");
        let sealed = sealed.then(|| "sealed:readings".parse().unwrap());
        let body = BodyWords { source: sealed, ..BodyWords::default() };
        let plain = LoadWords { pattern: Some(pattern), body, ..LoadWords::default() };
        let mut with: Table = Table::try_from(&plain).unwrap();
        with.extend(said);
        let with: LoadWords = with.try_into().unwrap();
        let [without, with] = [plain, with].map(|words| words.decide("any", &carried).unwrap());
        assert_eq!(without, with, "{} is not {first} where it is left out", key.name);
        seen += 1;
    }
    assert!(seen >= 15, "{seen}");
}

#[test]
fn the_table_of_the_guide_is_current() {
    let path = Path::new(DOCS).join("guide/choosing-a-load.md");
    let stored = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = stored.split_once(BEGIN).expect("the begin of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let current = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("WEIGH_WRITE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    } else {
        assert!(stored == current, "run this test once with WEIGH_WRITE_DOCS=1 set");
    }
}

fn table() -> String {
    let mut table =
        "\n| key | option | is | if left out | in | reasons |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for key in LOAD_KEYS {
        let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
        let source =
            key.source.strip_prefix("guide/").map_or(format!("../{}", key.source), Into::into);
        table += &format!(
            "| {} | {} | {} | {} | {} | [{}]({source}) |\n",
            code(key.others.iter().map(|own| (*own).to_owned()).collect(), key.whole()),
            flags(key),
            cell(&key.meaning()),
            cell(key.default),
            key.unit,
            title(key.source),
        );
    }
    table + "\n"
}

fn code(others: Vec<String>, first: String) -> String {
    let all = [vec![first], others].concat();
    all.iter().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ")
}

fn flags(key: &LoadKey) -> String {
    let Some(flag) = key.flag else { return String::new() };
    let mut others: Vec<String> =
        flag.short.map(|_| format!("--{}", flag.long)).into_iter().collect();
    others.extend(
        flag.other.iter().flat_map(|(long, short)| [format!("-{short}"), format!("--{long}")]),
    );
    code(others, flag.typed())
}

/// `decision 22` for `decisions/0022-…`, `polling` for `guide/polling.md`.
fn title(source: &str) -> String {
    let file = Path::new(source).file_stem().unwrap().to_string_lossy();
    match source.strip_prefix("decisions/") {
        Some(name) => format!("decision {}", name[..4].trim_start_matches('0')),
        None => file.replace('-', " "),
    }
}
