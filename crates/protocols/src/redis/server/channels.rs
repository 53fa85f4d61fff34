//! Channels and who subscribes to them.

use std::collections::HashMap;

use super::place::Place;

/// Subscriptions of all shards.
#[derive(Default)]
pub(super) struct Channels {
    by_name: HashMap<Box<[u8]>, Vec<Subscriber>>,
    patterns: Vec<Listening>,
    /// Names and patterns of each subscriber.
    of: HashMap<Place, Vec<Subscription>>,
}

/// A subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subscriber {
    pub(super) place: Place,
    pub(super) is_resp3: bool,
}

/// A subscriber of a pattern.
struct Listening {
    pattern: Box<[u8]>,
    subscriber: Subscriber,
}

/// A name or a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) name: Box<[u8]>,
    pub(super) is_pattern: bool,
}

impl Channels {
    /// Subscribes; returns the number of subscriptions that the place has, `None` above the limit.
    pub(super) fn subscribe(
        &mut self,
        subscriber: Subscriber,
        name: &[u8],
        is_pattern: bool,
    ) -> Option<usize> {
        let own = self.of.entry(subscriber.place).or_default();
        let known = own.iter().any(|one| *one.name == *name && one.is_pattern == is_pattern);
        if !known && own.len() >= SUBSCRIPTIONS_MAX {
            return None;
        }
        if known {
            return Some(own.len());
        }
        own.push(Subscription { name: name.into(), is_pattern });
        let count = own.len();
        match is_pattern {
            true => self.patterns.push(Listening { pattern: name.into(), subscriber }),
            false => self.by_name.entry(name.into()).or_default().push(subscriber),
        }
        Some(count)
    }

    /// Ends one subscription; returns the number of those that are left.
    pub(super) fn unsubscribe(&mut self, place: Place, name: &[u8], is_pattern: bool) -> usize {
        self.leave(place, name, is_pattern);
        let Some(own) = self.of.get_mut(&place) else { return 0 };
        own.retain(|one| *one.name != *name || one.is_pattern != is_pattern);
        let left = own.len();
        if left == 0 {
            self.of.remove(&place);
        }
        left
    }

    /// Ends all subscriptions of a place.
    pub(super) fn remove(&mut self, place: Place) {
        for one in self.of.remove(&place).unwrap_or_default() {
            self.leave(place, &one.name, one.is_pattern);
        }
    }

    fn leave(&mut self, place: Place, name: &[u8], is_pattern: bool) {
        if is_pattern {
            self.patterns.retain(|one| one.subscriber.place != place || *one.pattern != *name);
            return;
        }
        let Some(subscribers) = self.by_name.get_mut(name) else { return };
        subscribers.retain(|one| one.place != place);
        if subscribers.is_empty() {
            self.by_name.remove(name);
        }
    }

    /// Number of subscriptions of a place.
    pub(super) fn count(&self, place: Place) -> usize {
        self.of.get(&place).map_or(0, Vec::len)
    }

    /// Names that a place subscribes to.
    pub(super) fn names(&self, place: Place, is_pattern: bool) -> Vec<Box<[u8]>> {
        let own = self.of.get(&place).into_iter().flatten();
        own.filter(|one| one.is_pattern == is_pattern).map(|one| one.name.clone()).collect()
    }

    /// Subscribers of a channel.
    pub(super) fn of_name(&self, name: &[u8]) -> &[Subscriber] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Subscribers by pattern, with the pattern.
    pub(super) fn of_patterns(&self, name: &[u8]) -> impl Iterator<Item = (&[u8], Subscriber)> {
        let fits = move |one: &&Listening| is_match(&one.pattern, name);
        self.patterns.iter().filter(fits).map(|one| (&*one.pattern, one.subscriber))
    }
}

/// True if a pattern of PSUBSCRIBE matches: `*`, `?`, `[a-c]` and `\`.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut letter) = (0, 0);
    // Where to continue if what follows the last star does not match.
    let mut star: Option<(usize, usize)> = None;
    while letter < name.len() {
        let step = pattern.get(at).and_then(|byte| match byte {
            b'*' => Some((0, at + 1)),
            _ => one(&pattern[at..], name[letter]).map(|used| (1, at + used)),
        });
        match (step, star) {
            (Some((0, next)), _) => {
                star = Some((next, letter));
                at = next;
            }
            (Some((_, next)), _) => (at, letter) = (next, letter + 1),
            (None, Some((after, from))) => {
                star = Some((after, from + 1));
                (at, letter) = (after, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Bytes of the pattern's first element if it matches a letter.
fn one(pattern: &[u8], letter: u8) -> Option<usize> {
    match *pattern {
        [b'?', ..] => Some(1),
        [b'\\', byte, ..] => (byte == letter).then_some(2),
        [b'[', ref rest @ ..] => {
            let end = rest.iter().position(|byte| *byte == b']')?;
            let (class, is_not) = match rest[..end].strip_prefix(b"^") {
                Some(class) => (class, true),
                None => (&rest[..end], false),
            };
            (class_has(class, letter) != is_not).then_some(end + 2)
        }
        [byte, ..] => (byte == letter).then_some(1),
        [] => None,
    }
}

fn class_has(class: &[u8], letter: u8) -> bool {
    let mut rest = class;
    loop {
        match *rest {
            [low, b'-', high, ref after @ ..] => {
                if (low..=high).contains(&letter) {
                    return true;
                }
                rest = after;
            }
            [byte, ref after @ ..] => {
                if byte == letter {
                    return true;
                }
                rest = after;
            }
            [] => return false,
        }
    }
}

/// Subscriptions of one connection.
const SUBSCRIPTIONS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use weigh_model::server::ConnectionId;

    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, name, is_fit) in [
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[a-c]llo", "hello", false),
            ("h[^a-c]llo", "hello", true),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("", "", true),
            ("[", "x", false),
        ] {
            assert_eq!(is_match(pattern.as_bytes(), name.as_bytes()), is_fit, "{pattern} {name}");
        }
    }

    #[test]
    fn what_a_place_subscribes_to_ends_with_it() {
        let place = |number| Place { shard: 0, connection: ConnectionId(number), serial: 1 };
        let mut channels = Channels::default();
        for number in 0..2 {
            let subscriber = Subscriber { place: place(number), is_resp3: false };
            assert_eq!(channels.subscribe(subscriber, b"news", false), Some(1));
            assert_eq!(channels.subscribe(subscriber, b"news", false), Some(1));
            assert_eq!(channels.subscribe(subscriber, b"n*", true), Some(2));
        }
        assert_eq!(
            (channels.of_name(b"news").len(), channels.of_patterns(b"news").count()),
            (2, 2)
        );
        channels.remove(place(0));
        assert_eq!((channels.of_name(b"news").len(), channels.of_patterns(b"nx").count()), (1, 1));
        assert_eq!(channels.unsubscribe(place(1), b"news", false), 1);
        assert_eq!((channels.count(place(1)), channels.unsubscribe(place(1), b"n*", true)), (1, 0));
        assert!(channels.of.is_empty() && channels.by_name.is_empty());
    }
}
