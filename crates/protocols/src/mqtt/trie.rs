//! Subscriptions by topic: a tree of topic levels, in which `+` and `#` are levels like others
//! (no topic can contain them).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::codec::{Options, Qos};
use super::topic;

/// All subscriptions of a broker.
#[derive(Debug, Default)]
pub(super) struct Trie {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Box<str>, Node>,
    plain: Vec<Subscription>,
    groups: Vec<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Subscription {
    session: u32,
    options: Options,
    /// Subscription identifier, 0 if it has none.
    id: u32,
}

#[derive(Debug)]
struct Group {
    name: Box<str>,
    turn: Arc<AtomicUsize>,
    members: Vec<Subscription>,
}

/// Receivers of the messages of one topic.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// Each of these gets a copy.
    pub(super) direct: Vec<Route>,
    /// Of each of these groups one member gets a copy.
    pub(super) shared: Vec<Shared>,
}

/// One session's way of getting the messages of a topic, all its subscriptions together.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) session: u32,
    pub(super) qos: Qos,
    pub(super) no_local: bool,
    pub(super) retain_as_published: bool,
    pub(super) ids: Box<[u32]>,
}

/// A group of a shared subscription.
#[derive(Debug)]
pub(super) struct Shared {
    /// Whose turn it is, modulo the number of members.
    pub(super) turn: Arc<AtomicUsize>,
    pub(super) members: Vec<Route>,
}

impl Trie {
    /// Adds or replaces a subscription; true if the session did not have it.
    pub(super) fn insert(&mut self, filter: &str, session: u32, options: Options, id: u32) -> bool {
        let (group, filter) = apart(filter);
        let mut node = &mut self.root;
        for level in filter.split('/') {
            if !node.children.contains_key(level) {
                node.children.insert(level.into(), Node::default());
            }
            let Some(child) = node.children.get_mut(level) else { return false };
            node = child;
        }
        let members = match group {
            None => &mut node.plain,
            Some(name) => {
                let known = node.groups.iter().position(|group| &*group.name == name);
                let at = known.unwrap_or_else(|| {
                    let (turn, members) = (Arc::default(), Vec::new());
                    node.groups.push(Group { name: name.into(), turn, members });
                    node.groups.len() - 1
                });
                &mut node.groups[at].members
            }
        };
        let subscription = Subscription { session, options, id };
        match members.iter_mut().find(|member| member.session == session) {
            Some(member) => {
                *member = subscription;
                false
            }
            None => {
                members.push(subscription);
                true
            }
        }
    }

    /// Takes a subscription away; false if the session did not have it.
    pub(super) fn remove(&mut self, filter: &str, session: u32) -> bool {
        let (group, filter) = apart(filter);
        let levels: Vec<&str> = filter.split('/').collect();
        remove_from(&mut self.root, &levels, group, session)
    }

    /// Finds the receivers of messages on `topic` (MQTT 5.0, sections 4.7 and 3.3.4).
    pub(super) fn routes(&self, topic: &str) -> Routes {
        let levels: Vec<&str> = topic.split('/').collect();
        let mut found = Vec::new();
        find(&self.root, &levels, !topic.starts_with('$'), &mut found);
        let mut routes = Routes::default();
        let mut place: HashMap<u32, usize> = HashMap::new();
        for node in found {
            for subscription in &node.plain {
                match place.get(&subscription.session) {
                    Some(&at) => merge(&mut routes.direct[at], subscription),
                    None => {
                        place.insert(subscription.session, routes.direct.len());
                        routes.direct.push(route(subscription));
                    }
                }
            }
            routes.shared.extend(node.groups.iter().map(|group| Shared {
                turn: Arc::clone(&group.turn),
                members: group.members.iter().map(route).collect(),
            }));
        }
        routes
    }
}

/// True if `filter` has no more levels than the tree takes.
pub(super) fn is_shallow(filter: &str) -> bool {
    filter.split('/').count() <= LEVELS_MAX
}

fn apart(filter: &str) -> (Option<&str>, &str) {
    match topic::shared(filter) {
        Some((group, inner)) => (Some(group), inner),
        None => (None, filter),
    }
}

fn remove_from(node: &mut Node, levels: &[&str], group: Option<&str>, session: u32) -> bool {
    let Some((level, deeper)) = levels.split_first() else {
        return remove_here(node, group, session);
    };
    let Some(child) = node.children.get_mut(*level) else { return false };
    let was_there = remove_from(child, deeper, group, session);
    if child.children.is_empty() && child.plain.is_empty() && child.groups.is_empty() {
        node.children.remove(*level);
    }
    was_there
}

fn remove_here(node: &mut Node, group: Option<&str>, session: u32) -> bool {
    let members = match group {
        None => &mut node.plain,
        Some(name) => match node.groups.iter_mut().find(|group| &*group.name == name) {
            Some(group) => &mut group.members,
            None => return false,
        },
    };
    let Some(at) = members.iter().position(|member| member.session == session) else {
        return false;
    };
    members.remove(at);
    node.groups.retain(|group| !group.members.is_empty());
    true
}

/// Collects the nodes whose filters match; `takes_wildcards` is false at the first level of
/// topics that begin with `$` (section 4.7.2).
fn find<'t>(node: &'t Node, levels: &[&str], takes_wildcards: bool, found: &mut Vec<&'t Node>) {
    if takes_wildcards && let Some(rest) = node.children.get("#") {
        found.push(rest);
    }
    let Some((level, deeper)) = levels.split_first() else {
        found.push(node);
        return;
    };
    if takes_wildcards && let Some(any) = node.children.get("+") {
        find(any, deeper, true, found);
    }
    if let Some(child) = node.children.get(*level) {
        find(child, deeper, true, found);
    }
}

fn route(subscription: &Subscription) -> Route {
    Route {
        session: subscription.session,
        qos: subscription.options.qos,
        no_local: subscription.options.no_local,
        retain_as_published: subscription.options.retain_as_published,
        ids: if subscription.id == 0 { Box::default() } else { Box::new([subscription.id]) },
    }
}

/// Overlapping subscriptions give one copy with the highest QoS and all identifiers
/// (section 3.3.4).
fn merge(route: &mut Route, subscription: &Subscription) {
    route.qos = route.qos.max(subscription.options.qos);
    route.no_local &= subscription.options.no_local;
    route.retain_as_published |= subscription.options.retain_as_published;
    if subscription.id != 0 {
        route.ids = route.ids.iter().copied().chain([subscription.id]).collect();
    }
}

/// Most levels of a filter; the same limit as Mosquitto's. Without one a filter of slashes
/// would make the tree deeper than a thread's stack.
const LEVELS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_stats::random::Random;

    /// The tree against the plain definition, over random filters and topics.
    #[test]
    fn finds_what_the_definition_matches() {
        let mut random = Random::new(7);
        let levels = ["a", "b", "", "$x", "+", "#"];
        let mut text = |names: u64| {
            let count = 1 + random.below(4);
            let parts: Vec<&str> =
                (0..count).map(|_| levels[random.below(names) as usize]).collect();
            parts.join("/")
        };
        let mut trie = Trie::default();
        let mut filters = Vec::new();
        while filters.len() < 300 {
            let filter = text(6);
            if topic::is_filter(&filter) && !filters.contains(&filter) {
                let options = Options::plain(Qos::AtMostOnce);
                assert!(trie.insert(&filter, filters.len() as u32, options, 0));
                filters.push(filter);
            }
        }
        for _ in 0..500 {
            let name = text(4);
            if name.is_empty() {
                continue;
            }
            let expected: Vec<u32> = (0..filters.len())
                .filter(|at| topic::matches(&filters[*at], &name))
                .map(|at| at as u32)
                .collect();
            let mut found: Vec<u32> =
                trie.routes(&name).direct.iter().map(|route| route.session).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{name}");
        }
        for (at, filter) in filters.iter().enumerate() {
            assert!(trie.remove(filter, at as u32) && !trie.remove(filter, at as u32));
        }
        assert!(trie.root.children.is_empty(), "nothing is left behind");
    }
}
