//! What every metric is: the definitions of `docs/methodology.md`, next to the figures.

use weigh_stats::Method;

use super::{emulated_words, path_words, stage_words, wire_words};

/// What the metric `name` is, in a sentence or two.
pub(crate) fn definition(name: &str) -> String {
    if let Some(what) = wire_words::definition(name).or_else(|| path_words::definition(name)) {
        return what;
    }
    if let Some(what) = emulated_words::definition(name) {
        return what.to_owned();
    }
    if let Some(counter) = name.strip_prefix("counter.") {
        return format!(
            "The counter `{counter}` of the target's own, over the trial; targets/*.toml says what \
             it counts."
        );
    }
    let (quantity, part) = name.rsplit_once('.').unwrap_or((name, ""));
    let exact = WHOLE.iter().find(|(known, _)| *known == name);
    let of_stage = [name, quantity].into_iter().find_map(stage_words::definition);
    if let Some(what) = of_stage {
        return statistic(part).map_or(what.clone(), |how| format!("{what} {how}"));
    }
    let known = exact.or_else(|| QUANTITIES.iter().find(|(known, _)| *known == quantity));
    let what = known.map_or(UNKNOWN, |(_, what)| what);
    match statistic(part) {
        Some(how) if exact.is_none() => format!("{what} {how}"),
        _ => what.to_owned(),
    }
}

fn statistic(part: &str) -> Option<String> {
    match part {
        "mean" => Some("Here the arithmetic mean of a repetition.".to_owned()),
        "max" => Some("Here the largest of a repetition.".to_owned()),
        _ => {
            let digits = part.strip_prefix('p').filter(|digits| digits.parse::<u32>().is_ok())?;
            let percent = match digits.len() {
                0..=2 => digits.to_owned(),
                _ => format!("{}.{}", &digits[..2], &digits[2..]),
            };
            Some(format!(
                "Here the time that {percent} % of the messages of a repetition do not exceed; \
                 lost messages count as infinite."
            ))
        }
    }
}

/// What is said of a metric that a later version may have measured.
const UNKNOWN: &str = "Measured by Weighbridge under this name.";

/// How an interval that the summary names so is made, with its source.
pub(crate) fn method(name: &str) -> &'static str {
    if name == crate::summary::modelled::METHOD {
        return MODELLED;
    }
    METHODS.iter().find(|(method, _)| method.name() == name).map_or("", |(_, how)| how)
}

const MODELLED: &str = "coefficients drawn again and again from what their sources leave open, \
    those of one file correlated, and Student's t over the repetitions (JCGM 101:2008).";

/// The methods of intervals over repetitions.
const METHODS: &[(Method, &str)] = &[
    (Method::TOverRuns, "Student's t over the repetitions' values, n - 1 degrees of freedom."),
    (
        Method::SkewnessCorrectedT,
        "Student's t over the repetitions' values, n - 1 degrees of freedom, its side towards the \
         longer tail lengthened for skewness (N. J. Johnson, 1978).",
    ),
];

/// Quantities whose name after the dot is a statistic.
const QUANTITIES: &[(&str, &str)] = &[
    ("response_time_ns", "From the moment a message was due to its confirmation."),
    ("delivery_time_ns", "From the moment a message was due to its delivery to the consumer."),
    ("one_way_time_ns", "From handing a message to the transport to its delivery."),
    (
        "service_time_ns",
        "From handing a message to the transport to its confirmation: without what it waited \
         before, so never called latency.",
    ),
    ("first_byte_time_ns", "From the due time to the first bytes of an object at its subscriber."),
    (
        "batch_time_ns",
        "From the moment the first message of an exchange was due to the confirmation of the last.",
    ),
    (
        "poll_wait_time_ns",
        "From the moment a message was due to the request that fetched it; 0 where that was made \
         before. The first of three parts of the delivery time.",
    ),
    (
        "poll_round_trip_time_ns",
        "From the request that fetched a message, or its due time if that is later, to the answer: \
         the second part of the delivery time.",
    ),
    (
        "handling_time_ns",
        "From the answer to the message taken out of it: the last part of the delivery time.",
    ),
    ("poll_lag_ns", "From the moment a consumer was to ask to its request: the generator's error."),
    ("connect_time_ns", "From beginning to connect to being ready to send."),
    (
        "session_time_ns",
        "From beginning to connect to having closed, where a connection lives for one message.",
    ),
    (
        "tls_handshake_time_ns",
        "From the transport standing to the TLS handshake finished at the client.",
    ),
    (
        "send_lag_ns",
        "From the moment a message was due to handing it to the transport: the generator's own \
         error.",
    ),
    (
        "response_time_lag_ns",
        "How much of the response time is the generator's own lateness: the statistic from the due \
         time less the same without it. What waited for the window is not in it.",
    ),
    (
        "delivery_time_lag_ns",
        "How much of the delivery time is the generator's own lateness: the statistic from the due \
         time less the same without it. What waited for the window is not in it.",
    ),
    ("error_time_ns", "From the moment a message was due to an answer that is an error."),
    (
        "target_cpu_percent",
        "Processor time of the target over the window, in percent of the cores it was given.",
    ),
    (
        "host_cpu_percent",
        "Processor time of the whole machine, whoever used it, in percent of all its cores: what \
         htop shows.",
    ),
    (
        "host_softirq_percent",
        "Soft interrupts, among them the network's receive path, charged to no process; in \
         percent of all cores.",
    ),
    ("host_steal_percent", "What a hypervisor took for others, in percent of all cores."),
    (
        "tcp.round_trip_us",
        "Smoothed round-trip time as the kernel of the clients' hosts knew it (`TCP_INFO`), over \
         all connections, asked twice a second.",
    ),
    (
        "tcp.congestion_window_segments",
        "How many segments the kernel of the clients' hosts let be under way (`TCP_INFO`), over \
         all connections, asked twice a second.",
    ),
    ("generator_cpu_percent", "Processor time of the generator's busiest thread, in percent."),
    ("target_memory_bytes", "Memory that the target holds."),
];

/// Metrics that are what they are.
const WHOLE: &[(&str, &str)] = &[
    (
        "background.overlap_ratio",
        "The share of the measured window, draining included, in which the background beneath it \
         sent at least half of what it offers.",
    ),
    (
        "background.sent_per_s",
        "Messages that the background beneath it sent in the measured window, divided by it.",
    ),
    ("background.lost_messages", "Messages that the background itself lost; none of this case."),
    (
        "background.generator_cpu_percent.mean",
        "Processor time of the background's own generator in the measured window, of one core.",
    ),
    (
        "background.target_cpu_percent.mean",
        "Processor time of the background's own target in the measured window, of its cores.",
    ),
    (
        "throughput_in_per_s",
        "Messages handed to the transport within the measured window, divided by its length.",
    ),
    (
        "throughput_out_per_s",
        "Different messages delivered in time within the measured window, divided by its length; \
         what came later is not in it.",
    ),
    (
        "goodput_bytes_per_s",
        "Bytes of the bodies of different deliveries within the measured window, divided by its \
         length.",
    ),
    (
        "window_s",
        "The measured window: open loops: from the begin of the measurement to the end of the \
         schedule; closed loops and bursts: from the first send to the last completion.",
    ),
    (
        "drained_after_s",
        "Open loops: from the end of the measured window to the last arrival; 0 if nothing came \
         after it.",
    ),
    (
        "backlog_messages",
        "Open loops: messages that were sent within the measured window and arrived after it; \
         where producers are answered, also those that were never answered.",
    ),
    (
        "settled_messages",
        "Arrivals from the begin of the measured window until all was settled, in time or late: \
         what processor time and energy are divided by. Where they are not seen, messages sent.",
    ),
    (
        "answers_per_wakeup",
        "Answers and arrivals that the generator found when it woke, on average.",
    ),
    ("transfer_time_s", "From the first send to the last completion."),
    ("body_bytes", "Mean size of a body."),
    (
        "background.send_lag_ns.p99",
        "The 99 % quantile of due to sent of the background's own messages, from first to last.",
    ),
    ("generator_cpu_percent.all", "Processor time of the whole generator, in percent of a core."),
    ("connections_held", "Sessions that stood at the end of the window."),
    (
        "connections_per_s",
        "Sessions, divided by the time from the first connect to the last ready.",
    ),
    ("keep_alives_per_s", "Signs of life that clients sent in the window, per second."),
    ("keep_alives_unanswered", "Signs of life that the target never answered."),
    ("tls_handshakes_full", "TLS handshakes with certificates, in the whole trial."),
    ("tls_handshakes_resumed", "TLS handshakes that resumed a session, in the whole trial."),
    ("tls_handshakes_per_s", "TLS handshakes, divided by the time from the first to the last."),
    (
        "tls_handshake_sent_bytes",
        "Bytes that a client sent in a handshake, record headers included, on average.",
    ),
    (
        "tls_handshake_received_bytes",
        "Bytes that a client received in a handshake, record headers included and tickets not, \
         on average.",
    ),
    (
        "tls_record_bytes",
        "What records, tickets and close_notify added to the bytes of the protocol, both \
         directions, in the whole trial.",
    ),
    ("websocket_upgrades", "Connections that were upgraded to WebSocket, in the whole trial."),
    ("websocket_upgrade_sent_bytes", "Bytes of the request for an upgrade, per connection."),
    ("websocket_upgrade_received_bytes", "Bytes of the answer to it, per connection."),
    (
        "websocket_frame_bytes",
        "What WebSocket frames added to the protocol's own bytes: headers, masks and control \
         frames, both ways, in the whole trial.",
    ),
    (
        "seal_cpu_us_per_message",
        "Processor time to seal a body, divided by the measured messages: a part of the \
         generator's.",
    ),
    (
        "open_cpu_us_per_message",
        "Processor time of a consumer to open a body, divided by the measured deliveries: a part \
         of the generator's.",
    ),
    (
        "sealed_overhead_bytes_per_message",
        "Bytes of a sealed object beyond those of its content: keys, signature, policy, tag.",
    ),
    (
        "late_time_ns.max",
        "From the due time to the first arrival of the slowest message that came after the \
         timeout.",
    ),
    ("stored_rows", "Rows where readings are kept, counted there after the trial."),
    ("acceptance_ratio", "Delivered in time, divided by sent."),
    (
        "held_up_ratio",
        "Open loops: messages that became due while the window was full, divided by sent.",
    ),
    ("errors_ratio", "Error answers and failed exchanges, divided by sent."),
    ("ledger_bytes_per_message", "Memory that the ledger took for a message."),
    ("polls", "Requests of all consumers in the measured window."),
    ("empty_polls", "Requests of consumers that were answered with no message."),
    ("messages_per_poll", "Messages in the answer to one request of a consumer, on average."),
    (
        "polls_skipped",
        "Requests that were due and not made, because the last one was not answered yet.",
    ),
    ("polls_refused", "Requests of consumers that were answered with an error."),
    ("messages_per_write", "Messages that left in one write to a socket, on average."),
    (
        "target_cpu_us_per_message",
        "Processor time of the target, its kernel time included, divided by delivered messages.",
    ),
    (
        "generator_cpu_us_per_message",
        "Processor time of the generator divided by messages: the instrument's own cost.",
    ),
    (
        "target_memory_bytes.before",
        "Memory that the target held before the first connection of a repetition in which \
         subscribers stalled.",
    ),
    ("subscriber_stall_s", "How long subscribers read nothing, from the beginning of the window."),
    (
        "target_memory_bytes_per_connection",
        "What the target's memory grew by, divided by the connections held.",
    ),
    (
        "generator_memory_bytes_per_connection",
        "What the generator's memory grew by, divided by the connections held.",
    ),
    ("energy_j", "Joules that the meter saw in the measured window."),
    (
        "energy_above_idle_j",
        "The part of them beyond what the machine takes idle: the mean of its power before and \
         after, times the window.",
    ),
    ("energy_power_w", "Mean power in the measured window."),
    ("energy_idle_power_w", "Mean power while nothing was asked, before and after the trial."),
    ("energy_voltage_v", "Mean voltage in the measured window, at which charge was drawn."),
    ("energy_j_per_message", "Joules in the window, divided by delivered messages."),
    ("energy_above_idle_j_per_message", "Joules above idle, divided by delivered messages."),
    (
        "energy_j_per_session",
        "Joules in the window, divided by sessions, where every message has one of its own.",
    ),
    (
        "energy_above_idle_j_per_session",
        "Joules above idle, divided by sessions, where every message has one of its own.",
    ),
    (
        "energy_mah_per_session",
        "Charge drawn in the window, divided by sessions, at the voltage that is stated beside.",
    ),
    (
        "modelled_energy_j_per_message",
        "Modelled, not measured: joules that a producer's device would take for a message, the \
         trial's load going on for ever, idling included.",
    ),
    (
        "modelled_energy_j_per_session",
        "Modelled, not measured: joules of a connection of a producer, as weighed.",
    ),
    (
        "modelled_energy_mah_per_session",
        "Modelled, not measured: charge that a connection of a producer takes from the battery at \
         its rated voltage, as weighed; without a battery at the device's voltage.",
    ),
    (
        "modelled_sessions_per_charge",
        "Modelled, not measured: connections that a charge is enough for, as weighed.",
    ),
    (
        "modelled_messages_per_charge",
        "Modelled, not measured: messages that a charge is enough for, as weighed.",
    ),
    (
        "modelled_lifetime_s",
        "Modelled, not measured: how long a charge lasts, the trial's load going on for ever.",
    ),
    (
        "modelled_wake_j_per_message",
        "Modelled, not measured: joules beyond idling of one message after a pause, with the \
         radio's ramp and tail.",
    ),
    (
        "modelled_days_per_charge",
        "Modelled, not measured: how long a charge lasts with one message each so often.",
    ),
    (
        "tcp.retransmitted_segments",
        "Segments that the kernel of the clients' hosts sent again (`TCP_INFO`), on all \
         connections.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::wire_bytes::{LAYERS, PHASES};

    #[test]
    fn a_definition_names_quantity_and_statistic() {
        let text = definition("response_time_ns.p999");
        assert!(text.starts_with("From the moment") && text.contains("99.9 %"), "{text}");
        assert!(definition("send_lag_ns.max").ends_with("Here the largest of a repetition."));
        assert!(definition("throughput_out_per_s").starts_with("Different messages"));
        let text = definition("tcp.round_trip_us.mean");
        assert!(text.starts_with("Smoothed") && text.ends_with("mean of a repetition."), "{text}");
        assert!(definition("path.up.lost_packets").ends_with("from the clients to the target."));
        assert!(definition("relay.wire.connections").starts_with("Of the second hop"));
    }

    /// The names that trials over paths, relays, TLS and WebSocket with their wire listened on had,
    /// and those of other patterns.
    #[test]
    fn no_metric_is_without_a_definition() {
        let mut names: Vec<String> = METRICS.split_whitespace().map(str::to_owned).collect();
        for figure in WIRE.split_whitespace() {
            let of_layers = LAYERS.iter().map(|layer| figure.replace("LAYER", layer.key));
            let of_phases = PHASES
                .iter()
                .flat_map(|phase| of_layers.clone().map(|name| name.replace("PHASE", phase.key)));
            let of_wire =
                of_phases.flat_map(|name| [format!("wire.{name}"), format!("relay.wire.{name}")]);
            names.extend(of_wire);
        }
        for name in names {
            let what = definition(&name);
            assert!(!what.contains(UNKNOWN) && !what.is_empty(), "{name}: {what}");
        }
        assert_eq!(definition("of_a_later_version"), UNKNOWN);
    }

    const METRICS: &str = "
        response_time_ns.p50 delivery_time_ns.p90 service_time_ns.p95 one_way_time_ns.p999
        response_time_lag_ns.p99 delivery_time_lag_ns.max
        first_byte_time_ns.p50 connect_time_ns.mean session_time_ns.max send_lag_ns.p99
        batch_time_ns.p50 poll_wait_time_ns.p50 poll_round_trip_time_ns.mean handling_time_ns.max
        poll_lag_ns.p99 polls empty_polls messages_per_poll polls_skipped polls_refused
        error_time_ns.p50 tls_handshake_time_ns.mean
        throughput_in_per_s throughput_out_per_s goodput_bytes_per_s window_s transfer_time_s
        drained_after_s backlog_messages settled_messages answers_per_wakeup
        body_bytes acceptance_ratio errors_ratio held_up_ratio messages_per_write
        ledger_bytes_per_message target_cpu_us_per_message generator_cpu_us_per_message
        target_cpu_percent.mean target_cpu_percent.max generator_cpu_percent.max
        host_cpu_percent.mean host_softirq_percent.mean host_steal_percent.mean
        target_memory_bytes.max target_memory_bytes_per_connection
        generator_memory_bytes_per_connection
        tls_handshakes_full tls_handshakes_resumed tls_handshakes_per_s
        tls_handshake_sent_bytes tls_handshake_received_bytes tls_record_bytes
        websocket_upgrades websocket_upgrade_sent_bytes websocket_upgrade_received_bytes
        websocket_frame_bytes seal_cpu_us_per_message open_cpu_us_per_message
        sealed_overhead_bytes_per_message
        modelled_energy_j_per_message modelled_energy_j_per_session
        modelled_energy_mah_per_session modelled_sessions_per_charge
        modelled_messages_per_charge modelled_lifetime_s modelled_wake_j_per_message
        modelled_days_per_charge
        tcp.round_trip_us.mean tcp.round_trip_us.max tcp.retransmitted_segments
        tcp.congestion_window_segments.mean
        energy_j energy_above_idle_j energy_power_w energy_idle_power_w energy_voltage_v
        energy_j_per_message energy_above_idle_j_per_message energy_j_per_session
        energy_above_idle_j_per_session energy_mah_per_session
        path.up.asked_ratio path.down.asked_ratio
        path.up.packets path.up.lost_packets path.up.queue_full_packets path.up.doubled_packets
        path.down.packets path.down.lost_packets path.down.queue_full_packets
        path.down.doubled_packets path.late_packets path.lateness_ns.mean path.forwarder_cpu_ns
        relay.connections relay.broken_connections relay.up_bytes relay.down_bytes
        relay.waiting_bytes.max
        wire.kernel.sent_packets wire.kernel.received_packets wire.kernel.sockets_compared
        wire.kernel.differences
        wire.hops.publishers.packets wire.hops.publishers.bytes
        wire.hops.subscribers.bytes_per_message";

    const WIRE: &str = "
        messages connections dropped_packets header_bytes ack_only_packets retransmitted_packets
        too_early_packets radio.bytes radio.link_bytes radio.bytes_per_message
        radio.bytes_per_session radio.link.bytes_per_message radio.link.bytes_per_session
        keep_alive_packets bytes_per_message bytes_per_session packets_per_message
        packets_per_session ack_only_packets_per_message ack_only_packets_per_session
        tls.bytes_per_message tls.bytes_per_session application.bytes_per_message
        application.bytes_per_session LAYER.bytes_per_message LAYER.bytes_per_session
        layers.LAYER_bytes sent.layers.LAYER_bytes received.layers.LAYER_bytes
        sent.packets sent.bytes sent.data_packets sent.ack_only_packets
        sent.retransmitted_packets sent.keep_alive_packets
        received.packets received.bytes received.data_packets received.ack_only_packets
        received.retransmitted_packets received.keep_alive_packets
        phases.PHASE.packets phases.PHASE.bytes phases.PHASE.sent_bytes
        phases.PHASE.received_bytes phases.PHASE.bytes_per_message
        phases.PHASE.bytes_per_session phases.PHASE.layers.LAYER_bytes";
}
