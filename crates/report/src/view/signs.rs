//! The meaning of the signs in tables, one line each, and whether a table has them.

/// A result that must not be used.
pub(crate) const INVALID: &str = "!  invalid, not to be used: see the warnings";

/// A delivery time in place of a response time.
pub(crate) const DELIVERY: &str = "d  delivery time (from due time to delivery): nothing is \
                                   confirmed, so there is no response time";

/// A service time in place of a response time.
pub(crate) const SERVICE: &str = "s  service time (from sending to confirmation): more than \
                                  half of the response time was the generator's lateness";

/// A one-way time in place of a delivery time.
pub(crate) const ONE_WAY: &str = "o  one-way time (from sending to delivery): more than half \
                                  of the delivery time was the generator's lateness";

/// A quantile among the lost messages.
pub(crate) const INFINITE: &str =
    "∞  too many messages were lost or never sent: this percentile has no finite time";

/// The bound of a loss that was not seen.
pub(crate) const NO_LOSS: &str = "0 (≤ x)  none of n lost (≤ 3/n at 95 %): the true loss rate is \
                                  below x with 95 % confidence";

/// A time of which a part is the generator's lateness.
pub(crate) const LATE: &str = "l  part of this time is generator lag: the generator sent late. \
                               Marked if the lag is more than 5 % of the time and more than \
                               its \u{b1} value";

/// The processor time of a server for a message.
pub(crate) const TARGET_CPU: &str = "target µs/msg: CPU time of the target per message";

/// Both rates of a table.
pub(crate) const RATES: &str = "in/s: messages sent per second; out/s: messages delivered per \
                                second";

/// True if a time of the table is followed by this mark. A unit of seconds alone is none.
pub(crate) fn has_mark(table: &str, mark: &str) -> bool {
    let follows = |unit: &&str| {
        let sign = format!("{unit}{mark}");
        table.match_indices(&sign).any(|(at, _)| {
            let behind = table[at + sign.len()..].chars().next();
            behind.is_none_or(char::is_whitespace)
        })
    };
    // The mark for lag may follow the one for delivery times; without a mark of its own it is in
    // brackets.
    ["ns", "µs", "us", "ms", "s", "d", ")"].iter().any(follows)
}
