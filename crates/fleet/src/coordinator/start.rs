//! The start of a trial: named so far ahead that every agent can hear and acknowledge it, and
//! confirmed once all have. Unless all have in time, it is called off.

use std::time::Duration;

use weigh_model::Nanos;

use super::hand::STRANGER;
use crate::messages::Answer;

/// How far the agreement on a start is.
pub struct Starting {
    agents: usize,
    named: Option<Named>,
}

struct Named {
    start: Nanos,
    lead: Duration,
    /// Agents must have acknowledged by then: the confirmation has as long again.
    until: Nanos,
    has_acknowledged: Vec<bool>,
}

impl Starting {
    /// No start is named yet.
    pub fn new(agents: usize) -> Starting {
        Starting { agents, named: None }
    }

    /// True once a start is named.
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Names the start: at least 1 s ahead, and 20 of the longest round trips.
    pub fn name(&mut self, now: Nanos, round_trip: Nanos) -> Nanos {
        let lead = LEAD_MIN.max(Nanos(round_trip.0.saturating_mul(ROUND_TRIPS)));
        let (start, until) = (now + lead, now + Nanos(lead.0 / 2));
        let lead = Duration::from_nanos(lead.0);
        let has_acknowledged = vec![false; self.agents];
        self.named = Some(Named { start, lead, until, has_acknowledged });
        start
    }

    /// The start; 0 before it is named.
    pub fn start(&self) -> Nanos {
        self.named.as_ref().map_or(Nanos(0), |named| named.start)
    }

    /// How long to wait for an answer about it.
    pub fn patience(&self) -> Duration {
        self.named.as_ref().map_or(Duration::from_secs(1), |named| named.lead / 2)
    }

    /// Takes an agent's answer. True if it was the last one that was missing.
    ///
    /// # Errors
    /// Why the agent cannot start then.
    pub fn take_answer(
        &mut self,
        rank: u32,
        answer: Result<Answer, String>,
        now: Nanos,
    ) -> Result<bool, String> {
        let Some(named) = &mut self.named else { return Ok(false) };
        let slack_ns = match answer? {
            Answer::Slack { ns } => ns,
            Answer::Refused(reason) => return Err(reason),
            Answer::Stranger => return Err(STRANGER.to_owned()),
            _ => return Err("its answer is not understood".to_owned()),
        };
        // With less, its clock or the bus is not what the start was named by.
        let least = named.lead.as_nanos() as i64 / 4;
        if slack_ns < least || now > named.until {
            let slack_ms = slack_ns / 1_000_000;
            return Err(format!("{slack_ms} ms were left when it heard of the start"));
        }
        if let Some(has_acknowledged) = named.has_acknowledged.get_mut(rank as usize) {
            *has_acknowledged = true;
        }
        Ok(named.has_acknowledged.iter().all(|has| *has))
    }

    /// The agents that have not acknowledged in time; `None` while there is time, or if all have.
    pub fn overdue(&self, now: Nanos) -> Option<Vec<u32>> {
        let named = self.named.as_ref().filter(|named| now > named.until)?;
        let missing = named.has_acknowledged.iter().zip(0..).filter(|(has, _)| !**has);
        let missing: Vec<u32> = missing.map(|(_, rank)| rank).collect();
        (!missing.is_empty()).then_some(missing)
    }
}

const LEAD_MIN: Nanos = Nanos::from_secs(1);
const ROUND_TRIPS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn slack(ms: i64) -> Result<Answer, String> {
        Ok(Answer::Slack { ns: ms * 1_000_000 })
    }

    #[test]
    fn a_start_is_far_enough_ahead() {
        let mut starting = Starting::new(1);
        let now = Nanos::from_secs(7);
        assert_eq!(starting.name(now, Nanos::from_millis(1)), Nanos::from_secs(8));
        assert_eq!(starting.name(now, Nanos::from_millis(200)), Nanos::from_secs(11));
        assert_eq!(starting.patience(), Duration::from_secs(2));
    }

    #[test]
    fn a_start_is_confirmed_when_the_last_agent_has_acknowledged() {
        let (mut starting, now) = (Starting::new(2), Nanos::from_millis(10));
        starting.name(Nanos(0), Nanos(0));
        assert_eq!(starting.take_answer(0, slack(990), now), Ok(false));
        assert_eq!(starting.take_answer(0, slack(990), now), Ok(false), "twice is once");
        assert_eq!(starting.overdue(now), None);
        let late = now + Nanos::from_secs(2);
        assert_eq!(starting.overdue(late), Some(vec![1]));
        assert_eq!(starting.take_answer(1, slack(900), now), Ok(true));
        assert_eq!(starting.overdue(late), None);
    }

    #[test]
    fn an_agent_without_enough_time_cannot_start() {
        let (mut starting, now) = (Starting::new(1), Nanos::from_millis(10));
        starting.name(Nanos(0), Nanos(0));
        for answer in [slack(100), slack(-5), Ok(Answer::Done), Err("silent".to_owned())] {
            assert!(starting.take_answer(0, answer, now).is_err());
        }
        let late = now + Nanos::from_secs(1);
        assert!(starting.take_answer(0, slack(900), late).is_err());
    }
}
