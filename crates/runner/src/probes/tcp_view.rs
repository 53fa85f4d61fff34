//! TCP figures over time, as rows of the journal: a fixed number of connections on their own, all
//! others together, so that a trial with ten thousand connections has no more rows than one with
//! ten.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use weigh_capture::kernel::Sample;
use weigh_model::event::TcpSample;

/// The rows of a trial, in the order of time. `epoch_unix_ns` is the trial's time 0.
pub fn rows(trial: &str, epoch_unix_ns: u64, samples: &[Sample]) -> Vec<TcpSample> {
    let own = first_connections(samples);
    let looks: Vec<&[Sample]> = looks(samples).collect();
    let every = looks.len().div_ceil(LOOKS_MAX).max(1);
    let last = looks.len().saturating_sub(1);
    let kept = looks.iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
    let mut rows = Vec::new();
    for (_, look) in kept {
        let (alone, together): (Vec<&Sample>, Vec<&Sample>) =
            look.iter().partition(|sample| own.contains(&ends(sample)));
        for sample in alone {
            let connection = Some(format!("{} {}", sample.local, sample.remote));
            rows.extend(row(trial, epoch_unix_ns, connection, &[sample]));
        }
        rows.extend(row(trial, epoch_unix_ns, None, &together));
    }
    rows
}

/// Groups samples taken together: the table of sockets is read as a whole, with longer pauses
/// between.
fn looks(samples: &[Sample]) -> impl Iterator<Item = &[Sample]> {
    samples.chunk_by(|before, after| after.at_ns.saturating_sub(before.at_ns) < PAUSE_NS)
}

/// Connections with rows of their own: the first ones.
fn first_connections(samples: &[Sample]) -> BTreeSet<Ends> {
    let mut own = BTreeSet::new();
    for sample in samples {
        if own.len() >= OWN_ROWS_MAX {
            break;
        }
        own.insert(ends(sample));
    }
    own
}

fn row(
    trial: &str,
    epoch_unix_ns: u64,
    connection: Option<String>,
    samples: &[&Sample],
) -> Option<TcpSample> {
    let first = samples.first()?;
    let count = samples.len() as f64;
    let mean = |of: fn(&Sample) -> u32| {
        samples.iter().map(|sample| f64::from(of(sample))).sum::<f64>() / count
    };
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(|sample| of(sample)).sum();
    Some(TcpSample {
        trial: trial.to_owned(),
        at_ns: first.at_ns.saturating_sub(epoch_unix_ns),
        connection,
        connections: samples.len() as u64,
        round_trip_us: mean(|sample| sample.round_trip_us),
        round_trip_us_max: samples.iter().map(|s| s.round_trip_us.into()).max().unwrap_or(0),
        congestion_window_segments: mean(|sample| sample.congestion_window_segments),
        unacknowledged_segments: sum(|sample| sample.unacknowledged_segments.into()),
        retransmitted_segments: sum(|sample| sample.segments_retransmitted),
    })
}

type Ends = (SocketAddr, SocketAddr);

fn ends(sample: &Sample) -> Ends {
    (sample.local, sample.remote)
}

/// Connections with rows of their own. Stated in docs/journal.md.
const OWN_ROWS_MAX: usize = 16;

/// Maximum number of times in a trial that have rows, including the last: of more, every second,
/// third ... is kept.
const LOOKS_MAX: usize = 600;

/// Samples further apart are of two readings: sockets are read twice a second, and ten thousand of
/// them answer within some 30 ms.
const PAUSE_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use weigh_capture::kernel::Role;

    use super::*;

    fn sample(at_ms: u64, port: u16) -> Sample {
        Sample {
            at_ns: 1_000_000_000 + at_ms * 1_000_000,
            local: SocketAddr::from(([10, 87, 0, 1], port)),
            remote: SocketAddr::from(([10, 87, 0, 2], 1883)),
            role: Role::Opened,
            round_trip_us: u32::from(port),
            congestion_window_segments: 10,
            segments_retransmitted: 1,
            unacknowledged_segments: 2,
            bytes_sent: 0,
        }
    }

    #[test]
    fn few_connections_stand_alone_and_the_rest_together() {
        let look = |at| (1..=20).map(move |port| sample(at, port));
        let samples: Vec<Sample> = look(0).chain(look(500)).collect();
        let rows = rows("t", 1_000_000_000, &samples);
        assert_eq!(rows.len(), 2 * (OWN_ROWS_MAX + 1));
        let (alone, rest) = (&rows[0], &rows[OWN_ROWS_MAX]);
        assert_eq!(alone.connection.as_deref(), Some("10.87.0.1:1 10.87.0.2:1883"));
        assert_eq!((rest.connections, rest.connection.as_deref()), (4, None));
        assert_eq!((rest.round_trip_us, rest.round_trip_us_max), (18.5, 20));
        assert_eq!((rest.retransmitted_segments, rest.unacknowledged_segments), (4, 8));
        assert_eq!(rows.last().unwrap().at_ns, 500_000_000);
    }

    #[test]
    fn a_long_trial_has_no_more_rows_than_a_short_one() {
        let samples: Vec<Sample> = (0..2_000).map(|look| sample(look * 500, 1)).collect();
        let rows = rows("t", 0, &samples);
        assert!(rows.len() <= LOOKS_MAX + 1, "{}", rows.len());
        assert_eq!(rows.last().unwrap().at_ns, samples.last().unwrap().at_ns);
    }
}
