//! Runs over a fleet that are resumed after their coordinator was killed, with agents that were
//! started again, and searches.

use crate::fleet::{Agent, Bus, fleet};
use crate::rig::{Place, cells, signal, until, wait};
use crate::serving::Server;

/// Starts a run, and kills it once its load runs.
fn killed(place: &Place, words: &[&str]) {
    let child = place.spawn(words);
    until("a load", || place.intervals() > 2);
    signal("KILL", child.id());
    wait(child);
}

/// Agents of a job end after its run, and the job is started again for what is left of the run.
#[test]
fn a_run_is_resumed_with_agents_that_were_started_again() {
    let place = Place::new("fleet-started-again");
    let Some(bus) = Bus::start(&place) else { return };
    let job = || [0, 1].map(|rank| Agent::with(&place, &bus, rank, "127.0.0.1:*", &["--once"]));
    let server = Server::start(&place, &["mqtt"]);
    let agents = job();
    let words = ["compare", &server.url, "--fleet", &bus.url, "--agents", "2", "--reps", "2"];
    let load = ["-R", "300/s", "-d", "3s", "--warmup", "0s", "-c", "4", "--qos", "1"];
    killed(&place, &[&words[..], &load].concat());
    // They finish the trial, store it, and end.
    agents.into_iter().for_each(|agent| assert_eq!(agent.ended(), Some(0)));
    assert!(bus.objects() > 0, "what they found is on the bus");
    let resumed = ["run", "--resume", "latest", "--fleet", &bus.url, "--agents", "2"];
    let hasty = [&resumed[..], &["--fleet-wait", "1s"]].concat();
    place.weigh(&hasty).with(5).saying(&["0 of 2 agents", "missing: ranks 0 and 1"]);
    let agents = job();
    place.weigh(&resumed).with(0).saying(&["the agents finished it without this program"]);
    agents.into_iter().for_each(|agent| assert_eq!(agent.ended(), Some(0)));
    assert_eq!(place.of_kind("trial_started").len(), 2, "the finished trial is not repeated");
    let summary = place.summary();
    let cell = &cells(&summary)[0];
    assert_eq!((&cell["repetitions"], &cell["ledger"]["lost"]), (&2.into(), &0.into()), "{cell}");
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
}

/// A search repeats the trial of a program that was killed, so what agents stored of it is of no
/// use.
#[test]
fn a_resumed_search_removes_what_a_killed_one_left() {
    let place = Place::new("fleet-search-killed");
    let Some((bus, agents)) = fleet(&place, 2) else { return };
    let goal = ["--goal", "loss <= 1%", "--width", "50%", "--trial", "2s", "--sum", "2s"];
    let words = ["limit", "tcp", "--from", "200/s", "--to", "400/s", "--warmup", "0s"];
    let hosts = ["--fleet", &bus.url, "--agents", "2"];
    killed(&place, &[&words[..], &goal, &hosts].concat());
    agents.iter().for_each(|agent| agent.has_said("is over here; free"));
    assert!(bus.objects() > 0, "a killed search leaves the outcomes of its trial");
    let left = place.of_kind("search_told").len();
    let ended = place.weigh(&[&["run", "--resume", "latest"], &hosts[..]].concat());
    // 98: on a busy machine the search may end without proof.
    assert!(matches!(ended.code, Some(0 | 98)), "{}", ended.stderr);
    assert!(place.of_kind("search_told").len() > left, "the search was continued");
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
}
