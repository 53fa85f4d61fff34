//! Draws charts without a browser: the bundle runs in QuickJS and returns SVG, and resvg converts
//! it to pixels with an embedded font, so that text is visible on a machine without fonts.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};
use rquickjs::{CatchResultExt, Context, Function, Object, Runtime};
use serde_json::Value;

use crate::charts::{BUNDLE, Theme};

/// Draws pictures that share data: bundle and data are read once.
pub struct Artist {
    context: Context,
    fonts: Arc<fontdb::Database>,
}

/// A picture that could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the picture could not be drawn: {0}")]
pub struct Failed(String);

impl Artist {
    /// Prepares to draw pictures that refer to `shared`.
    ///
    /// # Errors
    /// If the bundle cannot be run.
    pub fn new(shared: &Value) -> Result<Artist, Failed> {
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_memory_limit(MEMORY_BYTES_MAX);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let context = Context::full(&runtime).map_err(failed)?;
        context.with(|ctx| -> Result<(), Failed> {
            ctx.eval::<(), _>(SURROUNDINGS).catch(&ctx).map_err(failed)?;
            ctx.eval::<(), _>(BUNDLE).catch(&ctx).map_err(failed)?;
            let shared = ctx.json_parse(shared.to_string()).catch(&ctx).map_err(failed)?;
            ctx.globals().set("shared", shared).catch(&ctx).map_err(failed)
        })?;
        let mut fonts = fontdb::Database::new();
        for font in FONTS {
            fonts.load_font_data(font.to_vec());
        }
        fonts.set_serif_family(FONT_FAMILY);
        fonts.set_sans_serif_family(FONT_FAMILY);
        fonts.set_monospace_family(FONT_FAMILY);
        Ok(Artist { context, fonts: Arc::new(fonts) })
    }

    /// `picture` as an SVG document of `width` pixels; its height follows from its content.
    ///
    /// # Errors
    /// If the chart library fails.
    pub fn svg(&self, picture: &Value, theme: Theme, width: u32) -> Result<String, Failed> {
        self.context.with(|ctx| {
            let draw = || -> rquickjs::Result<String> {
                let charts: Object<'_> = ctx.globals().get("WeighCharts")?;
                let svg: Function<'_> = charts.get("svg")?;
                let shared: rquickjs::Value<'_> = ctx.globals().get("shared")?;
                svg.call((ctx.json_parse(picture.to_string())?, shared, theme.name(), width))
            };
            draw().catch(&ctx).map_err(failed)
        })
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
        let size = size.ok_or_else(|| Failed("its size is 0".to_owned()))?;
        let mut pixels = Pixmap::new(size.width(), size.height())
            .ok_or_else(|| Failed("there is no memory for its dots".to_owned()))?;
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels.encode_png().map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Failed {
    Failed(error.to_string())
}

/// Functions that ECharts needs when it draws on a server: nothing is called later, because
/// animations are off.
const SURROUNDINGS: &str = "
globalThis.self = globalThis;
globalThis.console ??= { log() {}, warn() {}, error() {} };
globalThis.setTimeout ??= () => 0;
globalThis.clearTimeout ??= () => {};
globalThis.requestAnimationFrame ??= () => 0;
";

/// The family in [`FONTS`]; usvg uses it for every family that it does not find.
const FONT_FAMILY: &str = "Inter";

/// Inter 4 by R. Andersson, SIL Open Font License 1.1 (`fonts/OFL.txt`), only the characters of
/// European languages, arrows and mathematics.
const FONTS: [&[u8]; 2] = [
    include_bytes!("../../fonts/Inter-Regular.ttf"),
    include_bytes!("../../fonts/Inter-SemiBold.ttf"),
];

/// More than any picture needs: a fault in the bundle ends with an error and does not exhaust
/// memory.
const MEMORY_BYTES_MAX: usize = 512 << 20;
const STACK_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn picture() -> Value {
        json!({
            "name": "one", "title": "One bar & one < more", "note": "a note", "height": 120,
            "about": { "unit": "ns" },
            "option": {
                "grid": { "top": 0, "bottom": 30, "right": 10 },
                "xAxis": { "type": "value", "axisLabel": { "formatter": "@mark" } },
                "yAxis": { "type": "category", "data": ["first", "second"] },
                "series": [{ "type": "bar", "data": [1.5e6, 2.5e6], "color": "$c1" }]
            }
        })
    }

    #[test]
    fn a_picture_has_its_text_and_its_colours() {
        let artist = Artist::new(&json!({})).unwrap();
        let svg = artist.svg(&picture(), Theme::Light, 600).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("One bar &amp; one &lt; more"), "{svg}");
        assert!(svg.contains("1 ms") && svg.contains("#d55e00"), "{svg}");
        assert!(!artist.svg(&picture(), Theme::Dark, 600).unwrap().contains("#d55e00"));
    }

    /// The second line and its sign in the legend have dashes, the first has none.
    #[test]
    fn lines_differ_without_colour_as_the_legend_shows() {
        let artist = Artist::new(&json!({})).unwrap();
        let line = |name: &str, look: u32| {
            json!({
                "type": "line", "name": name, "look": look, "color": "$c0", "showSymbol": false,
                "data": [[0, 1], [1, 2]],
            })
        };
        let two = json!({
            "title": "Two", "note": "", "height": 120, "about": {},
            "option": {
                "grid": { "top": 0, "bottom": 30 }, "legend": {},
                "xAxis": { "type": "value" }, "yAxis": { "type": "value" },
                "series": [line("one", 0), line("two", 1)],
            }
        });
        let svg = artist.svg(&two, Theme::Light, 600).unwrap();
        assert_eq!(svg.matches("stroke-dasharray=\"9,4\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 2, "{svg}");
    }

    #[test]
    fn long_titles_and_notes_are_broken_into_lines() {
        let artist = Artist::new(&json!({})).unwrap();
        let mut long = picture();
        long["title"] = json!("title ".repeat(40));
        long["note"] = json!("note ".repeat(80));
        let svg = artist.svg(&long, Theme::Light, 600).unwrap();
        let texts = svg.split("<text").skip(1).filter_map(|text| text.split_once('>'));
        let shown: Vec<usize> = texts
            .filter_map(|(_, text)| text.split_once("</text>"))
            .map(|(text, _)| text.chars().count())
            .collect();
        assert!(shown.len() > 8 && shown.iter().all(|letters| *letters <= 100), "{shown:?}");
    }

    /// The machine's fonts are never asked, so the dots below the title come from our own.
    #[test]
    fn text_is_seen_without_fonts_on_the_machine() {
        let artist = Artist::new(&json!({})).unwrap();
        let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='100' height='40'>\
                   <text x='5' y='30' font-size='30' font-family='Nowhere'>µ ≤ ∞</text></svg>";
        let png = artist.png(svg, 2.0).unwrap();
        assert_eq!(&png[1..4], b"PNG");
        let dots = Pixmap::decode_png(&png).unwrap();
        let dark = dots.pixels().iter().filter(|dot| dot.alpha() > 200).count();
        assert_eq!((dots.width(), dots.height()), (200, 80));
        assert!(dark > 300, "{dark} dots of text");
    }

    #[test]
    fn a_fault_in_a_picture_is_told() {
        let artist = Artist::new(&json!({})).unwrap();
        let broken = json!({ "title": "x", "option": { "series": [{ "$rows": ["none", 0, 1] }] } });
        assert!(artist.svg(&broken, Theme::Light, 600).is_err());
        assert!(artist.png("no picture", 1.0).is_err());
    }

    /// The page and the table must show the same number for the same figure.
    #[test]
    fn the_bundle_shows_numbers_as_the_table_does() {
        let artist = Artist::new(&json!({})).unwrap();
        artist.context.with(|ctx| {
            for (code, text) in [
                ("threeDigits(0.0123)", "0.0123"),
                ("threeDigits(9.996)", "10.0"),
                ("threeDigits(12345.6)", "12,300"),
                ("threeDigits(-1234)", "-1,230"),
                ("time(999.7)", "1.00 µs"),
                ("time(45600000)", "45.6 ms"),
                ("time(2.5e9)", "2.50 s"),
                ("bytes(1536)", "1.50 KiB"),
                ("bytes(3.4e6)", "3.24 MiB"),
                ("count(12345678)", "12,345,678"),
                ("share(99987, 100000)", "99.987 %"),
                ("share(9999999, 10000000)", "99.999990 %"),
                ("share(40000, 45000)", "88.8 %"),
                ("share(3, 1000000)", "0.000300 %"),
                ("figure(null, 'ns')", "–"),
                ("figure(3, '%')", "3.00 %"),
            ] {
                let shown: String = ctx.eval(format!("WeighCharts.{code}")).unwrap();
                assert_eq!(shown, text, "{code}");
            }
        });
    }
}
