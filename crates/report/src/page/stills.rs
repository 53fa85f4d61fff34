//! Pictures in the page itself: there without scripts, in print, in an archive and in a screenshot.
//! The script puts its own, which answers to the pointer, in the place of each.

use serde_json::Value;

/// `body` with a drawing in the places of its first [`STILLS_MAX`] pictures. `gallery` has their
/// options and shared data. A picture that cannot be drawn remains a place for the script.
#[cfg(feature = "pictures")]
pub(crate) fn filled(body: &str, gallery: &Value) -> String {
    use crate::charts::Artist;

    let Ok(artist) = Artist::new(&gallery["shared"]) else { return body.to_owned() };
    let pictures = gallery["pictures"].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts = body.split(PLACE);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for (number, part) in parts.enumerate() {
        filled += PLACE;
        let place = part.split_once(EMPTY).filter(|_| number < STILLS_MAX);
        let drawn = place.and_then(|(name, rest)| {
            let mut picture = pictures.iter().find(|picture| picture["name"] == name)?.clone();
            // Parts of a drawing are named after it, and a picture may be on the page twice.
            picture["name"] = format!("still{number}").into();
            Some((name, artist.inline(&picture, WIDTH_PIXELS).ok()?, rest))
        });
        match drawn {
            Some((name, svg, rest)) => {
                filled += &format!("{name}\">{svg}</div>{rest}");
            }
            None => filled += part,
        }
    }
    filled
}

/// `body` as it is: this build has no script engine.
#[cfg(not(feature = "pictures"))]
pub(crate) fn filled(body: &str, _: &Value) -> String {
    body.to_owned()
}

/// The beginning and the end of an empty place, as [`super::document::figure`] writes it. Names
/// of pictures need no escaping.
#[cfg(feature = "pictures")]
const PLACE: &str = " data-picture=\"";
#[cfg(feature = "pictures")]
const EMPTY: &str = "\"></div>";

/// More pictures would make a page of many cases too large; the script draws the others.
#[cfg(feature = "pictures")]
const STILLS_MAX: usize = 40;

/// The width of the content of a page in a window of 1280 pixels.
#[cfg(feature = "pictures")]
const WIDTH_PIXELS: u32 = 1232;
