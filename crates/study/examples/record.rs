//! Takes recordings of studies' runs for the test of answers: of each folder that is named, one
//! that `weigh study run` has left, what answers are made of.
//!
//! `cargo run -p weigh-study --example record -- runs/*-study-*`

use std::env;
use std::io;
use std::path::Path;

#[path = "../tests/recorded/recording.rs"]
mod recording;

fn main() -> io::Result<()> {
    for folder in env::args().skip(1) {
        let written = recording::Recording::take(Path::new(&folder))?.write()?;
        println!("{}", written.display());
    }
    Ok(())
}
