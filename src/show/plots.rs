//! Pictures of a report as files.

use std::path::Path;

use serde_json::Value;
use weigh_report::charts::{Artist, Raster, Theme};
use weigh_report::pictures::Named;
use weigh_study::page::Drawn;

use crate::output_file;
use weigh_runner::exit::{Exit, Stop};

/// Draws pictures into `folder`, which is created if needed.
///
/// # Errors
/// If a picture cannot be drawn or written.
pub fn write(folder: &Path, shared: &Value, pictures: &[Named<'_>]) -> Result<(), Stop> {
    make(folder)?;
    let (artist, raster) = (Artist::new(shared).map_err(failed)?, Raster::with_fonts());
    for Named { name, picture, .. } in pictures {
        let option =
            serde_json::to_value(picture).map_err(|error| Stop::new(Exit::Internal, error))?;
        let svg = artist.svg(&option, Theme::Light, WIDTH_PIXELS).map_err(failed)?;
        pair(folder, name, &svg, raster.png(&svg, DOTS_PER_PIXEL))?;
    }
    Ok(())
}

/// Writes figures of a study, which are drawn already, into `folder`, which is created if
/// needed.
///
/// # Errors
/// As [`write`].
pub fn write_drawn(folder: &Path, figures: &[Drawn]) -> Result<(), Stop> {
    make(folder)?;
    let raster = Raster::with_fonts();
    for figure in figures {
        pair(folder, &figure.name, &figure.svg, raster.png(&figure.svg, DOTS_PER_FIGURE_PIXEL))?;
    }
    Ok(())
}

/// The names that can be chosen, with titles: first those that are written by default.
pub fn list(pictures: &[Named<'_>]) -> String {
    let width = pictures.iter().map(|own| own.name.len()).max().unwrap_or(0).min(NAME_MAX);
    let line = |own: &&Named<'_>| format!("  {:<width$}  {}\n", own.name, own.picture.title);
    let part = |is_default: bool| -> String {
        pictures.iter().filter(|own| own.is_default == is_default).map(|own| line(&own)).collect()
    };
    let (first, others) = (part(true), part(false));
    let mut text = String::new();
    for (heading, lines) in [("written by default:\n", first), ("by name, or all:\n", others)] {
        if !lines.is_empty() {
            text += heading;
            text += &lines;
        }
    }
    text
}

fn make(folder: &Path) -> Result<(), Stop> {
    std::fs::create_dir_all(folder).map_err(|error| {
        let help = "give a folder that can be made with --plots DIR";
        Stop::new(Exit::Record, format!("{}: {error}\nhelp: {help}", folder.display()))
    })
}

/// Writes a picture as SVG and as PNG.
fn pair(
    folder: &Path,
    name: &str,
    svg: &str,
    png: Result<Vec<u8>, weigh_report::charts::Failed>,
) -> Result<(), Stop> {
    let written = |path: &Path, content: &[u8]| {
        output_file::write(path, content).map_err(|error| {
            let help = "give a folder that can be written with --plots DIR";
            Stop::new(Exit::Record, format!("{}: {error}\nhelp: {help}", path.display()))
        })
    };
    written(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
    written(&folder.join(format!("{name}.png")), &png.map_err(failed)?)
}

fn failed(error: weigh_report::charts::Failed) -> Stop {
    Stop::new(Exit::Internal, error)
}

/// Width of a picture: a column of text in a paper or on a page.
const WIDTH_PIXELS: u32 = 900;

/// Columns for names in the list: titles behind longer names begin after two blanks.
const NAME_MAX: usize = 40;

/// Resolution of a picture: 254 dots per inch in print at a width of 18 cm.
const DOTS_PER_PIXEL: f32 = 2.0;

/// Resolution of a study's figure: 254 dots per inch in print at a width of 9 cm.
const DOTS_PER_FIGURE_PIXEL: f32 = 4.0;
