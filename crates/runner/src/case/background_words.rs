//! Parses `--background` and adds the background to every draft.

use weigh_model::background::Background;
use weigh_plan::Case;
use weigh_plan::background::PREFIX;
use weigh_plan::case::BackgroundChoice;
use weigh_plan::keys::Keys;
use weigh_plan::kind::Wrong;
use weigh_protocols as registry;

use crate::case::known::Known;
use crate::exit::Stop;

/// Returns each draft without and with the background that `--background` describes.
///
/// # Errors
/// An invalid word, as a plan would report it.
pub fn with_background(
    words: &str,
    drafts: Vec<Case>,
    known: &Known<'_>,
) -> Result<Vec<Case>, Stop> {
    let mut all = Vec::new();
    for draft in drafts {
        let asked = of_words(words, &draft, known)
            .map_err(|said| Stop::usage(format!("--background {words:?}: {said}")))?;
        all.push(Case { background: BackgroundChoice::Off, ..draft.clone() });
        all.push(Case { background: BackgroundChoice::On(Box::new(asked)), ..draft });
    }
    Ok(all)
}

/// Parses the words of a background: its protocol, then `key=value` pairs.
fn of_words(words: &str, draft: &Case, known: &Known<'_>) -> Result<Background, String> {
    let language = Keys::new(registry::PROTOCOLS);
    let mut words = words.split_whitespace();
    let protocol = words.next().ok_or("name a protocol, such as mqtt")?;
    let mut text = format!(
        "protocol = {:?}\ntarget = {:?}\n\"background.protocol\" = {protocol:?}\n",
        draft.protocol, draft.target
    );
    for word in words {
        let wrong = |wrong: Wrong| format!("{word}: {wrong}");
        let (key, value) = word.split_once('=').ok_or_else(|| {
            format!("{word}: the value is missing: type KEY=VALUE, such as rate=1000/s")
        })?;
        let own = language.find(&format!("{PREFIX}{key}"));
        let key = own.or_else(|_| language.find(&format!("{PREFIX}load.{key}"))).map_err(wrong)?;
        let value = key.kind.read_word(value).map_err(wrong)?;
        text += &format!("{:?} = {value}\n", key.name);
    }
    let resolved = weigh_plan::read(&text, known).and_then(|plan| plan.resolve("background"));
    let plan = resolved.map_err(|problems| {
        let said = problems.iter().map(|one| format!("{}\nhelp: {}", one.text, one.fix));
        said.collect::<Vec<_>>().join("\n")
    });
    plan?.plan.background.ok_or_else(|| "it describes no background".to_owned())
}
