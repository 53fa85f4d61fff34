//! How many shards agents carry, and which of them run where: in proportion to their cores.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::facts::AgentFacts;

/// The shards that keep these agents busy: one for each core but one of each machine, which its
/// kernel needs for the network; and one for each agent at least. Agents on one machine share its
/// cores: whether they have the same ones is not known.
pub fn carried(agents: &[&AgentFacts]) -> u32 {
    let machine = |agent: &AgentFacts| agent.place.split('/').next().unwrap_or("").to_owned();
    let mut machines: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for (index, agent) in agents.iter().enumerate() {
        // One that does not say where it is stands for itself.
        let name = Some(machine(agent)).filter(|name| !name.is_empty());
        let (cores, count) = machines.entry(name.unwrap_or(index.to_string())).or_default();
        *cores = (*cores).max(agent.host.cores);
        *count += 1;
    }
    machines.into_values().map(|(cores, count)| cores.saturating_sub(1).max(count)).sum()
}

/// The shards of each agent, contiguous and at least one each; `None` if there are fewer shards
/// than agents. The same agents get the same shards whenever they are asked.
pub fn place(agents: &[&AgentFacts], shards: u32) -> Option<Vec<Range<u32>>> {
    let agents_count = u32::try_from(agents.len()).ok()?;
    if agents_count == 0 || shards < agents_count {
        return None;
    }
    let mut counts = vec![1; agents.len()];
    for _ in agents_count..shards {
        let has_room = |index: &usize| u64::from(counts[*index]) < room(agents[*index]);
        // Too few descriptors on every host is for the hosts to say, with the number.
        let index = least_loaded(agents, &counts, has_room)
            .or_else(|| least_loaded(agents, &counts, |_| true))?;
        counts[index] += 1;
    }
    let mut first = 0;
    let range = |count: u32| {
        let range = first..first + count;
        first = range.end;
        range
    };
    Some(counts.into_iter().map(range).collect())
}

/// The agent with the fewest shards for each core after one more; the first of several.
fn least_loaded(
    agents: &[&AgentFacts],
    counts: &[u32],
    may: impl Fn(&usize) -> bool,
) -> Option<usize> {
    let cores = |index: usize| u64::from(agents[index].host.cores.max(1));
    let more = |index: usize| u64::from(counts[index]) + 1;
    (0..agents.len()).filter(may).min_by(|&a, &b| {
        // Fractions compared without dividing.
        (more(a) * cores(b)).cmp(&(more(b) * cores(a))).then(a.cmp(&b))
    })
}

/// The shards for which a host has descriptors, where they share the limit of the process.
fn room(agent: &AgentFacts) -> u64 {
    agent.descriptors / DESCRIPTORS_PER_SHARD
}

const DESCRIPTORS_PER_SHARD: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(cores: u32, descriptors: u64) -> AgentFacts {
        let mut facts = AgentFacts { descriptors, ..AgentFacts::default() };
        facts.host.cores = cores;
        facts
    }

    fn counts(agents: &[AgentFacts], shards: u32) -> Vec<u32> {
        let agents: Vec<_> = agents.iter().collect();
        let placed = place(&agents, shards).unwrap();
        assert_eq!((placed[0].start, placed.last().unwrap().end), (0, shards));
        assert!(placed.windows(2).all(|pair| pair[0].end == pair[1].start));
        placed.iter().map(|range| range.end - range.start).collect()
    }

    #[test]
    fn every_machine_keeps_a_core_for_its_network() {
        let on = |place: &str, cores| AgentFacts { place: place.to_owned(), ..agent(cores, 1) };
        let carried = |agents: &[AgentFacts]| carried(&agents.iter().collect::<Vec<_>>());
        assert_eq!(carried(&[on("a/1", 8), on("b/1", 4)]), 7 + 3);
        assert_eq!(carried(&[on("a/1", 1), on("b/1", 2)]), 1 + 1);
        assert_eq!(carried(&[on("a/1", 8), on("a/2", 8), on("b/1", 4)]), 7 + 3, "two share 8");
        assert_eq!(carried(&[on("a/1", 2), on("a/2", 2), on("a/3", 2)]), 3, "one each");
        assert_eq!(carried(&[on("", 4), on("", 4)]), 3 + 3);
        assert_eq!(carried(&[]), 0);
    }

    #[test]
    fn shards_follow_the_cores() {
        let many = 1 << 20;
        assert_eq!(counts(&[agent(4, many), agent(4, many)], 8), [4, 4]);
        assert_eq!(counts(&[agent(2, many), agent(6, many)], 8), [2, 6]);
        assert_eq!(counts(&[agent(8, many), agent(1, many), agent(1, many)], 10), [8, 1, 1]);
        assert_eq!(counts(&[agent(4, many), agent(4, many), agent(4, many)], 4), [2, 1, 1]);
        assert_eq!(counts(&[agent(64, many), agent(1, many)], 2), [1, 1]);
        assert_eq!(counts(&[agent(0, 0), agent(0, 0)], 3), [2, 1]);
    }

    #[test]
    fn few_descriptors_are_room_for_few_shards() {
        assert_eq!(counts(&[agent(4, 8_192), agent(4, 1 << 20)], 8), [2, 6]);
        assert_eq!(counts(&[agent(4, 1_024), agent(4, 1_024)], 8), [4, 4], "no host has any");
    }

    #[test]
    fn every_agent_runs_a_shard_or_there_is_no_placement() {
        let (a, b) = (agent(1, 1), agent(1, 1));
        assert_eq!(place(&[&a, &b], 1), None);
        assert_eq!(place(&[], 1), None);
        let whole = place(&[&a], 1).unwrap();
        assert_eq!((whole.len(), &whole[0]), (1, &(0..1)));
    }
}
