//! Command line of a tool as data, and the load that its flags make together.

use clap::ArgMatches;
use weigh_model::Emulation;
use weigh_model::body::BodySource;
use weigh_model::endpoint::Credentials;
use weigh_model::units::Bytes;
use weigh_plan::LoadWords;
use weigh_runner::emulate::Comparison;
use weigh_runner::emulate::comparison::Left;
use weigh_runner::exit::Stop;

/// A tool whose command line Weighbridge accepts: a table, and the arithmetic of its flags.
pub struct Tool {
    /// Name of its command: `weigh like wrk`.
    pub command: &'static str,
    /// Description of the command, without the full stop.
    pub about: &'static str,
    /// Protocol of a server that `weigh serve` starts for it.
    pub serves: &'static str,
    /// True if one dash is enough for its flags, as in Go.
    pub has_one_dash: bool,
    /// First word that is ignored: `run` of `k6 run`.
    pub skips: &'static str,
    /// Flags in the order of the help, each a line `NAMES | WORDS | TEXT`. A line that begins with
    /// a blank continues the line before. The last name is that of the value; without one the
    /// flag is a switch. A single name without dashes is the first argument. The text is that of
    /// the help; of an unsupported flag, what to type instead. The words, separated by commas:
    /// - `load KEY`, `set KEY`: the key of the load or the setting of the protocol that the flag
    ///   sets, unless [`Tool::decide`] changes it;
    /// - `number LOW..HIGH`, `time`, `seconds` (a time, or a number of seconds), `truth`: the type
    ///   of the value, if it is neither a text nor the type of the key;
    /// - `default VALUE`, `required`, `excludes LONG`, `many`;
    /// - `refused`: the flag is not supported.
    pub flags: &'static str,
    /// Keys of the load that no flag of it changes, with their values as in a plan.
    pub load: &'static [(&'static str, &'static str)],
    /// Figures of the tool in the record of a run.
    pub emulate: &'static [Emulation],
    /// Sets the parts of the load that the table does not define.
    pub decide: fn(&Given, &mut Asked) -> Result<(), Stop>,
    /// Form of the result.
    pub account: Account,
}

/// Form of the result of a run with a tool's flags.
pub enum Account {
    /// Figures that the tool would have printed, each with the exact one.
    Emulated(fn(&Left<'_>, &Given) -> Comparison),
    /// The measured table, and this sentence: the computation of the tool is not known well enough
    /// to emulate it.
    Measured(&'static str),
}

/// Parsed words after the command.
pub struct Given(pub ArgMatches);

/// Load of a tool's command line.
#[derive(Default)]
pub struct Asked {
    /// Name of the run.
    pub name: &'static str,
    /// Target: a URL, or a word of `weigh compare`.
    pub word: String,
    /// Keys of the protocol, such as `http1.method=GET`.
    pub sets: Vec<String>,
    /// Header fields, as `NAME: VALUE`.
    pub headers: Vec<String>,
    /// Load.
    pub words: LoadWords,
    /// User at the target, if the tool's flags name one.
    pub user: Option<Credentials>,
    /// Number of generator threads, if given.
    pub shards: Option<u32>,
    /// True if nothing is printed while the run lasts.
    pub is_quiet: bool,
}

impl Asked {
    /// Makes this text every body, without a mark that would distinguish messages.
    pub fn send(&mut self, body: BodySource, size: u64) {
        (self.words.body.source, self.words.size) = (Some(body), Some(Bytes(size)));
    }

    /// Makes the content of a file every body; `typed` is the word on the command line.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn send_file(&mut self, typed: &str, file: &str) -> Result<(), Stop> {
        let found = std::fs::metadata(file).map_err(|error| {
            Stop::usage(format!("{typed}: cannot be read: {error}; name a file that can be read"))
        })?;
        self.send(BodySource::File(file.to_owned()), found.len());
        Ok(())
    }
}
