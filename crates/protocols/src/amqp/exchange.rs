//! Exchanges of the reference server: which queues a message goes to (AMQP 0-9-1, section 3.1).

use std::collections::BTreeMap;

/// An exchange and its bindings.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) kind: ExchangeKind,
    pub(super) is_durable: bool,
    /// Queues by the key of their binding.
    bindings: BTreeMap<Box<str>, Vec<u32>>,
}

/// Type of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    /// The key of the message is the key of the binding.
    Direct,
    /// Every message goes to every queue.
    Fanout,
    /// Words of the key match a pattern.
    Topic,
}

impl ExchangeKind {
    /// The type of this name.
    pub(super) fn of(name: &str) -> Option<ExchangeKind> {
        match name {
            "direct" => Some(ExchangeKind::Direct),
            "fanout" => Some(ExchangeKind::Fanout),
            "topic" => Some(ExchangeKind::Topic),
            _ => None,
        }
    }
}

impl Exchange {
    pub(super) fn new(kind: ExchangeKind, is_durable: bool) -> Exchange {
        Exchange { kind, is_durable, bindings: BTreeMap::new() }
    }

    pub(super) fn bind(&mut self, key: &str, queue: u32) {
        let bound = self.bindings.entry(key.into()).or_default();
        if !bound.contains(&queue) {
            bound.push(queue);
        }
    }

    pub(super) fn unbind(&mut self, key: &str, queue: u32) {
        if let Some(bound) = self.bindings.get_mut(key) {
            bound.retain(|own| *own != queue);
            if bound.is_empty() {
                self.bindings.remove(key);
            }
        }
    }

    /// Removes all bindings of a queue.
    pub(super) fn forget(&mut self, queue: u32) {
        self.bindings.retain(|_, bound| {
            bound.retain(|own| *own != queue);
            !bound.is_empty()
        });
    }

    /// True if no queue is bound.
    pub(super) fn is_unused(&self) -> bool {
        self.bindings.is_empty()
    }

    /// Appends the queues of a message, each once.
    pub(super) fn route(&self, key: &str, queues: &mut Vec<u32>) {
        match self.kind {
            ExchangeKind::Direct => {
                queues.extend(self.bindings.get(key).into_iter().flatten());
                return;
            }
            ExchangeKind::Fanout => queues.extend(self.bindings.values().flatten()),
            ExchangeKind::Topic => {
                let matching = self.bindings.iter().filter(|(pattern, _)| matches(pattern, key));
                queues.extend(matching.flat_map(|(_, bound)| bound));
            }
        }
        queues.sort_unstable();
        queues.dedup();
    }
}

/// True if the words of `key` match a pattern, in which `*` is one word and `#` any number of them
/// (section 3.1.3.3).
pub(super) fn matches(pattern: &str, key: &str) -> bool {
    let words: Vec<&str> = words(key).collect();
    // Row by row of the table of prefixes: no input takes longer than pattern times key.
    let mut before = vec![false; words.len() + 1];
    before[0] = true;
    for part in self::words(pattern) {
        let mut row = vec![part == "#" && before[0]];
        for (at, word) in words.iter().enumerate() {
            row.push(match part {
                "#" => before[at + 1] || row[at],
                "*" => before[at],
                part => before[at] && part == *word,
            });
        }
        before = row;
    }
    before[words.len()]
}

/// Words between dots; an empty text has none.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('.').take(if text.is_empty() { 0 } else { usize::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_specification_says() {
        for (pattern, key, is_match) in [
            // The examples of section 3.1.3.3.
            ("*.stock.#", "usd.stock", true),
            ("*.stock.#", "eur.stock.db", true),
            ("*.stock.#", "stock.nasdaq", false),
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("*", "a", true),
            ("*", "a.b", false),
            ("#.a", "a", true),
            ("#.a.#", "b.a.a.c", true),
            ("a.*.c", "a.b.c", true),
            ("a.*.c", "a.c", false),
            ("", "", true),
            ("", "a", false),
            ("weigh.7.*", "weigh.7.12", true),
            ("weigh.7.*", "weigh.71.2", false),
        ] {
            assert_eq!(matches(pattern, key), is_match, "{pattern} {key}");
        }
    }

    #[test]
    fn each_queue_gets_a_message_once() {
        let route = |exchange: &Exchange, key: &str| {
            let mut queues = Vec::new();
            exchange.route(key, &mut queues);
            queues
        };
        let mut topic = Exchange::new(ExchangeKind::Topic, true);
        [("a.*", 1), ("a.#", 1), ("b", 2), ("#", 3), ("#", 3)]
            .iter()
            .for_each(|(key, queue)| topic.bind(key, *queue));
        assert_eq!(route(&topic, "a.b"), [1, 3]);
        topic.unbind("a.*", 1);
        assert_eq!(route(&topic, "a.b"), [1, 3]);
        topic.forget(3);
        assert_eq!(route(&topic, "b"), [2]);
        let mut direct = Exchange::new(ExchangeKind::Direct, true);
        direct.bind("a", 1);
        direct.bind("a", 2);
        assert_eq!((route(&direct, "a"), route(&direct, "b")), (vec![1, 2], vec![]));
        let mut fanout = Exchange::new(ExchangeKind::Fanout, true);
        assert!(fanout.is_unused());
        fanout.bind("x", 4);
        assert_eq!(route(&fanout, "anything"), [4]);
    }
}
