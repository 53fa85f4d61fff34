//! Serves the page of the run in a folder, for tests in a browser: `serve_stored FOLDER [ADDRESS]`.
//! Prints a sentence with its URL.

use std::path::PathBuf;

use weigh_watch::web::{Serving, serve};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("name the folder of a run")?);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let serving = Serving { page: Some(address.parse()?), ..Serving::default() };
    Ok(serve(&folder, serving, &|text| println!("{text}"))?)
}
