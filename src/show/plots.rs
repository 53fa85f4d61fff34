//! Every picture of a report as a file of its own.

use std::path::Path;

use weigh_charts::{Artist, Theme};
use weigh_report::pictures::Gallery;

use crate::exit::{Exit, Stop};
use crate::output_file;

/// Draws every picture into `folder`, making it where it is not there; how many there are.
pub fn write(folder: &Path, gallery: &Gallery) -> Result<usize, Stop> {
    let written = |path: &Path, content: &[u8]| {
        output_file::write(path, content).map_err(|error| {
            let mend = "give a folder that can be written with --plots DIR";
            Stop::new(Exit::Record, format!("{}: {error}; {mend}", path.display()))
        })
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        let mend = "give a folder that can be made with --plots DIR";
        Stop::new(Exit::Record, format!("{}: {error}; {mend}", folder.display()))
    })?;
    let failed = |error: weigh_charts::Failed| Stop::new(Exit::Internal, error);
    let artist = Artist::new(&gallery.shared).map_err(failed)?;
    for picture in &gallery.pictures {
        let option =
            serde_json::to_value(picture).map_err(|error| Stop::new(Exit::Internal, error))?;
        let svg = artist.svg(&option, Theme::Light, WIDTH_PIXELS).map_err(failed)?;
        let png = artist.png(&svg, DOTS_PER_PIXEL).map_err(failed)?;
        written(&folder.join(format!("{}.svg", picture.name)), svg.as_bytes())?;
        written(&folder.join(format!("{}.png", picture.name)), &png)?;
    }
    Ok(gallery.pictures.len())
}

/// As wide as a column of text in a paper or on a page.
const WIDTH_PIXELS: u32 = 900;

/// Sharp on paper at 18 cm: 254 dots an inch.
const DOTS_PER_PIXEL: f32 = 2.0;
