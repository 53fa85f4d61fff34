//! Writes the page of a study that never was, for tests of the page in a browser.
//!
//! `cargo run -p weigh-study --example paper -- FILE`

use std::{env, fs, io};

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> io::Result<()> {
    let file = env::args().nth(1).unwrap_or_else(|| "paper.html".to_owned());
    fs::write(file, weigh_study::page::page(&sample::study(), &sample::outcome()))
}
