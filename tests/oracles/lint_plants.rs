//! Faults planted in the record of a clean run, each with the rule that must catch it.

use weigh_model::{Arrival, Nanos, Rule};

use crate::lint::{Arrivals, MESSAGES, Run};

/// A rule, the run that its fault is planted in, and the fault.
pub type Plant = (Rule, Arrivals, fn(&mut Run));

/// Faults in the figures themselves.
pub fn figures() -> Vec<Plant> {
    vec![
        (Rule::L02, Arrivals::Closed, |run| {
            run.each(|trial| {
                let mean_ns = trial.metrics["response_time_ns.mean"];
                trial.metrics.insert("throughput_in_per_s".to_owned(), 1e9 / mean_ns);
            });
        }),
        (Rule::L05, Arrivals::Open, |run| {
            run.each(|trial| {
                for (part, ms) in [("p50", 20.0), ("p90", 30.0), ("p95", 40.0), ("p99", 70.0)] {
                    trial.metrics.insert(format!("response_time_ns.{part}"), ms * 1e6 + 3e4);
                }
                trial.metrics.insert("response_time_ns.p999".to_owned(), 1.0e8 + 3e4);
                trial.metrics.insert("response_time_ns.max".to_owned(), 1.1e8);
            });
        }),
        (Rule::L06, Arrivals::Open, |run| {
            run.each(|trial| {
                trial.metrics.insert("acceptance_ratio".to_owned(), 0.9985);
            });
        }),
        (Rule::L07, Arrivals::Open, |run| {
            run.each(|trial| {
                let mean_ns = trial.metrics["response_time_ns.mean"];
                trial.metrics.insert("response_time_ns.max".to_owned(), 0.5 * mean_ns);
            });
        }),
        (Rule::L09, Arrivals::Open, |run| {
            run.each(|trial| {
                trial.metrics.insert("target_cpu_percent.mean".to_owned(), 41.0);
                trial.metrics.remove("throughput_in_per_s");
            });
        }),
    ]
}

/// Faults in how the figures came about.
pub fn conditions() -> Vec<Plant> {
    vec![
        (Rule::L04, Arrivals::Closed, |run| {
            run.plan.load.arrival = Arrival::Ramp(Nanos::from_secs(10));
        }),
        (Rule::L12, Arrivals::Open, |run| {
            run.each(|trial| {
                trial.metrics.insert("errors_ratio".to_owned(), 0.05);
                trial.ledger.acknowledged -= 30;
            });
        }),
        (Rule::L13, Arrivals::Open, |run| run.trials.retain(|trial| trial.repetition < 4)),
        (Rule::L14, Arrivals::Open, |run| {
            run.each(|trial| {
                trial.metrics.insert("body_bytes".to_owned(), 1e6);
                trial.metrics.insert("wire.header_bytes".to_owned(), 1552.0);
            });
        }),
        (Rule::L15, Arrivals::Open, |run| {
            run.each(|trial| {
                trial.samples.insert("connect_time_ns".to_owned(), MESSAGES);
            });
        }),
        (Rule::L16, Arrivals::Closed, |run| {
            let second = run.trials.last().unwrap().point.clone();
            run.each(|trial| {
                let window = if trial.point == second { 20 } else { 1 };
                trial.granted.insert("in_flight".to_owned(), window);
            });
        }),
        (Rule::L19, Arrivals::Closed, |run| {
            run.each(|trial| {
                trial.metrics.remove("generator_cpu_percent.max");
            });
        }),
    ]
}
