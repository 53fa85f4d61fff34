//! Asks the servers for their own counts and hands what was seen to the engine, which makes the
//! record of a trial of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weigh_engine::outcome::Outcome;
use weigh_engine::record::{self, Beside, TargetUse};
use weigh_model::Trial;
use weigh_model::event::TrialFinished;
use weigh_model::server::ServerReport;
use weigh_observe::sampler::Usage;
use weigh_stage::reference::ReferenceServer;

use crate::counters;
use crate::lanes::Lane;
use crate::target::{READY_WITHIN, Running};
use crate::trial_run::Measured;

/// The record of a trial. Where it is urgent, no server is waited for until it has settled.
pub fn put_together(
    lane: &Lane,
    trial: &Trial,
    measured: Measured,
    target: &mut Running,
    is_urgent: bool,
) -> TrialFinished {
    let Measured { outcome, seen } = measured;
    let server = match target {
        Running::Reference(server) if !is_urgent => settled_report(server, trial, &outcome),
        _ => None,
    };
    let counters = match target {
        Running::Managed(server) if !is_urgent => counters::read_settled(server, &trial.load),
        _ => BTreeMap::new(),
    };
    let mut asked_terms = lane.protocol.asks(&lane.settings);
    asked_terms.extend(trial.load.window.map(|window| ("receive_maximum", u64::from(window))));
    let beside = Beside {
        guarantee: lane.protocol.guarantee(&lane.settings),
        target: target.title(lane),
        carries: lane.protocol.carries(&lane.settings),
        confirms: seen.confirms,
        shared_cores: seen.shared_cores,
        target_ended: target.ended().map(|ended| ended.to_string()),
        usage: seen.usage.as_ref().map(target_use),
        messages_cpu_ns: seen.messages_cpu_ns,
        server,
        counters,
        asked_terms,
        generator_bytes: seen.generator_bytes,
        target_bytes: seen.target_bytes,
    };
    record::put_together(trial, outcome, beside)
}

fn target_use(usage: &Usage) -> TargetUse {
    TargetUse {
        cpu_ns: usage.cpu_ns,
        wall_ns: usage.wall_ns,
        percent_mean: usage.percent_mean,
        percent_max: usage.percent_max,
        memory_bytes_max: usage.memory_bytes_max,
        host_busy_ns: usage.host.busy_ns(),
    }
}

/// The reference server's count once it stands still: what was sent unconfirmed may still be on
/// its way.
fn settled_report(
    server: &mut ReferenceServer,
    trial: &Trial,
    outcome: &Outcome,
) -> Option<ServerReport> {
    let mut report = server.report(READY_WITHIN).ok()?;
    let sent = outcome.ledger.sent / trial.load.copies().max(1);
    let deadline = Instant::now() + Duration::from_nanos(trial.load.timeout.0);
    while report.unique < sent && Instant::now() < deadline {
        std::thread::sleep(REPORT_EVERY);
        let next = server.report(READY_WITHIN).ok()?;
        if next == report {
            break;
        }
        report = next;
    }
    Some(report)
}

const REPORT_EVERY: Duration = Duration::from_millis(20);
