//! Which of the agents that are there take which rank, and why the others do not.

use std::collections::BTreeMap;

use super::discovery::Found;

/// A choice among the agents that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The agents, by rank.
    pub chosen: BTreeMap<u32, Found>,
    /// Ranks that no agent has.
    pub missing: Vec<u32>,
    /// Why agents were refused, a sentence each.
    pub refused: Vec<String>,
    /// Number of agents that are free but not needed.
    pub spare: usize,
}

/// Chooses agents for these ranks. Those with a rank of their own take it; the others fill the
/// gaps, in the order of their names.
pub fn choose(found: &[Found], ranks: &[u32], all: u32, version: &str) -> Choice {
    let mut choice = Choice::default();
    let mut any = Vec::new();
    for agent in found {
        let name = format!("agent {} on {}", agent.id, agent.host);
        if agent.version != version {
            choice.refused.push(format!(
                "{name} is of version {}, this is {version}; help: install the same on both",
                agent.version
            ));
            continue;
        }
        let Some(rank) = agent.rank else {
            any.push(agent);
            continue;
        };
        if rank >= all {
            let last = all.saturating_sub(1);
            choice.refused.push(format!("{name} has rank {rank}, expected 0 to {last}"));
        } else if let Some(other) = choice.chosen.get(&rank) {
            choice.refused.push(format!(
                "{name} has rank {rank}, which agent {} on {} has taken; help: give it another",
                other.id, other.host
            ));
        } else if ranks.contains(&rank) {
            choice.chosen.insert(rank, agent.clone());
        }
    }
    let mut any = any.into_iter();
    for rank in ranks {
        if choice.chosen.contains_key(rank) {
            continue;
        }
        match any.next() {
            Some(agent) => drop(choice.chosen.insert(*rank, agent.clone())),
            None => choice.missing.push(*rank),
        }
    }
    choice.spare = any.count();
    choice
}

/// Ranks as words: `rank 1`, `ranks 1, 3 and 4`.
pub fn named(ranks: &[u32]) -> String {
    match ranks {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(u32::to_string).collect();
            format!("ranks {} and {last}", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, rank: Option<u32>) -> Found {
        let (host, version) = (format!("host-{id}"), "1".to_owned());
        Found { id: id.to_owned(), rank, host, version }
    }

    #[test]
    fn agents_without_a_rank_fill_the_gaps() {
        let found = [agent("a", None), agent("b", Some(0)), agent("c", None), agent("d", None)];
        let choice = choose(&found, &[0, 1, 2], 3, "1");
        let ids: Vec<&str> = choice.chosen.values().map(|agent| agent.id.as_str()).collect();
        assert_eq!(ids, ["b", "a", "c"]);
        assert_eq!((choice.missing, choice.refused, choice.spare), (vec![], vec![], 1));
    }

    #[test]
    fn refusals_name_the_agent_and_the_reason() {
        let foreign = Found { version: "2".to_owned(), ..agent("f", Some(1)) };
        let found = [agent("a", Some(0)), agent("b", Some(0)), agent("c", Some(9)), foreign];
        let choice = choose(&found, &[0, 1, 2], 3, "1");
        assert_eq!(choice.missing, [1, 2]);
        let text = choice.refused.join("\n");
        assert!(text.contains("agent b on host-b has rank 0, which agent a"), "{text}");
        assert!(text.contains("rank 9, expected 0 to 2"), "{text}");
        assert!(text.contains("agent f on host-f is of version 2, this is 1"), "{text}");
    }

    #[test]
    fn only_ranks_that_are_asked_for_are_filled() {
        let found = [agent("a", Some(0)), agent("b", Some(2))];
        let choice = choose(&found, &[2], 3, "1");
        assert_eq!(choice.chosen.keys().copied().collect::<Vec<_>>(), [2]);
        assert!(choice.missing.is_empty());
        assert_eq!(named(&[1]), "rank 1");
        assert_eq!(named(&[1, 3, 4]), "ranks 1, 3 and 4");
    }
}
