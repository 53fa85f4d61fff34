//! Writes the outputs that the documents show, by running the commands that they name.
//!
//! A document marks an output by two comments around a block of text:
//!
//! ```text
//! <!-- output of `weigh compare mqtt`, first table: begin -->
//! <!-- output of `weigh compare mqtt`, first table: end -->
//! ```
//!
//! What stands before the block, such as a description of the machine, stays. The part is one of
//! `first table`, `tables`, `first N lines`, `last N lines` and `from "WORDS"` (from the line that
//! begins with them to the next empty one), or missing for all of it. With
//! `` beside `weigh serve …` `` after the command, that server runs meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

/// Options of `cargo xtask outputs`.
#[derive(Args)]
pub struct Options {
    /// Documents [default: README.md and all below docs/]
    documents: Vec<PathBuf>,
    /// Program to run, built with `--release --features full`
    #[arg(long, value_name = "FILE", default_value = "target/release/weigh")]
    weigh: PathBuf,
    /// List the commands and run none
    #[arg(long)]
    list: bool,
}

/// Runs the commands, each once, and writes their outputs into the documents.
///
/// # Errors
/// A document that cannot be read or has a broken mark, a command that cannot be run or prints
/// nothing.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let documents = match &options.documents[..] {
        [] => all_documents(root)?,
        given => given.to_vec(),
    };
    let mut printed: BTreeMap<Asked, String> = BTreeMap::new();
    for document in documents {
        let mut text = std::fs::read_to_string(&document)
            .with_context(|| format!("{} cannot be read", document.display()))?;
        for mark in marks(&text).with_context(|| document.display().to_string())? {
            println!("{}: {}", document.display(), mark.asked.command);
            if options.list {
                continue;
            }
            if !printed.contains_key(&mark.asked) {
                let (weigh, folder) = (root.join(&options.weigh), root.join(FOLDER));
                let output = output(&weigh, &folder, &mark.asked)?;
                printed.insert(mark.asked.clone(), output);
            }
            text = written(&text, &mark, &printed[&mark.asked])?;
        }
        if !options.list {
            std::fs::write(&document, text)?;
        }
    }
    Ok(())
}

/// A command, and the server that runs beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    command: String,
    server: Option<String>,
}

/// An output that a document shows.
#[derive(Debug)]
struct Mark {
    begin: String,
    end: String,
    asked: Asked,
    part: Part,
}

/// The part of the output that is shown.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    All,
    FirstTable,
    Tables,
    First(usize),
    Last(usize),
    From(String),
}

/// The marks of a document, in order.
fn marks(text: &str) -> Result<Vec<Mark>> {
    let begins = text.lines().filter(|line| line.starts_with(OPENING));
    begins.filter(|line| line.ends_with(BEGIN)).map(mark).collect()
}

fn mark(line: &str) -> Result<Mark> {
    let words = line.trim_start_matches(OPENING).trim_end_matches(BEGIN);
    let mut quoted = words.split('`');
    let (_, command) = (quoted.next(), quoted.next().unwrap_or_default());
    let mut rest = quoted.next().unwrap_or_default();
    let server = (rest == " beside ").then(|| quoted.next().unwrap_or_default().to_owned());
    if server.is_some() {
        rest = quoted.next().unwrap_or_default();
    }
    let part = part(rest.trim_start_matches(", ")).with_context(|| format!("{line}: {PARTS}"))?;
    let end = line.replace(BEGIN, END);
    let asked = Asked { command: command.to_owned(), server };
    Ok(Mark { begin: line.to_owned(), end, asked, part })
}

fn part(words: &str) -> Option<Part> {
    let number = |words: &str| words.strip_suffix(" lines")?.parse().ok();
    match words {
        "" => Some(Part::All),
        "first table" => Some(Part::FirstTable),
        "tables" => Some(Part::Tables),
        _ => match words.split_once(' ')? {
            ("first", rest) => number(rest).map(Part::First),
            ("last", rest) => number(rest).map(Part::Last),
            ("from", rest) => Some(Part::From(rest.trim_matches('"').to_owned())),
            _ => None,
        },
    }
}

impl Part {
    fn of(&self, output: &str) -> String {
        let lines: Vec<&str> = output.trim_matches('\n').lines().collect();
        let is_rule = |line: &&str| !line.is_empty() && line.chars().all(|letter| letter == '─');
        match self {
            Part::All => lines.join("\n"),
            Part::FirstTable => {
                let begin = lines.iter().position(is_rule).unwrap_or(0);
                let end = lines.iter().skip(begin + 1).position(is_rule);
                lines[begin..end.map_or(lines.len(), |end| begin + end + 2)].join("\n")
            }
            Part::Tables => {
                let begin = lines.iter().position(is_rule).unwrap_or(0);
                let end = lines.iter().rposition(is_rule).unwrap_or(lines.len() - 1);
                lines[begin..=end].join("\n")
            }
            Part::From(words) => {
                let from = lines.iter().skip_while(|line| !line.trim_start().starts_with(words));
                let block: Vec<&str> = from.take_while(|line| !line.is_empty()).copied().collect();
                block.join("\n")
            }
            Part::First(count) => lines[..lines.len().min(*count)].join("\n"),
            Part::Last(count) => lines[lines.len().saturating_sub(*count)..].join("\n"),
        }
    }
}

/// The document with this output in the block of `mark`.
fn written(text: &str, mark: &Mark, output: &str) -> Result<String> {
    let begin = text.find(&mark.begin).context("the mark is gone")? + mark.begin.len();
    let length = text[begin..].find(&mark.end);
    let end = begin + length.with_context(|| format!("{}: not in the document", mark.end))?;
    // A description of the machine may stand before the block.
    let before = text[begin..end].split(FENCE).next().unwrap_or_default().trim();
    let before = if before.is_empty() { String::new() } else { format!("{before}\n\n") };
    let shown = mark.part.of(output);
    ensure!(!shown.is_empty(), "{}: the output has no such part", mark.begin);
    let block = format!("\n\n{before}{FENCE}text\n{shown}\n{FENCE}\n\n");
    Ok(format!("{}{block}{}", &text[..begin], &text[end..]))
}

/// What the command prints on standard output, in this folder.
fn output(weigh: &Path, folder: &Path, asked: &Asked) -> Result<String> {
    std::fs::create_dir_all(folder)?;
    let program = |command: &str| -> Result<Command> {
        let arguments = STARTS.iter().find_map(|start| command.strip_prefix(start));
        let arguments = arguments.with_context(|| format!("{command}: it is not weigh"))?;
        // A shell reads the quotes; `$0` is the program.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {arguments}")]).arg(weigh).current_dir(folder);
        Ok(shell)
    };
    let server = match &asked.server {
        Some(server) => Some(Server::start(program(server)?)?),
        None => None,
    };
    let started = Instant::now();
    let ran = program(&asked.command)?.stderr(Stdio::inherit()).output()?;
    drop(server);
    println!("  {}, {:.0} s", ran.status, started.elapsed().as_secs_f64());
    let output = String::from_utf8(ran.stdout)?;
    ensure!(!output.trim().is_empty(), "{}: it printed nothing", asked.command);
    Ok(output)
}

/// A server that is stopped when it goes out of scope.
struct Server(Child);

impl Server {
    fn start(mut command: Command) -> Result<Server> {
        let mut server = Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        std::thread::sleep(SETTLING);
        if let Some(status) = server.0.try_wait()? {
            bail!("the server beside the command ended: {status}");
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// README.md and every Markdown file below docs/.
fn all_documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut documents = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    Ok(documents)
}

/// Folder of the runs, which stay for pictures.
const FOLDER: &str = "target/outputs";

const OPENING: &str = "<!-- output of ";
const BEGIN: &str = ": begin -->";
const END: &str = ": end -->";
const FENCE: &str = "```";

/// How a command of a document begins.
const STARTS: [&str; 2] = ["cargo run --release -- ", "weigh "];

const PARTS: &str = "write `first table`, `tables`, `first N lines`, `last N lines`, \
    `from \"WORDS\"`, or nothing for all";

/// Time for a server to listen.
const SETTLING: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
Text.

<!-- output of `weigh limit x` beside `weigh serve mqtt`, last 2 lines: begin -->

A machine:

```text
old
```

<!-- output of `weigh limit x` beside `weigh serve mqtt`, last 2 lines: end -->

More.
";

    #[test]
    fn the_block_is_replaced_and_the_rest_stays() {
        let marks = marks(DOCUMENT).unwrap();
        let [mark] = &marks[..] else { panic!("{marks:?}") };
        assert_eq!(mark.asked.command, "weigh limit x");
        assert_eq!(mark.asked.server.as_deref(), Some("weigh serve mqtt"));
        assert_eq!(mark.part, Part::Last(2));
        let written = written(DOCUMENT, mark, "one\ntwo\nthree\n").unwrap();
        assert_eq!(written, DOCUMENT.replace("old", "two\nthree"));
    }

    #[test]
    fn parts_are_cut_at_rules_and_empty_lines() {
        let output = "title\n───\nhead\n═══\nrow\n───\n\n───\nother\n───\n";
        assert_eq!(Part::FirstTable.of(output), "───\nhead\n═══\nrow\n───");
        assert_eq!(Part::Tables.of(output).lines().count(), 9);
        assert_eq!(Part::From("hea".to_owned()).of("a\n  head:\n    b\n\nc"), "  head:\n    b");
        assert!(mark("<!-- output of `weigh x`, some lines: begin -->").is_err());
    }
}
