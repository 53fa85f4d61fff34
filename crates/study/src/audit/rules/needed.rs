//! What each rule needs, so that it can be asked.

use weigh_model::Rule;

/// Figures that a rule needs, for the list of unchecked rules.
pub fn needs(rule: Rule) -> &'static str {
    match rule {
        Rule::L01 => "throughput, mean latency and clients of one cell",
        Rule::L02 => "throughput and mean latency of one cell",
        Rule::L03 => "throughput and the offered rate (rate, or interval and clients)",
        Rule::L04 => "a ramp, or the least and the most clients of the window",
        Rule::L05 => "six times along an axis, or a stated grid",
        Rule::L06 => "percentages of counts, with their denominator",
        Rule::L07 => "two statistics of one cell",
        Rule::L08 => "what completes on two sides (complete, qos)",
        Rule::L09 => "CPU percentages",
        Rule::L10 => "acceptance along an axis, or a capacity with its trials",
        Rule::L11 => "figures under a background load (load)",
        Rule::L12 => "a share of errors and a latency",
        Rule::L13 => "two sides that are compared",
        Rule::L14 => "header bytes and payload",
        Rule::L15 => "connections opened and messages (connection)",
        Rule::L16 => "messages in flight on two sides (in_flight)",
        Rule::L17 => "quantiles with their number of samples",
        Rule::L18 => "the relays on two paths (relays)",
        Rule::L19 => "a figure that is called a capacity, or a load as fast as possible",
        Rule::L20 => "one-way times",
        Rule::L21 => "what a confirmation means on two sides (durability)",
    }
}
