//! The portable form of recorded times: the values that occurred, each with its count. A histogram
//! has 23,000 buckets, and a trial fills some hundreds of them.

use weigh_model::portable::{Portable, Reader, Unreadable};

/// Appends values at the ends of their buckets, ascending, with their counts.
pub(crate) fn put(recorded: impl Iterator<Item = (u64, u64)>, out: &mut Vec<u8>) {
    let mut last = 0;
    let mut steps = Vec::new();
    for (value_ns, count) in recorded {
        steps.push((value_ns - last, count));
        last = value_ns;
    }
    steps.put(out);
}

/// Takes what [`put`] appended and gives it to `record`, value and count.
///
/// # Errors
/// If the bytes are not such values, or if `record` refuses one.
pub(crate) fn take(
    from: &mut Reader<'_>,
    mut record: impl FnMut(u64, u64) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let mut value_ns: u64 = 0;
    for (step, count) in Vec::<(u64, u64)>::take(from)? {
        let next = value_ns.checked_add(step);
        value_ns = next.ok_or(Unreadable::Wrong("a time beyond 64 bits"))?;
        record(value_ns, count)?;
    }
    Ok(())
}
