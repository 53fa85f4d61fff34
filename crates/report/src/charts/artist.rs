//! Draws charts without a browser: the bundle runs in QuickJS and returns SVG.

use rquickjs::{CatchResultExt, Context, Function, Object, Runtime};
use serde_json::Value;

use crate::charts::{BUNDLE, Theme};

/// Draws pictures that share data: bundle and data are read once.
pub struct Artist {
    context: Context,
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
        Ok(Artist { context })
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

    /// `picture` as a part of a page: SVG of `width` pixels without title, in the page's font and
    /// in colours that it names (`var(--ink)`), so that it follows light, dark and print.
    ///
    /// # Errors
    /// If the chart library fails.
    pub fn inline(&self, picture: &Value, width: u32) -> Result<String, Failed> {
        self.context.with(|ctx| {
            let draw = || -> rquickjs::Result<String> {
                let charts: Object<'_> = ctx.globals().get("WeighCharts")?;
                let inline: Function<'_> = charts.get("inline")?;
                let shared: rquickjs::Value<'_> = ctx.globals().get("shared")?;
                inline.call((ctx.json_parse(picture.to_string())?, shared, width))
            };
            draw().catch(&ctx).map_err(failed)
        })
    }
}

pub(super) fn failed(error: impl std::fmt::Display) -> Failed {
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

    /// A page decides on its colours; nothing else may differ between light, dark and paper.
    #[test]
    fn a_picture_of_a_page_names_its_colours_and_has_no_title() {
        let artist = Artist::new(&json!({})).unwrap();
        let svg = artist.inline(&picture(), 600).unwrap();
        assert!(svg.contains("fill=\"var(--c1)\"") && svg.contains("1 ms"), "{svg}");
        for absent in ["One bar", "#d55e00", "font-family", "<style", "class="] {
            assert!(!svg.contains(absent), "{absent}: {svg}");
        }
        assert!(svg.starts_with("<svg width=\"600\" height="), "{svg}");
        let own = artist.svg(&picture(), Theme::Light, 600).unwrap();
        assert!(svg.len() < own.len(), "{} and {}", svg.len(), own.len());
    }

    /// Twenty points at even distances: a line as steps whose rounding does not add up.
    #[test]
    fn a_long_line_goes_through_its_points() {
        let artist = Artist::new(&json!({})).unwrap();
        let data: Vec<[f64; 2]> = (0..20).map(|x| [f64::from(x), f64::from(x * x % 7)]).collect();
        let line = json!({
            "name": "line", "title": "Line", "note": "", "height": 120, "about": {},
            "option": {
                "grid": { "top": 0, "bottom": 20, "left": 0, "right": 0 },
                "xAxis": { "type": "value", "min": 0, "max": 19 }, "yAxis": { "type": "value" },
                "series": [{ "type": "line", "color": "$c0", "showSymbol": false, "data": data }],
            }
        });
        let svg = artist.inline(&line, 600).unwrap();
        let path = svg.split("d=\"M").filter_map(|path| path.split_once('l'));
        let path = path.max_by_key(|(_, steps)| steps.find('"')).unwrap();
        let start: f64 = path.0.split(' ').next().unwrap().parse().unwrap();
        let steps = path.1.split('"').next().unwrap().replace('-', " -");
        let numbers: Vec<f64> = steps.split_whitespace().map(|n| n.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 2 * 19, "{steps}");
        let mut places = vec![start];
        places.extend(numbers.iter().step_by(2).scan(start, |x, step| {
            *x += step;
            Some(*x)
        }));
        let width = (places[19] - start) / 19.0;
        assert!(width > 25.0, "{places:?}");
        for (number, x) in places.iter().enumerate() {
            assert!((x - start - width * number as f64).abs() < 0.15, "{number}: {places:?}");
        }
    }

    #[test]
    fn a_fault_in_a_picture_is_told() {
        let artist = Artist::new(&json!({})).unwrap();
        let broken = json!({ "title": "x", "option": { "series": [{ "$rows": ["none", 0, 1] }] } });
        assert!(artist.svg(&broken, Theme::Light, 600).is_err());
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
