//! Round numbers for the marks of an axis. They are for finite values above 0.

/// The next number from `value` up of the form 1, 2, 2.5 or 5 times a power of ten.
pub fn nice(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let fits = [1.0, 2.0, 2.5, 5.0].iter().find(|step| *step * power >= value * (1.0 - 1e-9));
    fits.unwrap_or(&10.0) * power
}

/// The largest number up to `value` of the form 1, 2 or 5 times a power of ten.
pub fn mark_at_most(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let fits = [5.0, 2.0, 1.0].iter().find(|step| *step * power <= value * (1.0 + 1e-9));
    fits.unwrap_or(&1.0) * power
}

/// The number of that form after `mark`, which is one.
pub fn next_mark(mark: f64) -> f64 {
    let power = 10f64.powf((mark * (1.0 + 1e-9)).log10().floor());
    match (mark / power).round() as u32 {
        1 => 2.0 * power,
        2 => 5.0 * power,
        _ => 10.0 * power,
    }
}
