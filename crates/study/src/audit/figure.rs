//! A printed figure, with its place, and everything known about it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Serialize;

/// Place of a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// The line in it, from 1; 0 where a figure is of the file as a whole.
    pub line: u64,
    /// The table, or the tool.
    pub table: String,
    /// The series, as written.
    pub series: String,
}

impl fmt::Display for Place {
    /// `results.csv:12 [Table 3]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.table.is_empty() {
            write!(f, " [{}]", self.table)?;
        }
        Ok(())
    }
}

/// Quantity of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Time of one exchange, seconds.
    Latency,
    /// Time from one place to another, seconds.
    OneWay,
    /// Time of a whole load, seconds.
    Span,
    /// Messages or requests per second.
    Throughput,
    /// A rate at which messages were offered, per second.
    Offered,
    /// Share of a processor, of 1.
    Cpu,
    /// Messages that arrived over messages sent, of 1.
    Accepted,
    /// Failed exchanges over all, of 1.
    Failed,
    /// Number of samples or messages.
    Count,
    /// Number of messages that should have arrived.
    Expected,
    /// Number of messages that arrived.
    Received,
    /// Number of connections opened.
    Connections,
    /// Number of clients.
    Clients,
    /// Bytes of TCP headers.
    HeaderBytes,
    /// Bytes of payload.
    Payload,
    /// Anything else.
    Other,
}

/// Which statistic of its quantity a figure is.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// A quantile between 0 and 1; the median is 0.5.
    Quantile(f64),
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The standard deviation.
    Deviation,
    /// None was named.
    Plain,
}

/// One printed figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its place.
    pub place: Place,
    /// What is compared: a protocol, a system; several in a claim about a ratio.
    pub subjects: Vec<String>,
    /// Other keys that distinguish its cell, in the words of the vocabulary.
    pub keys: BTreeMap<String, String>,
    /// Its quantity.
    pub quantity: Quantity,
    /// Which statistic it is.
    pub statistic: Statistic,
    /// True if it is called a capacity, a plateau or the like.
    pub is_limit: bool,
    /// True for a sentence about other figures: a ratio, a change.
    pub is_claim: bool,
    /// The value in the unit of its quantity.
    pub value: f64,
    /// Half of its last printed digit, in the same unit.
    pub rounding: f64,
    /// As it was printed, with its unit.
    pub printed: String,
}

/// Something that is known beside the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The table it is about; all of them without.
    pub table: Option<String>,
    /// The subject it is about; all of them without.
    pub subject: Option<String>,
    /// A word of the vocabulary.
    pub key: String,
    /// Its value, with its unit.
    pub value: String,
    /// False if it comes from elsewhere: from the code of the authors, not from their text.
    pub is_said: bool,
}

/// All figures of one study, and what is known beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The study, or the file.
    pub name: String,
    /// Its figures, in the order of the files.
    pub figures: Vec<Figure>,
    /// Further facts about them.
    pub facts: Vec<Fact>,
    /// Indices of the results of each cell of each table.
    cells: HashMap<String, Vec<usize>>,
    /// Indices of the results of each cell, whatever their table.
    everywhere: HashMap<String, Vec<usize>>,
}

/// A value that was found for a figure, and whether its authors say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'e> {
    /// The value, with its unit.
    pub value: &'e str,
    /// False if only a side file says it.
    pub is_said: bool,
}

impl Evidence {
    /// Nothing known yet of a study.
    pub fn of(name: &str) -> Evidence {
        Evidence { name: name.to_owned(), ..Evidence::default() }
    }

    /// Sorts the results into their cells; asked for again once figures were added.
    pub fn sort_into_cells(&mut self) {
        (self.cells, self.everywhere) = (HashMap::new(), HashMap::new());
        for (index, figure) in self.figures.iter().enumerate() {
            if !figure.is_claim {
                let cell = cell_key(figure);
                self.everywhere.entry(cell.clone()).or_default().push(index);
                let in_table = format!("{}\0{cell}", figure.place.table);
                self.cells.entry(in_table).or_default().push(index);
            }
        }
    }

    /// The fact about `figure` with the key `key`: its own series first, then its table, then the
    /// rest.
    pub fn known<'e>(&'e self, figure: &'e Figure, key: &str) -> Option<Known<'e>> {
        if let Some(value) = figure.keys.get(key) {
            return Some(Known { value, is_said: true });
        }
        let fits = |fact: &&Fact| {
            let in_table = fact.table.as_ref().is_none_or(|table| *table == figure.place.table);
            let of_subject = fact.subject.as_ref().is_none_or(|subject| figure.is_of(subject));
            fact.key == key && in_table && of_subject
        };
        // The narrowest wins: a table and a subject say more than the study as a whole.
        let narrowness =
            |fact: &&Fact| (fact.table.is_some(), fact.subject.is_some(), !fact.is_said);
        let found = self.facts.iter().filter(fits).max_by_key(narrowness);
        found.map(|fact| Known { value: &fact.value, is_said: fact.is_said })
    }

    /// The fact about one subject of `figure`, for claims that have two.
    pub fn known_of<'e>(&'e self, figure: &'e Figure, subject: &str, key: &str) -> Option<&'e str> {
        let in_table =
            |fact: &&Fact| fact.table.as_ref().is_none_or(|table| *table == figure.place.table);
        let is_of = |fact: &&Fact| fact.subject.as_ref().is_some_and(|s| is_same(s, subject));
        let fact = self.facts.iter().filter(in_table).find(|fact| fact.key == key && is_of(fact));
        let own = || figure.keys.get(key).map(String::as_str);
        fact.map(|fact| fact.value.as_str()).or_else(own)
    }

    /// The tables, in their order.
    pub fn tables(&self) -> Vec<&str> {
        let mut tables: Vec<&str> = Vec::new();
        for figure in &self.figures {
            if !tables.contains(&figure.place.table.as_str()) {
                tables.push(&figure.place.table);
            }
        }
        tables
    }

    /// The results of a table: no claims about others.
    pub fn results_of<'e>(&'e self, table: &'e str) -> impl Iterator<Item = &'e Figure> {
        self.results().filter(move |figure| figure.place.table == table)
    }

    /// All results: no claims about others.
    pub fn results(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(|figure| !figure.is_claim)
    }

    /// The figures of the same cell of the same table, itself included.
    pub fn cell_of<'e>(&'e self, figure: &Figure) -> impl Iterator<Item = &'e Figure> + use<'e> {
        let in_table = format!("{}\0{}", figure.place.table, cell_key(figure));
        self.at(self.cells.get(&in_table))
    }

    /// The figures of the same cell in all tables, itself included.
    pub fn same_cell<'e>(&'e self, figure: &Figure) -> impl Iterator<Item = &'e Figure> + use<'e> {
        self.at(self.everywhere.get(&cell_key(figure)))
    }

    /// The results of each cell, whatever their table.
    pub fn all_cells(&self) -> impl Iterator<Item = Vec<&Figure>> {
        let mut cells: Vec<&Vec<usize>> = self.everywhere.values().collect();
        cells.sort();
        cells.into_iter().map(|cell| cell.iter().map(|index| &self.figures[*index]).collect())
    }

    fn at<'e>(
        &'e self,
        cell: Option<&'e Vec<usize>>,
    ) -> impl Iterator<Item = &'e Figure> + use<'e> {
        cell.into_iter().flatten().map(|index| &self.figures[*index])
    }
}

impl Figure {
    /// True if one of its subjects is `subject`.
    pub fn is_of(&self, subject: &str) -> bool {
        self.subjects.iter().any(|own| is_same(own, subject))
    }

    /// Its subjects in one word; empty without one.
    pub fn subject(&self) -> String {
        self.subjects.join(" / ")
    }

    /// Its subjects, or its table without any.
    pub fn named(&self) -> String {
        if self.subjects.is_empty() { self.place.table.clone() } else { self.subject() }
    }

    /// Name of its cell: `HTTP, clients 60, messages 10000`.
    pub fn cell(&self) -> String {
        let keys = self.keys.iter().filter(|(_, value)| !value.is_empty());
        let parts = keys.map(|(key, value)| format!("{key} {value}"));
        let parts: Vec<String> = [self.named()].into_iter().chain(parts).collect();
        parts.join(", ")
    }

    /// The smallest and the largest value that is printed like this.
    pub fn bounds(&self) -> (f64, f64) {
        (self.value - self.rounding, self.value + self.rounding)
    }
}

/// Keys that two figures of one cell have in common.
fn cell_key(figure: &Figure) -> String {
    let mut text = figure.subjects.join("\u{1}");
    for (key, value) in &figure.keys {
        text += &format!("\u{2}{key}\u{3}{value}");
    }
    text
}

fn is_same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}
