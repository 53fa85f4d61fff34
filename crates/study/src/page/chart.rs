//! Draws charts as SVG without a script: there in print, with scripts off and in a screenshot. On a
//! page the colours are those of its style, in light and dark; in a file of its own they are fixed.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::axis::{Axis, short};

/// A chart: two axes and what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chart {
    /// Description for readers who cannot see it.
    pub(super) title: String,
    /// The axis along.
    pub(super) x: Axis,
    /// The axis up.
    pub(super) y: Axis,
    /// A range of x that is shaded.
    pub(super) shade: Option<(f64, f64)>,
    /// Contents of the chart, in drawing order.
    pub(super) traces: Vec<Trace>,
}

/// Something in one colour, with one entry in the legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trace {
    /// Its entry; empty for none.
    pub(super) label: String,
    /// The number of its colour.
    pub(super) colour: usize,
    /// The number of its marks' shape.
    pub(super) shape: usize,
    /// An area: x, its lower and its upper edge.
    pub(super) band: Vec<(f64, f64, f64)>,
    /// Lines; the first is in the legend.
    pub(super) strokes: Vec<Stroke>,
    /// A line that was fitted to the points; it is not in the legend.
    pub(super) fit: Option<Stroke>,
    /// Points.
    pub(super) marks: Vec<Mark>,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stroke {
    /// Its points.
    pub(super) points: Vec<(f64, f64)>,
    /// Dash of the line.
    pub(super) dash: Dash,
    /// Its width, pixels.
    pub(super) width: f64,
}

/// Dash of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dash {
    /// Not at all.
    Solid,
    /// Into dashes.
    Dashed,
    /// Into dots.
    Dotted,
    /// Into dashes and dots.
    Mixed,
}

/// A point, with its interval where it has one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    /// Along.
    pub(super) x: f64,
    /// Up.
    pub(super) y: f64,
    /// The interval's lower end; `None` where there is none.
    pub(super) low: Option<f64>,
    /// The interval's upper end; `None` where there is none.
    pub(super) high: Option<f64>,
    /// Look of the points.
    pub(super) look: Look,
    /// Its value in words.
    pub(super) words: String,
}

/// Look of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Filled: measured here.
    Solid,
    /// An outline: not measured here, or measured otherwise.
    Hollow,
    /// A cross: must not be used.
    Cross,
}

/// Place of a chart: page or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// On a page, in the colours of its style.
    Page,
    /// In a file of its own, dark on white.
    File,
}

impl Ground {
    /// The attribute that makes a group this colour.
    fn colour(self, number: usize) -> String {
        let number = number % COLOURS.len();
        match self {
            Ground::Page => format!("class=\"c{number}\""),
            Ground::File => format!("color=\"{}\"", COLOURS[number]),
        }
    }

    /// The attribute that makes a group the colour of text, of secondary text or of grid lines.
    fn ink(self, name: &str) -> String {
        let fixed = match name {
            "ink" => "#1b1f24",
            "muted" => "#5d6670",
            _ => "#e1e4e8",
        };
        match self {
            Ground::Page => format!("class=\"{name}\""),
            Ground::File => format!("color=\"{fixed}\""),
        }
    }

    /// The attribute that fills an outline with what is behind it.
    fn hollow(self) -> &'static str {
        match self {
            Ground::Page => "class=\"hollow\"",
            Ground::File => "fill=\"#fff\"",
        }
    }
}

impl Chart {
    /// The chart as one SVG element with its legend.
    pub(super) fn svg(&self, ground: Ground) -> String {
        let place = Place::of(self);
        let legend = legend(&self.traces, ground);
        let height = place.bottom() + BELOW + legend.rows as f64 * LEGEND_ROW;
        let mut svg = match ground {
            Ground::Page => format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\""),
            Ground::File => format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
                 viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Inter, sans-serif\" role=\"img\""
            ),
        };
        let _ = write!(
            svg,
            " aria-label=\"{}\" font-size=\"{FONT}\" fill=\"none\" stroke-linejoin=\"round\">",
            escape(&self.title)
        );
        if ground == Ground::File {
            svg += "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
        }
        svg += &self.axes(&place, ground);
        for trace in &self.traces {
            let _ = write!(svg, "<g {} stroke=\"currentColor\">", ground.colour(trace.colour));
            svg += &place.band(&trace.band);
            let strokes = trace.strokes.iter().chain(&trace.fit);
            svg.extend(strokes.map(|stroke| place.stroke(stroke)));
            svg.extend(trace.marks.iter().map(|mark| place.mark(mark, trace.shape, ground)));
            svg += "</g>";
        }
        let _ = write!(
            svg,
            "<g transform=\"translate(0 {})\">{}</g></svg>",
            place.bottom() + BELOW,
            legend.svg
        );
        svg
    }

    /// Shade, grid, numbers and labels.
    fn axes(&self, place: &Place<'_>, ground: Ground) -> String {
        let (left, right) = (place.left, WIDTH - RIGHT);
        let (top, bottom) = (TOP, place.bottom());
        let mut svg = format!("<g {} stroke=\"currentColor\">", ground.ink("hair"));
        if let Some((from, to)) = self.shade
            && let (Some(from), Some(to)) = (place.x(from), place.x(to))
        {
            let (from, to) = (from.clamp(left, right), to.clamp(left, right));
            let _ = write!(
                svg,
                "<path d=\"M{} {top}H{}V{bottom}H{}Z\" fill=\"currentColor\" stroke=\"none\" \
                 opacity=\"0.6\"/>",
                at(from),
                at(to),
                at(from)
            );
        }
        for mark in &self.y.marks {
            if let Some(y) = place.y(*mark) {
                let _ = write!(svg, "<path d=\"M{} {}H{right}\"/>", at(left), at(y));
            }
        }
        let _ = write!(svg, "</g><g {} fill=\"currentColor\">", ground.ink("muted"));
        for mark in &self.y.marks {
            if let Some(y) = place.y(*mark) {
                svg += &text(left - 5.0, y + 3.5, "end", &short(*mark));
            }
        }
        for mark in &self.x.marks {
            if let Some(x) = place.x(*mark) {
                svg += &text(x, bottom + 14.0, "middle", &short(*mark));
                let _ = write!(
                    svg,
                    "<path d=\"M{} {}v4\" stroke=\"currentColor\"/>",
                    at(x),
                    at(bottom)
                );
            }
        }
        let _ =
            write!(svg, "<path d=\"M{} {bottom}H{right}\" stroke=\"currentColor\"/></g>", at(left));
        let labels = text(0.0, TOP - 10.0, "start", &self.y.label)
            + &text((left + right) / 2.0, bottom + 29.0, "middle", &self.x.label);
        let _ = write!(svg, "<g {} fill=\"currentColor\">{labels}</g>", ground.ink("ink"));
        svg
    }
}

/// Positions on the drawing, pixels from its upper left corner.
struct Place<'c> {
    chart: &'c Chart,
    left: f64,
}

impl Place<'_> {
    fn of(chart: &Chart) -> Place<'_> {
        let widest = chart.y.marks.iter().map(|mark| width(&short(*mark))).fold(0.0, f64::max);
        Place { chart, left: widest + 8.0 }
    }

    fn bottom(&self) -> f64 {
        TOP + HEIGHT
    }

    fn x(&self, value: f64) -> Option<f64> {
        Some(self.left + self.chart.x.place(value)? * (WIDTH - RIGHT - self.left))
    }

    fn y(&self, value: f64) -> Option<f64> {
        Some(self.bottom() - self.chart.y.place(value)? * HEIGHT)
    }

    /// A point; what lies beyond the axis up is drawn at its end.
    fn both(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.x(x)?, self.y(y)?.clamp(TOP, self.bottom())))
    }

    fn band(&self, band: &[(f64, f64, f64)]) -> String {
        let floor = self.chart.y.value(0.0);
        let upper = band.iter().filter_map(|(x, _, high)| self.both((*x, *high)));
        let lower = band.iter().rev().filter_map(|(x, low, _)| self.both((*x, low.max(floor))));
        match path(upper.chain(lower)) {
            Some(path) => format!(
                "<path d=\"{path}Z\" fill=\"currentColor\" stroke=\"none\" opacity=\"0.13\"/>"
            ),
            None => String::new(),
        }
    }

    /// A line, as far as it lies between the ends of the axis up.
    fn stroke(&self, stroke: &Stroke) -> String {
        let points = stroke.points.iter();
        let points = points.filter_map(|(x, y)| Some((self.x(*x)?, self.y(*y)?)));
        let points: Vec<(f64, f64)> = points.collect();
        let mut path = String::new();
        let mut end = None;
        for pair in points.windows(2) {
            let Some((from, to)) = self.within(pair[0], pair[1]) else { continue };
            if end != Some(from) {
                let _ = write!(path, "M{} {}", at(from.0), at(from.1));
            }
            let _ = write!(path, "L{} {}", at(to.0), at(to.1));
            end = Some(to);
        }
        match path.is_empty() {
            true => path,
            false => {
                let (width, dash) = (stroke.width, stroke.dash.attribute());
                format!("<path d=\"{path}\" stroke-width=\"{width}\"{dash}/>")
            }
        }
    }

    /// The part of a straight line that lies between the ends of the axis up.
    fn within(&self, from: (f64, f64), to: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
        let (top, bottom) = (TOP, self.bottom());
        let is_beyond =
            |end: f64, other: f64| end < top && other < top || end > bottom && other > bottom;
        if is_beyond(from.1, to.1) {
            return None;
        }
        let cut = |end: (f64, f64), other: (f64, f64)| {
            let y = end.1.clamp(top, bottom);
            let part = if y == end.1 { 0.0 } else { (y - end.1) / (other.1 - end.1) };
            (end.0 + (other.0 - end.0) * part, y)
        };
        Some((cut(from, to), cut(to, from)))
    }

    fn mark(&self, mark: &Mark, shape: usize, ground: Ground) -> String {
        let Some((x, y)) = self.both((mark.x, mark.y)) else { return String::new() };
        let title = format!("<title>{}</title>", escape(&mark.words));
        let drawn = match mark.look {
            Look::Solid => drawn_shape(shape, x, y, "fill=\"currentColor\"", &title),
            Look::Hollow => drawn_shape(shape, x, y, ground.hollow(), &title),
            Look::Cross => format!(
                "<path d=\"M{} {}l7 7m0 -7l-7 7\" stroke-width=\"1.5\">{title}</path>",
                at(x - 3.5),
                at(y - 3.5)
            ),
        };
        self.whisker(mark, x) + &drawn
    }

    /// The interval: a line between its ends, with a cap at each, and an arrow at an end that lies
    /// beyond the axis.
    fn whisker(&self, mark: &Mark, x: f64) -> String {
        if mark.low.is_none() && mark.high.is_none() {
            return String::new();
        }
        let end = |value: Option<f64>, is_low: bool| {
            let (edge, endless) = match is_low {
                true => (self.bottom(), f64::NEG_INFINITY),
                false => (TOP, f64::INFINITY),
            };
            let y = self.y(value.unwrap_or(endless)).unwrap_or(edge);
            let is_beyond = if is_low { y > edge + 0.5 } else { y < edge - 0.5 };
            if is_beyond || value.is_none() { (edge, true) } else { (y, false) }
        };
        let (low, high) = (end(mark.low, true), end(mark.high, false));
        let cap = |(y, is_beyond): (f64, bool), tip: f64| match is_beyond {
            true => format!("M{} {}l3 {tip}l3 {}", at(x - 3.0), at(y - tip), -tip),
            false => format!("M{} {}h6", at(x - 3.0), at(y)),
        };
        format!(
            "<path d=\"M{} {}V{}{}{}\"/>",
            at(x),
            at(low.0),
            at(high.0),
            cap(low, 4.0),
            cap(high, -4.0)
        )
    }
}

impl Dash {
    fn attribute(self) -> &'static str {
        match self {
            Dash::Solid => "",
            Dash::Dashed => " stroke-dasharray=\"5 3\"",
            Dash::Dotted => " stroke-dasharray=\"1.5 2.5\"",
            Dash::Mixed => " stroke-dasharray=\"7 2.5 1.5 2.5\"",
        }
    }
}

/// A path through points; `None` where there are fewer than two.
fn path(points: impl Iterator<Item = (f64, f64)>) -> Option<String> {
    let points: Vec<(f64, f64)> = points.collect();
    if points.len() < 2 {
        return None;
    }
    let texts: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", at(*x), at(*y))).collect();
    Some(format!("M{}", texts.join("L")))
}

/// A mark: circle, square, triangle, diamond or triangle upside down.
fn drawn_shape(shape: usize, x: f64, y: f64, fill: &str, title: &str) -> String {
    let path = match shape % SHAPES {
        0 => {
            let (x, y) = (at(x), at(y));
            return format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"3.4\" {fill}>{title}</circle>");
        }
        1 => format!("M{} {}h6.2v6.2h-6.2z", at(x - 3.1), at(y - 3.1)),
        2 => format!("M{} {}l4 6.8h-8z", at(x), at(y - 4.2)),
        3 => format!("M{} {}l4.2 4.2l-4.2 4.2l-4.2 -4.2z", at(x), at(y - 4.2)),
        _ => format!("M{} {}l4 -6.8h-8z", at(x), at(y + 4.2)),
    };
    format!("<path d=\"{path}\" {fill}>{title}</path>")
}

/// The entries of the legend and the rows that they take.
struct Legend {
    svg: String,
    rows: usize,
}

fn legend(traces: &[Trace], ground: Ground) -> Legend {
    let mut svg = String::new();
    let (mut x, mut row) = (0.0, 0);
    for trace in traces.iter().filter(|trace| !trace.label.is_empty()) {
        let needed = SWATCH + width(&trace.label) + LEGEND_GAP;
        if x > 0.0 && x + needed - LEGEND_GAP > WIDTH {
            (x, row) = (0.0, row + 1);
        }
        let y = f64::from(row) * LEGEND_ROW + 9.0;
        let _ = write!(
            svg,
            "<g {} stroke=\"currentColor\">{}</g><g {} fill=\"currentColor\">{}</g>",
            ground.colour(trace.colour),
            swatch(trace, x, y, ground),
            ground.ink("ink"),
            text(x + SWATCH, y + 3.8, "start", &trace.label)
        );
        x += needed;
    }
    Legend { rows: if svg.is_empty() { 0 } else { row as usize + 1 }, svg }
}

/// A line and a mark as the trace has them.
fn swatch(trace: &Trace, x: f64, y: f64, ground: Ground) -> String {
    let line = trace.strokes.first().map_or(String::new(), |stroke| {
        let dash = stroke.dash.attribute();
        let (x, y, width) = (at(x), at(y), stroke.width);
        format!("<path d=\"M{x} {y}h20\" stroke-width=\"{width}\"{dash}/>")
    });
    // A cross says something of one point and not of what is measured.
    let usual = trace.marks.iter().find(|mark| mark.look != Look::Cross);
    let mark = usual.or(trace.marks.first()).map_or(String::new(), |mark| {
        let fill = match mark.look {
            Look::Hollow => ground.hollow(),
            _ => "fill=\"currentColor\"",
        };
        drawn_shape(trace.shape, x + 10.0, y, fill, "")
    });
    line + &mark
}

fn text(x: f64, y: f64, anchor: &str, words: &str) -> String {
    let (x, y, words) = (at(x), at(y), escape(words));
    format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>")
}

/// A coordinate with one decimal, which is finer than a screen's dots.
fn at(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Approximate width of a text, pixels.
fn width(words: &str) -> f64 {
    words.chars().count() as f64 * FONT * CHARACTER
}

/// Colours that colour-blind people tell apart: Okabe and Ito, "Color Universal Design" (2008),
/// darkened where they stand on white. The style of the page has those for the dark.
const COLOURS: [&str; 8] =
    ["#0072b2", "#c04f00", "#00805c", "#a8528a", "#7a6000", "#3b8ec2", "#8c2d19", "#555c64"];

/// Shapes of marks before they begin again.
const SHAPES: usize = 5;

/// As wide as a phone's screen without its margins, so that texts have their size on all screens;
/// pixels.
const WIDTH: f64 = 372.0;

/// Between the axes, pixels.
const HEIGHT: f64 = 176.0;

/// Above them, for the label of the axis up, pixels.
const TOP: f64 = 22.0;

/// Right of them, pixels.
const RIGHT: f64 = 16.0;

/// Below them, for numbers and label of the axis along, pixels.
const BELOW: f64 = 38.0;

/// Size of texts, pixels.
const FONT: f64 = 11.0;

/// Width of a character over the size of its text, about; fonts that are wide included.
const CHARACTER: f64 = 0.6;

/// A row of the legend, pixels.
const LEGEND_ROW: f64 = 16.0;

/// A line and a mark in the legend, pixels.
const SWATCH: f64 = 26.0;

/// Between two entries of the legend, pixels.
const LEGEND_GAP: f64 = 14.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)], marks: Vec<Mark>) -> String {
        let stroke = Stroke { points: points.to_vec(), dash: Dash::Solid, width: 1.6 };
        let trace =
            Trace { label: "a <b>".to_owned(), strokes: vec![stroke], marks, ..Trace::default() };
        let axis = || Axis::linear("x".to_owned(), 0.0, 10.0);
        let chart =
            Chart { title: "t".to_owned(), x: axis(), y: axis(), shade: None, traces: vec![trace] };
        chart.svg(Ground::File)
    }

    fn line(svg: &str) -> &str {
        let end = svg.find("\" stroke-width=\"1.6\"").expect("a line");
        svg[..end].rsplit('"').next().unwrap_or_default()
    }

    #[test]
    fn a_line_ends_where_the_axis_does() {
        let bottom = TOP + HEIGHT;
        let flat = chart(&[(0.0, 0.0), (5.0, 0.0)], Vec::new());
        assert!(line(&flat).ends_with(&format!(" {bottom}")));
        let steep = chart(&[(0.0, 0.0), (10.0, 20.0), (10.0, 30.0)], Vec::new());
        let halfway = line(&steep).rsplit('L').next().unwrap();
        assert!(halfway.ends_with(&format!(" {TOP}")), "{halfway}");
        assert_eq!(line(&steep).matches('L').count(), 1, "what is beyond has no line");
    }

    #[test]
    fn an_interval_beyond_the_axis_has_an_arrow() {
        let mark = |high| Mark {
            x: 5.0,
            y: 5.0,
            low: Some(4.0),
            high,
            look: Look::Solid,
            words: String::new(),
        };
        let arrow = |high| chart(&[], vec![mark(high)]).contains("l3 -4l3 4");
        assert!(!arrow(Some(6.0)) && arrow(Some(60.0)) && arrow(None));
    }

    #[test]
    fn labels_are_text_and_no_markup() {
        assert!(chart(&[], Vec::new()).contains("a &lt;b&gt;"));
    }
}
