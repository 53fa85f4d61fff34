//! Converts SVG to pixels with an embedded font, so that text is visible on a machine without
//! fonts.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::artist::{Failed, failed};

/// Draws SVG documents as pixels: the fonts are read once.
pub struct Raster {
    fonts: Arc<fontdb::Database>,
}

impl Raster {
    /// Reads the fonts.
    pub fn with_fonts() -> Raster {
        let mut fonts = fontdb::Database::new();
        for font in FONTS {
            fonts.load_font_data(font.to_vec());
        }
        fonts.set_serif_family(FONT_FAMILY);
        fonts.set_sans_serif_family(FONT_FAMILY);
        fonts.set_monospace_family(FONT_FAMILY);
        Raster { fonts: Arc::new(fonts) }
    }

    /// An SVG document as a PNG of `scale` dots for each of its pixels.
    ///
    /// # Errors
    /// If the document cannot be read, its size is 0, or there is too little memory.
    pub fn png(&self, svg: &str, scale: f32) -> Result<Vec<u8>, Failed> {
        let options = usvg::Options {
            font_family: FONT_FAMILY.to_owned(),
            fontdb: Arc::clone(&self.fonts),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(svg, &options).map_err(failed)?;
        let size = tree.size().to_int_size().scale_by(scale);
        let size = size.ok_or_else(|| failed("its size is 0"))?;
        let mut pixels = Pixmap::new(size.width(), size.height())
            .ok_or_else(|| failed("there is no memory for its dots"))?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(failed)
    }
}

/// The family in [`FONTS`]; usvg uses it for every family that it does not find.
const FONT_FAMILY: &str = "Inter";

/// Inter 4 by R. Andersson, SIL Open Font License 1.1 (`fonts/OFL.txt`), only the characters of
/// European languages, arrows and mathematics.
const FONTS: [&[u8]; 2] = [
    include_bytes!("../../fonts/Inter-Regular.ttf"),
    include_bytes!("../../fonts/Inter-SemiBold.ttf"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine's fonts are never asked, so the dots below the title come from our own.
    #[test]
    fn text_is_seen_without_fonts_on_the_machine() {
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='40'>\
                   <text x='5' y='30' font-size='30' font-family='Nowhere'>µ ≤ ∞</text></svg>";
        let png = Raster::with_fonts().png(svg, 2.0).unwrap();
        assert_eq!(&png[1..4], b"PNG");
        let dots = Pixmap::decode_png(&png).unwrap();
        let dark = dots.pixels().iter().filter(|dot| dot.alpha() > 200).count();
        assert_eq!((dots.width(), dots.height()), (200, 80));
        assert!(dark > 300, "{dark} dots of text");
    }

    #[test]
    fn what_is_no_picture_is_an_error() {
        assert!(Raster::with_fonts().png("no picture", 1.0).is_err());
    }
}
