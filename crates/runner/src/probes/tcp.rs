//! Figures of the kernels' TCP on the path, compared with the capture.

use weigh_capture::kernel::{KernelAccount, Role as KernelRole, Sample, TcpFigures, agreement};
use weigh_engine::outcome::Outcome;
use weigh_model::Warning;
use weigh_model::event::{Event, TrialFinished};

use crate::exit::Stop;
use crate::probe::Probe;
use crate::probes::{listeners, tcp_view};
use crate::trial::context::TrialContext;

/// Reads the clients' kernel figures of [`hearing`].
#[derive(Default)]
pub struct Tcp;

impl Probe for Tcp {
    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        let Some(heard) = &trial.found.heard else { return Ok(()) };
        let samples = &heard.kernel.samples;
        let rows = tcp_view::rows(&trial.trial.id, trial.clock.unix_ns, samples);
        trial.found.events.extend(rows.into_iter().map(Event::TcpSample));
        Ok(())
    }

    /// Compares the capture with the kernel's own counters of the generator's sockets.
    fn record(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let Some(heard) = &trial.found.heard else { return };
        let (account, kernel) = (&heard.account, &heard.kernel);
        tell_round_trips(kernel, finished);
        let found = agreement(account, &kernel.sockets);
        let metrics = &mut finished.metrics;
        // Segments that the sockets sent and received, independent of the capture.
        let own = || kernel.sockets.iter().filter(|view| view.role == KernelRole::Opened);
        let sum = |of: fn(&TcpFigures) -> u64| own().map(|view| of(&view.figures)).sum::<u64>();
        metrics.insert("wire.kernel.sent_packets".to_owned(), sum(|f| f.segments_out) as f64);
        metrics.insert("wire.kernel.received_packets".to_owned(), sum(|f| f.segments_in) as f64);
        metrics.insert("wire.kernel.sockets_compared".to_owned(), found.compared as f64);
        metrics.insert("wire.kernel.differences".to_owned(), found.differences.len() as f64);
        let untold = listeners::untold(kernel, &found);
        trial.found.warnings.extend(untold);
        if let Some(first) = found.differences.first() {
            trial.found.warnings.push(Warning::Wire(
                format!(
                    "capture and kernel differ in {} figures of {} sockets, the first: {} > {}, \
                     {:?} by the kernel {}, captured {}",
                    found.differences.len(),
                    found.compared,
                    first.local,
                    first.remote,
                    first.figure,
                    first.kernel,
                    first.captured
                ),
                "use the larger one; if they differ by much, please report it with the run \
                 folder",
            ));
        }
    }
}

/// Figures of TCP on the path, over all samples of all connections.
fn tell_round_trips(kernel: &KernelAccount, finished: &mut TrialFinished) {
    let samples = &kernel.samples;
    if samples.is_empty() {
        return;
    }
    let mean = |of: fn(&Sample) -> u32| {
        samples.iter().map(|sample| f64::from(of(sample))).sum::<f64>() / samples.len() as f64
    };
    let metrics = &mut finished.metrics;
    metrics.insert("tcp.round_trip_us.mean".to_owned(), mean(|s| s.round_trip_us));
    let longest = samples.iter().map(|sample| sample.round_trip_us).max().unwrap_or(0);
    metrics.insert("tcp.round_trip_us.max".to_owned(), longest.into());
    let opened = kernel.sockets.iter().filter(|socket| socket.role == KernelRole::Opened);
    let again: u64 = opened.map(|socket| socket.figures.segments_retransmitted).sum();
    metrics.insert("tcp.retransmitted_segments".to_owned(), again as f64);
    let window = mean(|s| s.congestion_window_segments);
    metrics.insert("tcp.congestion_window_segments.mean".to_owned(), window);
}
