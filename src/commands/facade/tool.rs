//! What a tool's command line is, as data, and the load that its flags make together.

use clap::ArgMatches;
use weigh_model::Emulation;
use weigh_model::body::BodySource;
use weigh_model::endpoint::Credentials;
use weigh_model::units::Bytes;
use weigh_plan::LoadWords;
use weigh_runner::emulate::Comparison;
use weigh_runner::emulate::comparison::Left;
use weigh_runner::exit::Stop;

/// A tool whose command line is understood: a table, and the arithmetic of what its flags do
/// together.
pub struct Tool {
    /// How it is called here: `weigh like wrk`.
    pub command: &'static str,
    /// What the command does, without the last full stop.
    pub about: &'static str,
    /// The protocol of a server that `weigh serve` starts for it.
    pub serves: &'static str,
    /// True if its flags may stand behind one dash, as Go's do.
    pub has_one_dash: bool,
    /// A first word that means nothing here: `run` of `k6 run`.
    pub skips: &'static str,
    /// Its flags, in the order of the help, each a line `NAMES | WORDS | TEXT`; what begins with a
    /// blank belongs to the line before. The names end with that of the value; without one it is
    /// a switch, with nothing else the first word that is not a flag's. The text is the help's,
    /// and of a flag that is not taken over what to do instead. The words, each behind a comma:
    /// - `load KEY`, `set KEY`: the key of the load or the setting of the protocol that it stands
    ///   for, as far as [`Tool::decide`] does not change it;
    /// - `number LOW..HIGH`, `time`, `seconds` (a time, or a number of them), `truth`: how the
    ///   value is read, where it is neither a text nor read as the key is;
    /// - `default VALUE`, `required`, `excludes LONG`, `many`;
    /// - `refused`: it is not taken over.
    pub flags: &'static str,
    /// Keys of the load that no flag of it changes, and their values as in a plan.
    pub load: &'static [(&'static str, &'static str)],
    /// The figures that the record of a run gets from it.
    pub emulate: &'static [Emulation],
    /// Makes what the table has not said of a load.
    pub decide: fn(&Given, &mut Asked) -> Result<(), Stop>,
    /// What is printed of a run.
    pub account: Account,
}

/// What is printed of a run with a tool's flags.
pub enum Account {
    /// The figures that the tool would have printed, each with the exact one.
    Emulated(fn(&Left<'_>, &Given) -> Comparison),
    /// The measured table, and this sentence: how the tool computes its figures is not known well
    /// enough to emulate them.
    Measured(&'static str),
}

/// What the words behind the command said.
pub struct Given(pub ArgMatches);

/// The load of a tool's command line.
#[derive(Default)]
pub struct Asked {
    /// What the run is called.
    pub name: &'static str,
    /// Where it goes: a URL, or a word of `weigh compare`.
    pub word: String,
    /// Keys of the protocol, `http1.method=GET`.
    pub sets: Vec<String>,
    /// Header fields, as `NAME: VALUE`.
    pub headers: Vec<String>,
    /// The load.
    pub words: LoadWords,
    /// Who we are, where the tool's flags say so.
    pub user: Option<Credentials>,
    /// Threads of the generator, where they are said.
    pub shards: Option<u32>,
    /// True if nothing is to be said while the run lasts.
    pub is_quiet: bool,
}

impl Asked {
    /// Makes this every body: nothing is added that would tell messages apart.
    pub fn send(&mut self, body: BodySource, size: u64) {
        (self.words.body.source, self.words.size) = (Some(body), Some(Bytes(size)));
    }

    /// The same with what a file holds, which was `typed` so.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn send_file(&mut self, typed: &str, file: &str) -> Result<(), Stop> {
        let found = std::fs::metadata(file)
            .map_err(|error| Stop::usage(format!("{typed}: cannot be read: {error}")))?;
        self.send(BodySource::File(file.to_owned()), found.len());
        Ok(())
    }
}
