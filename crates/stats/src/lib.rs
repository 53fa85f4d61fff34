//! Weighs numbers: estimates with their intervals, comparisons, quantiles, histograms. Knows no
//! unit, protocol or file: numbers go in, numbers come out.

pub mod histogram;
