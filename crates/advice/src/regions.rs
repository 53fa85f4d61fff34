//! The regions of a map: which option is the best for every pair of interval and size.

use crate::advised::Advised;
use crate::answer::{Inputs, families, figures_at};
use crate::break_even::Axis;
use crate::figures::Figures;

/// A map of the best options.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Times between two messages, seconds: the columns.
    pub every_s: Vec<f64>,
    /// Sizes of bodies, bytes: the rows.
    pub sizes: Vec<u64>,
    /// By row and column: the options that cannot be distinguished from the best, the first one
    /// first; indices of the offers. Empty where nothing is known.
    pub best: Vec<Vec<Vec<usize>>>,
}

/// Computes the map for the first criterion.
pub fn regions(inputs: &Inputs<'_>) -> Regions {
    let families = families(inputs);
    let every_s: Vec<f64> = EVERY_S.to_vec();
    let sizes: Vec<u64> = SIZES.to_vec();
    let criterion = &inputs.situation.matters[..1];
    let at = |size: u64, every_s: f64| -> Vec<usize> {
        let figures: Vec<Option<Figures>> = inputs
            .offers
            .iter()
            .map(|offer| {
                let mut sized = offer.clone();
                sized.session = offer.session.clone().map(|session| session.resized(size));
                let mut situation = inputs.situation.clone();
                situation.traffic.size = weigh_model::units::Bytes(size);
                let inputs = Inputs { situation: &situation, ..*inputs };
                let found = figures_at(&sized, &inputs, &families, Some((Axis::Every, every_s)));
                found.filter(|own| own.get(criterion[0]).is_some())
            })
            .collect();
        let borrowed: Vec<Option<&Figures>> = figures.iter().map(Option::as_ref).collect();
        Advised::of(&borrowed, criterion).set
    };
    let row = |size: &u64| every_s.iter().map(|every_s| at(*size, *every_s)).collect();
    let best = sizes.iter().map(row).collect();
    Regions { every_s, sizes, best }
}

/// From a second to a day.
const EVERY_S: [f64; 13] =
    [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0];

/// From 16 B to 16 KiB.
const SIZES: [u64; 6] = [16, 64, 256, 1_024, 4_096, 16_384];
