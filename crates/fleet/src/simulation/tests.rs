//! Trials of a thousand agents and fewer.

use weigh_engine::rendezvous::Rendezvous;

use super::agent::MESSAGES;
use super::*;

fn scenario(agents: u32, seed: u64) -> Scenario {
    Scenario { agents, seed, weather: Weather::default(), death: None, stop: None }
}

#[track_caller]
fn is_whole(played: &Played) {
    let states = played.result.as_ref().unwrap();
    assert_eq!(states.len(), played.agents.len());
    for (state, agent) in states.iter().zip(&played.agents) {
        let stored = state.outcomes.as_ref().map(Vec::len);
        assert_eq!(stored, Some(agent.here.len()), "agent {}", agent.rank);
        assert_eq!(state.counts.sent, MESSAGES * agent.here.len() as u64);
    }
}

/// Nobody began before or after the start by more than is said, and no two were further apart.
#[track_caller]
fn started_together(played: &Played) {
    let start = played.start.expect("a start");
    let began: Vec<u64> = played.agents.iter().map(|agent| agent.began.unwrap()).collect();
    for (began, error_ns) in began.iter().zip(&played.errors_ns) {
        assert!(began.abs_diff(start) <= *error_ns, "{began} {start} {error_ns}");
    }
    let apart = began.iter().max().unwrap() - began.iter().min().unwrap();
    assert!(apart <= played.skew_bound_ns, "{apart} > {}", played.skew_bound_ns);
    assert_eq!(played.offsets.1, 0, "of {} offsets", played.offsets.0);
}

#[test]
fn a_thousand_agents_start_together_and_end_as_one() {
    let played = play(&scenario(1_000, 7));
    is_whole(&played);
    started_together(&played);
    assert!(played.offsets.0 > 5_000);
    let seconds = played.lasted_ns as f64 / 1e9;
    let each = played.messages as f64 / 1_000.0 / seconds;
    println!(
        "1,000 agents: {each:.1} messages per agent and second over {seconds:.1} s, the state of \
         all is {} bytes at most; the last agent knew the start {:.1} ms after it was confirmed; \
         starts at most {:.3} ms apart",
        played.whole_bytes,
        played.round_ns as f64 / 1e6,
        played.skew_bound_ns as f64 / 1e6,
    );
}

#[test]
fn messages_that_come_twice_and_late_change_nothing() {
    for seed in 1..=5 {
        let once = play(&scenario(100, seed));
        let doubled = Weather { is_doubled: true, ..Weather::default() };
        let twice = play(&Scenario { weather: doubled, ..scenario(100, seed) });
        for played in [&once, &twice] {
            is_whole(played);
            started_together(played);
        }
        assert!(twice.messages > once.messages * 3 / 2);
    }
}

/// A third of all agents hears nothing for 3 s of the load.
#[test]
fn a_cut_that_is_shorter_than_the_silence_changes_nothing() {
    for seed in 1..=5 {
        let from = HIRED_NS + 2_500_000_000;
        let cut = Weather { cut: Some(from..from + 3_000_000_000), ..Weather::default() };
        let played = play(&Scenario { weather: cut, ..scenario(100, seed) });
        is_whole(&played);
        started_together(&played);
    }
}

/// Whenever an agent dies, the trial is whole, or it has failed on all of them.
#[test]
fn a_trial_never_ends_with_fewer() {
    let (mut failed, mut whole) = (0, 0);
    for seed in 1..=60 {
        let (rank, at) = (seed as u32 * 7 % 50, seed * 90_000_000);
        let played = play(&Scenario { death: Some((rank, at)), ..scenario(50, seed) });
        match &played.result {
            Ok(_) => {
                is_whole(&played);
                whole += 1;
            }
            Err(failure) => {
                let text = failure.to_string();
                assert!(matches!(failure, Failure::Lost(_)), "{text}");
                assert!(text.contains(&format!("agent {rank} (h)")), "{text}");
                let mut others = played.agents.iter().filter(|agent| agent.rank != rank);
                assert!(others.all(|agent| agent.meeting.orders().has_failed()), "{text}");
                failed += 1;
            }
        }
    }
    assert!(failed > 20 && whole > 5, "{failed} failed, {whole} were whole before");
}

#[test]
fn a_silent_agent_of_a_thousand_fails_the_trial_everywhere() {
    let played = play(&Scenario { death: Some((617, 2_500_000_000)), ..scenario(1_000, 3) });
    let text = played.result.unwrap_err().to_string();
    assert_eq!(text, "generator lost: agent 617 (h) did not answer for 10 s");
    let mut others = played.agents.iter().filter(|agent| agent.rank != 617);
    assert!(others.all(|agent| agent.meeting.orders().has_failed()));
}

/// An agent that no start reaches: none of the others begins.
#[test]
fn a_start_that_one_does_not_acknowledge_is_called_off() {
    let deaf = Weather { is_deaf: Some(11), ..Weather::default() };
    let played = play(&Scenario { weather: deaf, ..scenario(200, 5) });
    let text = played.result.unwrap_err().to_string();
    let begin = "generator lost: the start was called off: agent 11 (h)";
    assert!(text.starts_with(begin), "{text}");
    assert!(played.agents.iter().all(|agent| agent.began.is_none()));
}

#[test]
fn a_stop_reaches_every_agent() {
    let played = play(&Scenario { stop: Some(2_800_000_000), ..scenario(500, 9) });
    is_whole(&played);
    assert!(played.agents.iter().all(|agent| agent.meeting.orders().stop_level() == 1));
}
