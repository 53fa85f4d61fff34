//! Records the live view of a run as one SVG with several frames, for the README: a real run in a
//! real terminal (tmux), its characters and colours as they are.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

/// Options of `cargo xtask recording`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file [default: docs/guide/images/watch.svg].
    #[arg(long)]
    output: Option<PathBuf>,
    /// The program, with `--features full` [default: target/release/weigh].
    #[arg(long)]
    weigh: Option<PathBuf>,
    /// Arguments of the command that is shown.
    #[arg(default_value = "compare mqtt http --pattern publish -q 1 -c 50 -R 5k/s -d 12s --live")]
    command: String,
}

/// Runs the command and writes the recording.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let weigh = options.weigh.clone().unwrap_or_else(|| root.join("target/release/weigh"));
    ensure!(weigh.is_file(), "{} is not there: build it first", weigh.display());
    let folder = root.join("target/recording");
    std::fs::create_dir_all(&folder)?;
    let socket = format!("weigh-recording-{}", std::process::id());
    let tmux = |words: &[&str]| -> anyhow::Result<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &socket, "-f", "/dev/null"]).args(words).stdin(Stdio::null());
        let output = tmux.env("TERM", "xterm-256color").output().context("starting tmux")?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let line = format!("cd '{}' && '{}' {}", folder.display(), weigh.display(), options.command);
    let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
    tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, &line])?;
    let mut frames: Vec<String> = Vec::new();
    while frames.len() < FRAMES {
        std::thread::sleep(EVERY);
        let frame = tmux(&["capture-pane", "-p", "-e"])?;
        ensure!(!frame.is_empty() || frames.is_empty(), "the command ended before its recording");
        // Frames before the view and before the first figures show nothing.
        if frame.contains("from the due time") {
            frames.push(frame);
        }
    }
    tmux(&["kill-server"])?;
    let output = options.output.clone();
    let output = output.unwrap_or_else(|| root.join("docs/guide/images/watch.svg"));
    std::fs::write(&output, svg(&frames))?;
    println!("wrote {}: {} frames", output.display(), frames.len());
    Ok(())
}

/// The frames, one after another; where motion is not wanted, the last one.
fn svg(frames: &[String]) -> String {
    let (width, height) = (COLUMNS * CELL_X + 2 * MARGIN, ROWS * CELL_Y + 2 * MARGIN);
    let seconds = frames.len() as f64 * SHOWN_S;
    let share = 100.0 / frames.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"weigh watch in a \
         terminal\"><style>text{{font:{FONT_PX}px ui-monospace,Menlo,Consolas,'DejaVu Sans \
         Mono',monospace;white-space:pre;fill:#d8dee9}}.b{{font-weight:bold}}.f{{opacity:0}}\
         .f:last-of-type{{opacity:1}}@media (prefers-reduced-motion:no-preference){{\
         .f:last-of-type{{opacity:0}}.f{{animation:f {seconds}s step-end infinite}}@keyframes \
         f{{0%{{opacity:1}}{share:.3}%{{opacity:0}}}}}}</style><rect width=\"{width}\" \
         height=\"{height}\" rx=\"8\" fill=\"#1f2430\"/>\n"
    );
    for (number, frame) in frames.iter().enumerate() {
        let delay = number as f64 * SHOWN_S;
        let _ = writeln!(svg, "<g class=\"f\" style=\"animation-delay:{delay}s\">");
        for (row, line) in frame.lines().take(ROWS).enumerate() {
            let y = MARGIN + (row + 1) * CELL_Y - 4;
            for Span { column, text, colour, is_bold } in spans(line) {
                if text.trim().is_empty() {
                    continue;
                }
                let x = MARGIN + column * CELL_X;
                let length = text.chars().count() * CELL_X;
                let bold = if is_bold { " class=\"b\"" } else { "" };
                let style = colour.map_or(String::new(), |own| format!(" style=\"fill:{own}\""));
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(
                    svg,
                    "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\"{bold}{style} \
                     xml:space=\"preserve\">{text}</text>"
                );
            }
        }
        svg.push_str("</g>\n");
    }
    svg + "</svg>\n"
}

/// Characters of a row in one style.
struct Span {
    column: usize,
    text: String,
    colour: Option<&'static str>,
    is_bold: bool,
}

/// The parts of a line that SGR sequences separate (ECMA-48, 8.3.117).
fn spans(line: &str) -> Vec<Span> {
    let mut spans = vec![Span { column: 0, text: String::new(), colour: None, is_bold: false }];
    let mut column = 0;
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[")
            && let Some((codes, behind)) = sequence.split_once('m')
        {
            let last = spans.last().expect("there is one from the start");
            let (mut colour, mut is_bold) = (last.colour, last.is_bold);
            for code in codes.split(';') {
                match code {
                    "" | "0" => (colour, is_bold) = (None, false),
                    "1" => is_bold = true,
                    "39" => colour = None,
                    "31" => colour = Some("#ff8080"),
                    "32" => colour = Some("#87d787"),
                    "33" => colour = Some("#ffd75f"),
                    "34" => colour = Some("#6cb6ff"),
                    "90" => colour = Some("#8a93a6"),
                    _ => {}
                }
            }
            spans.push(Span { column, text: String::new(), colour, is_bold });
            rest = behind;
            continue;
        }
        spans.last_mut().expect("there is one from the start").text.push(letter);
        column += 1;
        rest = &rest[letter.len_utf8()..];
    }
    spans
}

/// Size of the terminal, characters.
const COLUMNS: usize = 100;
const ROWS: usize = 26;

/// Size of a character, and the rim, pixels.
const CELL_X: usize = 8;
const CELL_Y: usize = 17;
const MARGIN: usize = 12;
const FONT_PX: usize = 13;

/// Frames, and the time between two of them when they are taken and when they are shown.
const FRAMES: usize = 8;
const EVERY: Duration = Duration::from_millis(1200);
const SHOWN_S: f64 = 1.2;
