//! The published studies that Weighbridge carries: every one is read and expanded, every published
//! cell is the authors', and a miniature of each runs to its end.

mod cells;
mod formulas;
mod loading;
mod miniature;
mod world;
