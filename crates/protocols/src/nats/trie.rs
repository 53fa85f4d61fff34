//! Subscriptions by subject: a tree of tokens, in which a subject finds its subscriptions without
//! looking at the others.

use std::collections::HashMap;

use super::codec::subject::{FULL, ONE};

/// The tree; its values are numbers of subscriptions.
#[derive(Debug, Default)]
pub(super) struct Trie {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Box<[u8]>, Node>,
    /// Subscriptions whose last token is this one.
    here: Vec<u32>,
    /// Subscriptions to all that follows.
    full: Vec<u32>,
}

impl Trie {
    /// Adds a subscription.
    pub(super) fn insert(&mut self, filter: &[u8], id: u32) {
        let mut node = &mut self.root;
        for token in filter.split(|byte| *byte == b'.') {
            if token == FULL {
                node.full.push(id);
                return;
            }
            node = node.children.entry(token.into()).or_default();
        }
        node.here.push(id);
    }

    /// Takes a subscription away.
    pub(super) fn remove(&mut self, filter: &[u8], id: u32) {
        let mut tokens = filter.split(|byte| *byte == b'.');
        remove(&mut self.root, &mut tokens, id);
    }

    /// Appends the subscriptions to `subject`.
    pub(super) fn find(&self, subject: &[u8], found: &mut Vec<u32>) {
        find(&self.root, subject, found);
    }
}

/// Deep filters cost depth: a line has at most 4,096 bytes, so 2,048 tokens.
fn remove<'f>(node: &mut Node, tokens: &mut impl Iterator<Item = &'f [u8]>, id: u32) {
    let Some(token) = tokens.next() else {
        node.here.retain(|known| *known != id);
        return;
    };
    if token == FULL {
        node.full.retain(|known| *known != id);
        return;
    }
    if let Some(child) = node.children.get_mut(token) {
        remove(child, tokens, id);
        if child.is_empty() {
            node.children.remove(token);
        }
    }
}

fn find(node: &Node, rest: &[u8], found: &mut Vec<u32>) {
    found.extend_from_slice(&node.full);
    let end = rest.iter().position(|byte| *byte == b'.');
    let token = &rest[..end.unwrap_or(rest.len())];
    let mut follow = |child: &Node| match end {
        None => {
            found.extend_from_slice(&child.here);
        }
        Some(end) => find(child, &rest[end + 1..], found),
    };
    if let Some(child) = node.children.get(token) {
        follow(child);
    }
    if let Some(child) = node.children.get(ONE).filter(|_| token != ONE) {
        follow(child);
    }
}

impl Node {
    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.here.is_empty() && self.full.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::codec::subject;
    use super::*;

    fn found(trie: &Trie, subject: &str) -> Vec<u32> {
        let mut found = Vec::new();
        trie.find(subject.as_bytes(), &mut found);
        found.sort_unstable();
        found
    }

    #[test]
    fn subjects_find_their_subscriptions() {
        let mut trie = Trie::default();
        for (id, filter) in ["a.b", "a.*", "a.>", ">", "*.b", "a"].iter().enumerate() {
            trie.insert(filter.as_bytes(), id as u32);
        }
        assert_eq!(found(&trie, "a.b"), [0, 1, 2, 3, 4]);
        assert_eq!(found(&trie, "a"), [3, 5]);
        assert_eq!(found(&trie, "a.b.c"), [2, 3]);
        for (id, filter) in ["a.b", "a.*", "a.>", ">", "*.b", "a"].iter().enumerate() {
            trie.remove(filter.as_bytes(), id as u32);
        }
        assert!(trie.root.is_empty());
    }

    proptest! {
        #[test]
        fn it_finds_what_matches(
            filters in vec("[ab*](\\.[ab*]){0,3}(\\.>)?", 0..12),
            subject in "[ab](\\.[ab]){0,4}",
        ) {
            let mut trie = Trie::default();
            for (id, filter) in filters.iter().enumerate() {
                trie.insert(filter.as_bytes(), id as u32);
            }
            let is_in = |filter: &String| subject::matches(filter.as_bytes(), subject.as_bytes());
            let expected: Vec<u32> = (0..filters.len())
                .filter(|id| is_in(&filters[*id]))
                .map(|id| id as u32)
                .collect();
            prop_assert_eq!(found(&trie, &subject), expected);
        }
    }
}
