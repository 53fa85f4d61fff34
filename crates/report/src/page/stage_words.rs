//! What the metrics of stages are: their names are made of a stage and a quantity.

/// What the metric `name` is without its statistic; `None` if it is not one of a stage.
pub(crate) fn definition(name: &str) -> Option<String> {
    let (stage, quantity) = name.strip_prefix("stage.")?.split_once('.')?;
    let what = match (stage, quantity) {
        ("generator", "hop_time_ns") => {
            "From the moment a message was due to handing it to the transport, of messages whose \
             whole way is known."
                .to_owned()
        }
        ("broker", "hop_time_ns") => {
            "From handing a message to the transport to its arrival at the gateway: through the \
             broker."
                .to_owned()
        }
        ("store", "hop_time_ns") => {
            "From a message's arrival at the store to its commit; in memory, to being kept."
                .to_owned()
        }
        (stage, "hop_time_ns") => format!(
            "From a message's arrival at the {stage} to its arrival at the next stage, the way \
             between them included; where it is the last, to being kept."
        ),
        (stage, "gap_time_ns") => {
            format!("From handing a message to the transport to the {stage} having read all of it.")
        }
        (stage, "held_time_ns") => format!(
            "From a message's arrival at the {stage} to the confirmation of what lies behind it."
        ),
        (stage, "cpu_us_per_message") => {
            format!("Processor time of the {stage} divided by stored messages.")
        }
        (stage, "cpu_percent") => format!(
            "Processor time of the {stage} from the begin of the window until the last message \
             was stored, in percent of the cores that all stages share."
        ),
        (stage, "memory_bytes") => format!("Memory that the {stage} holds."),
        _ => return None,
    };
    Some(what)
}
