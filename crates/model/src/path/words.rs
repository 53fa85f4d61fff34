//! A path in a plan: a preset or a file by its name, and single numbers.

use std::collections::BTreeMap;

use super::number::{NUMBERS, WHOLE, no_number};
use super::{Change, Direction, GIVEN, Path, PathError, check, number, preset};
use crate::units::{Bytes, Nanos};

/// Prefix of the keys of a path in a plan.
const PREFIX: &str = "path.";

impl Path {
    /// Returns the path that the keys of a case ask for; `None` if they ask for none. `base` is the
    /// value of the key `path`, a free path if there is no such key. A number of one direction
    /// overrides the same number of both.
    ///
    /// # Errors
    /// If a value is not a number of a path, or contradicts another.
    pub fn of_words<'w>(
        base: Option<Path>,
        words: impl IntoIterator<Item = (&'w str, &'w str)>,
    ) -> Result<Option<Path>, PathError> {
        let numbers: BTreeMap<&str, &str> = words
            .into_iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value)))
            .collect();
        if numbers.is_empty() {
            return Ok(base);
        }
        let told = |error: String| PathError { file: "path".to_owned(), error };
        let mut path = base.unwrap_or_else(Path::free);
        let change = |way| change_of(&numbers, way).map_err(told);
        let (given_up, given_down) = (change("up")?, change("down")?);
        if let Some(text) = numbers.get("mtu") {
            path.mtu = text.trim().parse().map_err(|_| {
                told(format!("mtu = {text}: type the bytes of the largest packet, such as 1400"))
            })?;
        }
        if let Some(text) = numbers.get("steps") {
            path.steps = number::parse_steps(text).map_err(told)?;
        }
        (path.up, path.down) = (path.up.with(&given_up), path.down.with(&given_down));
        let mtu = path.mtu;
        for direction in [&mut path.up, &mut path.down] {
            direction.queue = direction.queue.or_else(|| queue_of(direction, mtu));
        }
        let (mut up, mut down) = (path.up.clone(), path.down.clone());
        for step in &mut path.steps {
            for (now, change) in [(&mut up, &mut step.up), (&mut down, &mut step.down)] {
                *now = now.with(change);
                if now.queue.is_none() {
                    change.queue = queue_of(now, mtu);
                    now.queue = change.queue;
                }
            }
        }
        // A number that is not that of the file loses its source.
        path.sources.clear();
        if path.name != GIVEN {
            path.name += "-changed";
        }
        check::check(&path, &given_up, &given_down).map_err(told)?;
        Ok(Some(path))
    }

    /// Returns the plan keys and values that a value of `--path` means: `internet`, `my.toml`,
    /// `delay=30ms,loss=5%,rate=10Mbit`, or a name with numbers after it.
    ///
    /// # Errors
    /// If a part is neither, or an unknown number.
    pub fn keys_of(word: &str) -> Result<Vec<(String, String)>, PathError> {
        let wrong = |error| PathError { file: format!("--path {word}"), error };
        let mut keys = Vec::new();
        for (index, part) in word.split(',').enumerate() {
            match part.split_once('=') {
                None if index == 0 => keys.push(("path".to_owned(), part.trim().to_owned())),
                None => {
                    let fix = "type numbers as delay=30ms,loss=5%, and a name before them";
                    return Err(wrong(format!("{part:?} is not a number of a path: {fix}")));
                }
                Some((name, value)) => {
                    let name = name.trim();
                    if !is_number(name) {
                        return Err(wrong(no_number(name)));
                    }
                    let key = format!("{PREFIX}{name}");
                    if keys.iter().any(|(given, _)| *given == key) {
                        return Err(wrong(format!("{name} is there twice: leave one out")));
                    }
                    keys.push((key, value.trim().to_owned()));
                }
            }
        }
        Ok(keys)
    }

    /// A path that does nothing, on an Ethernet wire.
    pub fn free() -> Path {
        Path {
            name: GIVEN.to_owned(),
            title: "Path of the plan".to_owned(),
            about: "Numbers that the plan gives.".to_owned(),
            mtu: 1500,
            up: Direction::free(),
            down: Direction::free(),
            steps: Vec::new(),
            link: None,
            sources: BTreeMap::new(),
        }
    }

    /// Returns the path that a value of `--path` and of the key `path` names: a preset, or a file
    /// that ends in `.toml`. `read` reads the file.
    ///
    /// # Errors
    /// If there is no such preset, and whatever is wrong with the file.
    pub fn named(
        word: &str,
        read: impl FnOnce(&str) -> std::io::Result<String>,
    ) -> Result<Path, PathError> {
        if !word.ends_with(".toml") {
            return preset(word);
        }
        let text = read(word).map_err(|error| PathError {
            file: word.to_owned(),
            error: format!("cannot be read: {error}; name a file of a path, or a preset"),
        })?;
        Path::parse(word, &text)
    }
}

/// Returns the changes of one direction.
fn change_of(numbers: &BTreeMap<&str, &str>, way: &str) -> Result<Change, String> {
    let mut change = Change::default();
    for name in NUMBERS {
        let own = numbers.get(format!("{way}_{name}").as_str());
        if let Some(value) = own.or_else(|| numbers.get(name)) {
            number::put(&mut change, name, value)?;
        }
    }
    Ok(change)
}

/// The queue of a link whose rate is given and whose queue is not: what the link carries in
/// [`QUEUE_TIME`], and never less than [`QUEUE_PACKETS_MIN`] whole packets.
fn queue_of(direction: &Direction, mtu: u16) -> Option<Bytes> {
    let rate = u128::from(direction.rate?.0);
    let of_time = rate * u128::from(QUEUE_TIME.0) / 8 / 1_000_000_000;
    let packets = QUEUE_PACKETS_MIN * (u64::from(mtu) + direction.overhead.0);
    Some(Bytes(u64::try_from(of_time).unwrap_or(u64::MAX).max(packets)))
}

/// True if a path has a number of this name: `delay`, `up_delay`, `mtu`.
fn is_number(name: &str) -> bool {
    let of_way = name.strip_prefix("up_").or_else(|| name.strip_prefix("down_"));
    WHOLE.contains(&name) || NUMBERS.contains(&of_way.unwrap_or(name))
}

/// A queue without a given size holds the traffic of this time: like the queues of the presets, and
/// of home routers (chosen).
const QUEUE_TIME: Nanos = Nanos::from_millis(100);

/// The first window of a TCP connection (RFC 6928) fits into such a queue.
const QUEUE_PACKETS_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{BitRate, Jitter, Loss};

    #[test]
    fn numbers_stand_for_both_directions_or_for_one() {
        let words = [("path.delay", "10ms"), ("path.down_delay", "30ms"), ("load.rate", "1/s")];
        let path = Path::of_words(None, words).unwrap().unwrap();
        assert_eq!(path.up.delay, Nanos::from_millis(10));
        assert_eq!(path.down.delay, Nanos::from_millis(30));
        let internet = preset("internet").unwrap();
        let path = Path::of_words(Some(internet.clone()), [("path.up_loss", "1%")]).unwrap();
        let path = path.unwrap();
        assert_eq!(path.up.delay, internet.up.delay);
        assert_eq!(path.up.loss.long_run(), 0.01);
        assert_eq!(path.down, internet.down);
        assert_eq!(Path::of_words(None, [("load.size", "1B")]), Ok(None));
    }

    #[test]
    fn a_rate_that_a_step_gives_has_a_queue_too() {
        let words = [("path.steps", "10s loss=100%; 13s loss=1% rate=1Mbit/s; 20s rate=2Mbit/s")];
        let path = Path::of_words(None, words).unwrap().unwrap();
        let queues: Vec<_> =
            path.over_time(crate::path::Way::Up).into_iter().map(|(_, it)| it.queue).collect();
        let first = Some(Bytes(QUEUE_PACKETS_MIN * 1514));
        assert_eq!(queues, [None, None, first, first]);
        let named = Path::of_words(Some(preset("lte").unwrap()), [("path.mtu", "1400")]);
        assert_eq!(named.unwrap().unwrap().name, "lte-changed");
    }

    #[test]
    fn what_is_no_path_is_told() {
        let told = |key, value| Path::of_words(None, [(key, value)]).unwrap_err().to_string();
        assert!(told("path.queue", "64KB").contains("rate"), "a queue needs a rate");
        assert!(told("path.mtu", "575").contains("type 576"));
        assert!(told("path.loss", "0.01").contains("type 1%"));
        let error = Path::named("nowhere.toml", |_| Err(std::io::ErrorKind::NotFound.into()));
        assert!(error.unwrap_err().to_string().contains("cannot be read"));
        assert!(Path::named("moon", |_| unreachable!()).unwrap_err().error.contains("internet"));
    }

    #[test]
    fn a_line_of_words_is_a_path() {
        let read = |word: &str| {
            let keys = Path::keys_of(word).unwrap();
            let words = keys.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            let base = words.clone().find(|(key, _)| *key == "path");
            let base = base.map(|(_, name)| preset(name).unwrap());
            Path::of_words(base, words).unwrap().unwrap()
        };
        let path = read("delay=30ms,loss=5%,rate=10Mbit");
        assert_eq!(path.up, path.down);
        assert_eq!(path.up.delay, Nanos::from_millis(30));
        assert_eq!(path.up.loss, Loss::Independent(crate::path::Share(0.05)));
        assert_eq!(
            (path.up.rate, path.up.queue),
            (Some(BitRate(10_000_000)), Some(Bytes(125_000)))
        );
        let path = read("rate=64kbit/s");
        assert_eq!(path.up.queue, Some(Bytes(15_140)), "ten packets");
        let path = read("lte,down_jitter=normal:2ms,mtu=1400,steps=5s loss=100%; 8s loss=0%");
        assert_eq!(path.down.jitter, Jitter::Normal { deviation: Nanos::from_millis(2) });
        assert_eq!((path.mtu, path.steps.len()), (1400, 2));
        for (word, told) in [
            ("delay=30ms,los=5%", "unknown number \"los\""),
            ("delay=30ms,internet", "is not a number"),
            ("loss=1%,loss=2%", "twice"),
        ] {
            assert!(Path::keys_of(word).unwrap_err().to_string().contains(told), "{word}");
        }
    }
}
