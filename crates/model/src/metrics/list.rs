//! Every metric of a trial. To add one: an entry here, and what measures it.
//!
//! An entry reads `NAME BETTER [HEADING] DEFINITION (SOURCE);`, with slots of [`super::slots`].

use super::metric::{Better, Metric};

/// All metrics, by the section of `docs/methodology.md` that lists them.
pub const METRICS: &[Metric] = metrics! {
    "times" {
    "response_time_ns.{part}" Lower ["response"]
        "From the due time of a message to its confirmation."
        ("confirmed - due; absent if nothing is confirmed (MQTT QoS 0)");
    "service_time_ns.{part}" Lower
        "From handing a message to the transport to its confirmation. The wait before that is \
         excluded." ("confirmed - sent");
    "delivery_time_ns.{part}" Lower ["delivery"]
        "From the due time of a message to its delivery to the consumer."
        ("delivered - due; in the patterns deliver and poll, and at the pipeline");
    "one_way_time_ns.{part}" Lower
        "From handing a message to the transport to its delivery."
        ("delivered - sent, on one host by one clock (RFC 7679)");
    "send_lag_ns.{part}" Neither ["send lag"]
        "From the due time of a message to handing it to the transport: the generator's own \
         error." ("sent - due, waits for a full window included; in every result");
    "response_time_lag_ns.{part}" Neither
        "Generator lag, the part of the response time by which the generator sent late: the \
         statistic from the due time minus the same without it, waits for the window excluded."
        ("section 5");
    "delivery_time_lag_ns.{part}" Neither
        "Generator lag, the part of the delivery time by which the generator sent late: the \
         statistic from the due time minus the same without it, waits for the window excluded."
        ("section 5");
    "connect_time_ns.{part}" Lower
        "From the start of connecting until ready to send."
        ("with the protocol's greeting: for MQTT up to CONNACK");
    "first_byte_time_ns.{part}" Lower
        "From the due time to the first bytes of an object at its subscriber."
        ("in the pattern transfer, if there is a subscriber");
    "poll_wait_time_ns.{part}" Lower ["poll wait"]
        "From the due time of a message to the request that fetched it; 0 if that request was \
         made before. The first of three parts of the delivery time."
        ("in the pattern poll; the three parts add up to delivery_time_ns");
    "poll_round_trip_time_ns.{part}" Lower ["poll trip"]
        "From the request that fetched a message, or its due time if that is later, to the answer: \
         the second part of the delivery time." ("answer read - max(request sent, due)");
    "handling_time_ns.{part}" Lower ["handling"]
        "From the answer to the message extracted from it: the last part of the delivery time."
        ("message known - answer read");
    "poll_lag_ns.{part}" Neither
        "From the due time of a consumer's request to the request: the generator's error."
        ("request sent - request due");
    "batch_time_ns.{part}" Lower
        "From the due time of the first message of an exchange to the confirmation of the last."
        ("in the pattern batch");
    "session_time_ns.{part}" Lower
        "From the start of connecting until the connection is closed, if it carries one message."
        ("in the pattern session, and whenever a connection carries one message");
    "tls_handshake_time_ns.{part}" Lower
        "From the established transport connection to the completed TLS handshake at the client."
        ("RFC 8446; a part of connect_time_ns");
    "error_time_ns.{part}" Lower
        "From the due time of a message to an answer that is an error."
        ("kept separate, so that fast refusals are not in response times");
    "late_time_ns.max" Lower
        "From the due time to the first arrival of the slowest message that came after the timeout."
        ("arrived - due, over the messages that the ledger counts as late");
    }

    "rates" {
    "loss_ratio" Lower
        "Lost messages, divided by sent." ("of the ledger; unknown where arrivals are not seen");
    "lost" Lower ["lost"] "Lost messages." ("of the ledger, section 2");
    "window_s" Neither
        "The measured window. In an open loop it lasts from the beginning of the measurement to \
         the end of the schedule; in a closed loop or a burst, from the first due time to the last \
         completion." ("end - begin; interrupted: to the interruption");
    "throughput_in_per_s" Higher ["in/s"]
        "Messages handed to the transport within the measured window, divided by its length."
        ("sent in the window / window_s");
    "throughput_out_per_s" Higher ["out/s"]
        "Distinct messages delivered in time within the measured window, divided by its length; \
         later deliveries are excluded."
        ("unique deliveries in the window / window_s; with ten subscribers ten times the rate of \
          messages handed over");
    "goodput_bytes_per_s" Higher
        "Bytes of the bodies delivered within the measured window, without duplicates, divided by \
         its length."
        ("throughput_out_per_s times the mean size of the bodies");
    "drained_after_s" Lower
        "Open loops: from the end of the measured window to the last arrival; 0 if nothing came \
         after it."
        ("last arrival - end of the window");
    "backlog_messages" Lower
        "Open loops: messages that were sent within the measured window and arrived after it. If \
         the server confirms messages, those not yet confirmed at its end count too."
        ("a message that never arrived at a subscriber is in the ledger");
    "settled_messages" Neither
        "Messages that arrived after the measurement began, also late ones; if arrivals cannot be \
         seen, all that were sent. CPU time and energy per message are divided by it."
        ("count");
    "answers_per_wakeup" Neither
        "Answers and arrivals that the generator found when it woke, on average."
        ("answers / wake-ups with an answer");
    "acceptance_ratio" Higher "Delivered in time, divided by sent." ("delivered / sent");
    "errors_ratio" Lower
        "Error answers and failed exchanges, divided by sent." ("errors / sent");
    "held_up_ratio" Lower
        "Open loops: messages that became due while their connection already had as many in flight \
         as load.window allows, divided by sent."
        ("their wait is part of their response time");
    "sent_again" Neither
        "Messages that the server reported as not processed (GOAWAY of HTTP/2) and that were sent \
         again, warm-up included." ("count; their response times include both");
    "rebalances" Lower "New assignments to consumers of a group, warm-up included." ("count");
    "rebalance_pause_s" Lower "Longest pause of a consumer for one." ("notice to next fetch");
    "messages_per_write" Neither
        "Messages that left in one write to a socket, on average." ("above 1 they left in bursts");
    "polls" Neither ["polls"]
        "Requests of all consumers in the measured window." ("count, in the pattern poll");
    "empty_polls" Neither ["empty\npolls"]
        "Requests of consumers that were answered without a message." ("count");
    "messages_per_poll" Neither ["messages\nper poll"]
        "Messages in the answer to one request of a consumer, on average." ("messages / polls");
    "polls_skipped" Lower
        "Requests that were due and not made, because the previous one was not answered yet."
        ("count");
    "polls_refused" Lower
        "Requests of consumers that were answered with an error." ("count");
    "transfer_time_s" Lower
        "From the first send to the last completion." ("if the load is given by count");
    "body_bytes" Neither "Mean size of a body." ("bytes of bodies / messages");
    "ledger_bytes_per_message" Lower
        "Memory that the generator needs to track one message." ("the instrument's own cost");
    "stored_rows" Neither
        "Rows in the store of readings, counted there after the trial." ("SELECT count(*)");
    "subscriber_stall_s" Neither
        "How long subscribers read nothing, from the beginning of the window." ("load.stall");
    "target_cpu_percent.{mean|max}" Lower ["target\nCPU %"]
        "Processor time of the target over the window, in percent of the cores it was given."
        ("all processes and threads of the target: /proc/PID/stat (proc(5)) or its control group");
    "target_cpu_us_per_message" Lower ["target\nµs/msg"]
        "Processor time of the target, its kernel time included, divided by settled_messages."
        ("from the beginning of the window until all is settled / settled_messages");
    "target_memory_bytes.{mean|max}" Lower ["target\nmemory"]
        "Memory that the target holds."
        ("sampled: proportional set where the kernel reports it, else resident set (proc(5))");
    "target_memory_bytes.before" Lower
        "Memory that the target held before the first connection of a repetition in which \
         subscribers stalled."
        ("as target_memory_bytes.max");
    "target_memory_bytes_per_connection" Lower ["memory/\nconnection"]
        "Growth of the target's memory from before the first connection to the end of the window, \
         divided by the connections that are open."
        ("in the pattern hold; under load with 100 kept connections or more, buffers in use \
          included; kernel memory for sockets is excluded");
    "host_cpu_percent.{mean|max}" Lower
        "Processor time of the whole machine, of all processes, in percent of all its cores: the \
         figure that htop shows."
        ("/proc/stat (proc(5)): all but idle and iowait");
    "host_softirq_percent.{mean|max}" Neither
        "Soft interrupts, including the network's receive path, which are charged to no process; \
         in percent of all cores."
        ("/proc/stat (proc(5))");
    "host_steal_percent.{mean|max}" Neither
        "Time that the hypervisor gave to other machines, in percent of all cores."
        ("/proc/stat (proc(5))");
    "generator_cpu_percent.all" Neither
        "Processor time of the whole generator, in percent of a core." ("in the pattern hold");
    "generator_cpu_percent.{mean|max}" Neither ["gen.\nCPU %"]
        "Processor time of the generator's busiest thread, in percent."
        ("CLOCK_THREAD_CPUTIME_ID (clock_gettime(2)) over the window");
    "generator_cpu_us_per_message" Neither
        "Processor time of the generator divided by messages: the instrument's own cost."
        ("all threads, from the beginning of the window until all is settled / sent");
    "generator_memory_bytes_per_connection" Neither
        "Growth of the generator's memory, divided by the connections held."
        ("resident memory at the end of the window - before the first connect");
    "clock_bound_ns" Neither "Clock error of times between hosts of a fleet." ("exchanges");
    "start_skew_bound_ns" Neither "Hosts of a fleet started within this time." ("clock errors");
    "connections_held" Neither
        "Sessions open at the end of the window." ("in the pattern hold");
    "connections_per_s" Higher
        "Sessions, divided by the time from the first connect to the last ready."
        ("in the pattern hold");
    "keep_alives_per_s" Higher
        "Keep-alive messages that clients sent in the window, per second." ("in the pattern hold");
    "keep_alives_unanswered" Lower
        "Keep-alive messages that the target never answered." ("of the whole trial");
    "counter.{any}" Neither
        "The counter `{any}` of the target itself, over the trial; targets/*.toml defines what it \
         counts."
        ("read after the trial; by URL: difference over the trial (--sys)");
    }

    "tls" {
    "tls_handshakes_full" Neither
        "TLS handshakes with certificates, in the whole trial." ("RFC 8446, section 2");
    "tls_handshakes_resumed" Neither
        "TLS handshakes that resumed a session, in the whole trial." ("RFC 8446, section 2.2");
    "tls_handshakes_per_s" Higher
        "TLS handshakes, divided by the time from the first to the last." ("whole trial");
    "tls_handshake_sent_bytes" Neither
        "Bytes that a client sent in a handshake, record headers included, on average."
        ("RFC 8446, section 5.1");
    "tls_handshake_received_bytes" Neither
        "Bytes that a client received in a handshake, record headers included and tickets not, \
         on average."
        ("RFC 8446, section 5.1");
    "tls_record_bytes" Neither
        "What records, tickets and close_notify added to the bytes of the protocol, both \
         directions, in the whole trial."
        ("RFC 8446, section 5");
    "websocket_upgrades" Neither
        "Connections that were upgraded to WebSocket, in the whole trial."
        ("RFC 6455, section 4");
    "websocket_upgrade_sent_bytes" Neither
        "Bytes of the request for an upgrade, per connection." ("RFC 6455, section 4.1");
    "websocket_upgrade_received_bytes" Neither
        "Bytes of the answer to it, per connection." ("RFC 6455, section 4.2");
    "websocket_frame_bytes" Neither
        "What WebSocket frames added to the protocol's own bytes: headers, masks and control \
         frames, both ways, in the whole trial."
        ("RFC 6455, section 5");
    }

    "sealed" {
    "seal_cpu_us_per_message" Lower
        "Processor time to seal a body, divided by the measured messages: a part of the \
         generator's."
        ("of the sealing thread, from content to sealed object");
    "open_cpu_us_per_message" Lower
        "Processor time of a consumer to open a body, divided by the measured deliveries: a part \
         of the generator's."
        ("of the consumer's thread, from sealed object to content; what does not open counts too");
    "sealed_overhead_bytes_per_message" Lower
        "Bytes of a sealed object beyond those of its content: keys, signature, policy, tag."
        ("mean of the messages; the mark behind the object is not in it");
    }

    "energy" {
    "energy_j" Neither
        "Joules measured by the meter in the measured window."
        ("powers by the trapezoidal rule, counters by their differences across wraps");
    "energy_above_idle_j" Neither
        "The part of them above idle: joules minus the mean idle power before and after, times the \
         window."
        ("energy_j - energy_idle_power_w times the window");
    "energy_power_w" Neither "Mean power in the measured window." ("energy_j / window");
    "energy_idle_power_w" Neither
        "Mean power without load, before and after the trial." ("mean of both phases");
    "energy_voltage_v" Neither
        "Mean voltage in the measured window, for the charge drawn." ("of the meter");
    "energy_j_per_message" Lower ["measured\nJ/msg"]
        "Joules in the window, divided by delivered messages." ("energy_j / settled_messages");
    "energy_above_idle_j_per_message" Lower ["above idle\nJ/msg"]
        "Joules above idle, divided by delivered messages."
        ("energy_above_idle_j / settled_messages");
    "energy_j_per_session" Lower ["measured\nJ/session"]
        "Joules in the window, divided by sessions, if every message has its own."
        ("energy_j / sessions, in the pattern session");
    "energy_above_idle_j_per_session" Lower
        "Joules above idle, divided by sessions, if every message has its own."
        ("energy_above_idle_j / sessions");
    "energy_mah_per_session" Lower ["measured\nmAh/session"]
        "Charge drawn in the window, divided by sessions, at the voltage printed with it."
        ("energy_j / energy_voltage_v / 3.6 / sessions");
    "modelled_energy_j_per_message" Lower
        "Modelled, not measured: joules that a producer's device would take for a message if the \
         trial's load continued without end, idling included."
        ("docs/guide/energy-model.md");
    "modelled_energy_j_per_session" Lower
        "Modelled, not measured: joules of a connection of a producer, as measured here."
        ("docs/guide/energy-model.md");
    "modelled_energy_mah_per_session" Lower
        "Modelled, not measured: charge that a connection of a producer takes from the battery at \
         its rated voltage, as measured here; without a battery at the device's voltage."
        ("docs/guide/energy-model.md");
    "modelled_sessions_per_charge" Higher
        "Modelled, not measured: connections per charge, as measured here."
        ("charge / modelled_energy_mah_per_session");
    "modelled_messages_per_charge" Higher
        "Modelled, not measured: messages per charge, as measured here."
        ("energy of a charge / modelled_energy_j_per_message");
    "modelled_lifetime_s" Higher
        "Modelled, not measured: how long a charge lasts if the trial's load continued without \
         end."
        ("energy of a charge / modelled power");
    "modelled_wake_j_per_message" Lower
        "Modelled, not measured: joules above idling of one message after a pause, with the \
         radio's ramp and tail."
        ("docs/guide/energy-model.md");
    "modelled_days_per_charge" Higher
        "Modelled, not measured: how long a charge lasts with one message at the given interval."
        ("docs/guide/energy-model.md");
    }

    "wire" {
    "wire.bytes_per_message" Lower ["wire\nB/msg"]
        "All bytes at the clients' interfaces from Ethernet up, both directions, set-up and \
         tear-down included, divided by messages."
        ("bytes of whole packets / wire.messages");
    "wire.bytes_per_session" Lower ["wire\nB/session"]
        "All bytes at the clients' interfaces from Ethernet up, both directions, divided by \
         connections, those of subscribers among them."
        ("bytes of whole packets / wire.connections");
    "wire.messages" Neither
        "Messages handed over during the capture, warm-up included." ("count");
    "wire.connections" Neither "Connections seen on the wire." ("count");
    "wire.header_bytes" Neither
        "Bytes of Ethernet, IP and transport headers, both directions."
        ("sum of the layers link, ip and transport");
    "wire.dropped_packets" Lower
        "Packets that the kernel dropped before they could be counted."
        ("PACKET_STATISTICS (packet(7))");
    "wire.retransmitted_packets" Lower ["packets\nagain"]
        "Packets that carry bytes already sent." ("sequence numbers (RFC 9293)");
    "wire.too_early_packets" Lower
        "Packets that were retransmitted although the path dropped none: the sender's timer was \
         shorter than the round trip. Absent if the path dropped some."
        ("wire.retransmitted_packets of such a trial");
    "wire.radio.bytes" Neither
        "Bytes as the radio of the path would carry them: the capture with the radio's link layer \
         instead of Ethernet headers."
        ("overhead of the path for each packet (decision 42)");
    "wire.radio.link_bytes" Neither
        "Bytes of the radio's link layer, both directions." ("decision 42");
    "wire.radio.bytes_per_message" Lower
        "Bytes as the radio would carry them, divided by messages." ("decision 42");
    "wire.radio.bytes_per_session" Lower
        "Bytes as the radio would carry them, divided by connections." ("decision 42");
    "wire.radio.link.bytes_per_message" Lower
        "Bytes of the radio's link layer, divided by messages." ("decision 42");
    "wire.radio.link.bytes_per_session" Lower
        "Bytes of the radio's link layer, divided by connections." ("decision 42");
    "wire.keep_alive_packets" Neither
        "Packets that only check whether the peer is alive." ("RFC 9293, section 3.8.4");
    "wire.ack_only_packets" Neither
        "Packets that only acknowledge, both directions." ("RFC 9293");
    "wire.application.bytes_per_message" Lower ["content\nB/msg"]
        "Bytes of the streams, both directions, divided by messages: bodies and all bytes that the \
         protocol adds."
        ("sum of the layers protocol and payload");
    "wire.tls.bytes_per_message" Lower
        "Bytes of TLS, handshakes included, divided by messages." ("sum of the layers of TLS");
    "wire.tls.bytes_per_session" Lower
        "Bytes of TLS, handshakes included, divided by connections." ("sum of the layers of TLS");
    "wire.application.bytes_per_session" Lower
        "Bytes of the streams, divided by connections." ("sum of protocol and payload");
    "wire.kernel.sent_packets" Neither
        "Segments that the clients' sockets sent, as counted by the kernel (`TCP_INFO`), \
         independent of the capture."
        ("tcpi_segs_out (tcp(7))");
    "wire.kernel.received_packets" Neither
        "Segments that the clients' sockets received, as counted by the kernel (`TCP_INFO`), \
         independent of the capture."
        ("tcpi_segs_in (tcp(7))");
    "wire.kernel.sockets_compared" Neither
        "Sockets whose own counters were compared with the capture." ("count");
    "wire.kernel.differences" Lower
        "Figures in which a socket's counters and the capture differ." ("count");
    "wire.transport.bytes_per_message" Lower ["TCP\nB/msg"]
        "Bytes from Ethernet up, divided by messages, of the layer TCP headers, both directions, \
         at the clients' interfaces."
        ("bytes / wire.messages");
    "wire.phases.set_up.bytes_per_session" Lower ["set-up\nB/session"]
        "Bytes from Ethernet up, divided by connections, of the phase set-up, both directions, at \
         the clients' interfaces."
        ("bytes / wire.connections");
    "wire.phases.tear_down.bytes_per_session" Lower ["tear-down\nB/session"]
        "Bytes from Ethernet up, divided by connections, of the phase tear-down, both directions, \
         at the clients' interfaces."
        ("bytes / wire.connections");
    "wire.{place}{layer}_bytes" Neither
        "Bytes of the layer {layer}{place}{both}, at the clients' interfaces."
        ("every byte of a packet is in exactly one layer (decision 15)");
    "wire.{place}sent_bytes" Neither
        "Bytes from Ethernet up, from the clients to the target{place}, at the clients' interfaces."
        ("sizes of whole packets");
    "wire.{place}received_bytes" Neither
        "Bytes from Ethernet up, from the target to the clients{place}, at the clients' interfaces."
        ("sizes of whole packets");
    "wire.{place}bytes" Neither
        "Bytes from Ethernet up{place}{both}, at the clients' interfaces."
        ("sizes of whole packets, without frame check sequence, preamble and gap");
    "wire.{place}ack_only_packets" Neither
        "Packets that only acknowledge{place}{both}, at the clients' interfaces." ("RFC 9293");
    "wire.{place}data_packets" Neither
        "Packets that carry data{place}{both}, at the clients' interfaces." ("count");
    "wire.{place}retransmitted_packets" Lower
        "Packets that carry bytes already sent{place}{both}, at the clients' interfaces."
        ("sequence numbers (RFC 9293)");
    "wire.{place}keep_alive_packets" Neither
        "Packets that check whether the peer is alive{place}{both}, at the clients' interfaces."
        ("RFC 9293, section 3.8.4");
    "wire.{place}packets" Neither
        "Packets{place}{both}, at the clients' interfaces." ("count");
    "wire.{place}ack_only_packets_per_message" Lower
        "Packets that only acknowledge, per message{place}{both}, at the clients' interfaces."
        ("ack_only_packets / wire.messages");
    "wire.{place}ack_only_packets_per_session" Lower
        "Packets that only acknowledge, per session{place}{both}, at the clients' interfaces."
        ("ack_only_packets / wire.connections");
    "wire.{place}packets_per_message" Lower
        "Packets, divided by messages{place}{both}, at the clients' interfaces."
        ("packets / wire.messages");
    "wire.{place}packets_per_session" Lower
        "Packets, divided by connections{place}{both}, at the clients' interfaces."
        ("packets / wire.connections");
    "wire.{place}bytes_per_message" Lower
        "Bytes from Ethernet up, divided by messages{place}{both}, at the clients' interfaces."
        ("bytes / wire.messages");
    "wire.{place}bytes_per_session" Lower
        "Bytes from Ethernet up, divided by connections{place}{both}, at the clients' interfaces."
        ("bytes / wire.connections");
    "tcp.round_trip_us.{mean|max}" Lower
        "Smoothed round-trip time in the kernel of the clients' hosts (`TCP_INFO`), over all \
         connections, read twice a second."
        ("RFC 6298; tcpi_rtt (tcp(7))");
    "tcp.congestion_window_segments.{mean|max}" Neither
        "Congestion window, in segments, in the kernel of the clients' hosts (`TCP_INFO`), over \
         all connections, read twice a second."
        ("tcpi_snd_cwnd (tcp(7))");
    "tcp.retransmitted_segments" Lower
        "Segments that the kernel of the clients' hosts retransmitted (`TCP_INFO`), on all \
         connections."
        ("tcpi_total_retrans (tcp(7)), whole trial");
    }

    "path" {
    "path.{way}.packets" Neither "Packets that reached the path, {way}." ("whole trial");
    "path.{way}.asked_ratio" Neither
        "Share of the path's rate that the load needs; at 1 the path is full, {way}."
        ("bytes of a message on the path x messages per second / rate of the path");
    "path.{way}.lost_packets" Neither
        "Packets that the path lost at random, {way}." ("counted by the forwarder");
    "path.{way}.queue_full_packets" Lower
        "Packets that the path dropped because its queue was full, {way}."
        ("counted by the forwarder");
    "path.{way}.doubled_packets" Neither
        "Packets that the path delivered twice at random, {way}."
        ("counted by the forwarder");
    "path.late_packets" Lower
        "Packets that the forwarder sent more than 1 ms after they were due: its own error, all \
         hosts together."
        ("written - due; raises the warning path-bent");
    "path.lateness_ns.mean" Lower
        "From the due time of a packet on the path to its write by the forwarder: the mean of all \
         packets, all hosts together."
        ("written - due");
    "path.forwarder_cpu_ns" Neither
        "Processor time of the forwarder's thread over the trial, charged neither to generator \
         nor target."
        ("CLOCK_THREAD_CPUTIME_ID (clock_gettime(2))");
    "relay.connections" Neither
        "Connections that the relay accepted and opened towards the target." ("--relay");
    "relay.broken_connections" Lower
        "Of these, those that could not be opened to the target or broke." ("count");
    "relay.up_bytes" Neither
        "Bytes that the relay carried from the generator to the target." ("bytes of the streams");
    "relay.down_bytes" Neither
        "Bytes that the relay carried from the target to the generator." ("bytes of the streams");
    "relay.waiting_bytes.max" Lower
        "The largest number of bytes that waited in the relay for one end, since the relay was \
         started."
        ("largest of all sums of both buffers of a connection");
    }

    "stages" {
    "stage.generator.hop_time_ns.{part}" Lower
        "From the due time of a message to handing it to the transport, of messages whose whole \
         route is known."
        ("sent - due");
    "stage.broker.hop_time_ns.{part}" Lower
        "From handing a message to the transport to its arrival at the gateway: through the \
         broker."
        ("arrived at the gateway - sent");
    "stage.store.hop_time_ns.{part}" Lower
        "From a message's arrival at the store to its commit; in memory, to being kept."
        ("committed - arrived at the store");
    "stage.{stage}.hop_time_ns.{part}" Lower
        "From a message's arrival at the {stage} to its arrival at the next stage, the transport \
         between them included; at the last stage, to being kept."
        ("the hops, and the gap before the first stage, add up to delivery_time_ns");
    "stage.{stage}.gap_time_ns.{part}" Lower
        "From handing a message to the transport to the {stage} having read all of it."
        ("arrived at the first stage - sent, where there is no broker");
    "stage.{stage}.held_time_ns.{part}" Lower
        "From a message's arrival at the {stage} to the confirmation of the next stage."
        ("confirmed - arrived");
    "stage.{stage}.cpu_us_per_message" Lower
        "Processor time of the {stage} divided by stored messages."
        ("all processes of the stage (proc(5))");
    "stage.{stage}.cpu_percent.{mean|max}" Lower
        "Processor time of the {stage} from the beginning of the window until the last message \
         was stored, in percent of the cores that all stages share."
        ("all processes of the stage (proc(5))");
    "stage.{stage}.memory_bytes.{mean|max}" Lower
        "Memory that the {stage} holds." ("as target_memory_bytes.max");
    }

    "background" {
    "background.overlap_ratio" Higher
        "The share of the measured window, draining included, in which the background sent at \
         least half of its offered load."
        ("over stretches of which at least 25 messages are expected");
    "background.sent_per_s" Neither
        "Messages that the background sent in the measured window, divided by its length."
        ("sent in the window / window_s");
    "background.lost_messages" Neither
        "Messages of the background that were lost; messages of the case are not included."
        ("from its first message to its last");
    "background.send_lag_ns.p99" Neither
        "The 99 % quantile of the time from due to sent of the background's own messages, from \
         first to last."
        ("sent - due");
    "background.generator_cpu_percent.mean" Neither
        "Processor time of the background's own generator in the measured window, of one core."
        ("as generator_cpu_percent.max");
    "background.target_cpu_percent.mean" Neither
        "Processor time of the background's own target in the measured window, of its cores."
        ("as target_cpu_percent.mean");
    }

    "emulated" {
    "htop_cpu_percent.mean" Lower
        "Emulated, as a person reads it off htop: the share of the target's cores that all \
         processes used from one reading to the next 1.5 s later (`/proc/stat`, clock ticks), the \
         mean of all readings that contain part of the run, the last one after its end included."
        ("htop");
    "htop_cpu_percent.max" Lower
        "Emulated, as a person reads it off htop: the highest share of the target's cores that all \
         processes used from one reading to the next 1.5 s later, of all readings that contain \
         part of the run."
        ("htop");
    "autocannon_time_s" Lower
        "Emulated, as autocannon would print it: it checks once a second whether it is done, so \
         its time is a whole number of seconds. Its own start, some hundredths more, is excluded."
        ("autocannon");
    "autocannon_per_s" Higher
        "Emulated, as autocannon would print it: the mean of its counts of whole seconds, the last \
         second included even if only partly used."
        ("autocannon");
    "mqtt_stresser_receive_ratio" Higher
        "Emulated, as mqtt-stresser would print it: received divided by published, of clients that \
         received something."
        ("mqtt-stresser");
    "mqtt_stresser_publish_per_s" Higher
        "Emulated, as mqtt-stresser would print it: for each client its messages divided by the \
         time from the first to the last handed over (confirmed, if it waits for that); the median \
         client."
        ("mqtt-stresser");
    "mqtt_stresser_receive_per_s" Higher
        "Emulated, as mqtt-stresser would print it: for each client all received messages divided \
         by the time from the end of publishing to the last one, earlier ones included; the median \
         client."
        ("mqtt-stresser");
    "mqtt_stresser_publish_slowest_per_s" Higher
        "Emulated, as mqtt-stresser would print it: publishing of the slowest client."
        ("mqtt-stresser");
    "mqtt_stresser_publish_fastest_per_s" Higher
        "Emulated, as mqtt-stresser would print it: publishing of the fastest client."
        ("mqtt-stresser");
    "mqtt_stresser_receive_slowest_per_s" Higher
        "Emulated, as mqtt-stresser would print it: receiving of the slowest client, from the end \
         of publishing."
        ("mqtt-stresser");
    "mqtt_stresser_receive_fastest_per_s" Higher
        "Emulated, as mqtt-stresser would print it: receiving of the fastest client, from the end \
         of publishing."
        ("mqtt-stresser");
    "mqtt_stresser_completed_clients" Higher
        "Emulated, as mqtt-stresser would print it: clients that received all messages they \
         published."
        ("mqtt-stresser");
    "sum_of_times_per_s" Higher
        "Emulated arithmetic: messages divided by the sum of all their service times. With N in \
         flight it is N times too small."
        ("messages / sum of service times");
    "ramp_average_per_s" Higher
        "Emulated, as JMeter's aggregate report would print it: samples divided by the time from \
         the start of the first to the end of the last, the ramp included."
        ("JMeter");
    "ramp_average_time_ns.mean" Lower
        "Emulated, as JMeter's aggregate report would print it: the mean time of all samples, \
         errors and the ramp included."
        ("JMeter");
    "ramp_average_time_ns.p50" Lower
        "Emulated, as JMeter's aggregate report would print it: the median time of all samples, \
         errors and the ramp included."
        ("JMeter");
    "ramp_average_time_ns.p90" Lower
        "Emulated, as JMeter's aggregate report would print it: the time that 90 % of all samples \
         do not exceed, errors and the ramp included."
        ("JMeter");
    "ramp_average_time_ns.max" Lower
        "Emulated, as JMeter's aggregate report would print it: the longest of all samples, errors \
         and the ramp included."
        ("JMeter");
    }
};
