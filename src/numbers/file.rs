//! A file of numbers: one in each line, with its group or its levels in the columns before it.

use std::fmt;
use std::io::Read;

use csv::{ReaderBuilder, StringRecord, Trim};

use weigh_runner::input_file::{self, CONTENT_BYTES_MAX};

/// Content of a file, line by line.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberFile {
    /// Names of all columns, from the header or made up.
    pub columns: Vec<String>,
    /// Columns before the value, and the value.
    pub rows: Vec<(Vec<String>, f64)>,
    /// True if every line is two runs of digits and a comma, without a header: it may be one number
    /// with a decimal comma.
    pub may_be_decimal: bool,
}

/// Why a file cannot be read as numbers, and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    line: Option<u64>,
    problem: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl NumberFile {
    /// Reads lines of columns that commas, semicolons or tabs separate, with the number in the last
    /// column. Skips empty lines and those that start with `#`. A first line without a number in
    /// its last column is a header.
    ///
    /// # Errors
    /// Input that cannot be read, is too long or has no numbers, and the line where a number is
    /// missing.
    pub fn read(input: impl Read) -> Result<NumberFile, Unreadable> {
        let failed = |problem: String| Unreadable { line: None, problem };
        let bytes = input_file::read(input, CONTENT_BYTES_MAX);
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .delimiter(delimiter(bytes))
            .from_reader(bytes);
        let may_be_decimal = delimiter(bytes) == b',';
        let mut file = NumberFile { columns: Vec::new(), rows: Vec::new(), may_be_decimal };
        for record in reader.records() {
            let record = record.map_err(|error| Unreadable {
                line: error.position().map(csv::Position::line),
                problem: "the file is not text in UTF-8: write it in UTF-8".to_owned(),
            })?;
            let line = record.position().map(|position| line_of(bytes, position));
            file.take(&record).map_err(|problem| Unreadable { line, problem })?;
        }
        if file.rows.is_empty() {
            return Err(failed("the file has no numbers: write one in each line".to_owned()));
        }
        Ok(file)
    }

    fn take(&mut self, record: &StringRecord) -> Result<(), String> {
        let mut cells: Vec<String> = record.iter().map(str::to_owned).collect();
        let Some(last) = cells.pop() else { return Ok(()) };
        if cells.is_empty() && last.is_empty() {
            return Ok(());
        }
        let is_first = self.columns.is_empty();
        if !is_first && cells.len() + 1 != self.columns.len() {
            let (here, before) = (cells.len() + 1, self.columns.len());
            return Err(format!(
                "{here} columns, {before} before: give every line the same number \
                                of columns"
            ));
        }
        let is_digits =
            |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        self.may_be_decimal &= cells.len() == 1 && cells.iter().chain([&last]).all(is_digits);
        match last.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                if is_first {
                    self.columns = made_up(cells.len());
                }
                self.rows.push((cells, value));
                Ok(())
            }
            Ok(_) => Err(format!("{last} is not a finite number: leave the line out")),
            Err(_) if is_first => {
                self.columns = cells;
                self.columns.push(last);
                Ok(())
            }
            Err(_) => Err(not_a_number(&last)),
        }
    }
}

/// Returns the line of a record. The reader counts from the end of the record before, so this skips
/// empty lines and comments.
fn line_of(bytes: &[u8], position: &csv::Position) -> u64 {
    let rest = bytes.get(position.byte() as usize..).unwrap_or_default();
    let is_passed = |line: &&[u8]| line.trim_ascii().is_empty() || line.starts_with(b"#");
    let passed = rest.split(|byte| *byte == b'\n').take_while(is_passed).count();
    position.line() + passed as u64
}

fn not_a_number(text: &str) -> String {
    match text {
        "" => "the last column is empty: give it a number, or leave the line out".to_owned(),
        _ if text.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            format!("{text:?} is not a number: write the fraction with a point")
        }
        _ => {
            format!(
                "{text:?} is not a number: write plain numbers without units in the last \
                     column"
            )
        }
    }
}

fn made_up(levels: usize) -> Vec<String> {
    let mut names: Vec<String> = match levels {
        1 => vec!["group".to_owned()],
        _ => (1..=levels).map(|level| format!("level {level}")).collect(),
    };
    names.push("value".to_owned());
    names
}

/// Returns the separator of columns: the one of comma, semicolon and tab that occurs most often in
/// the first line with any. A semicolon wins against a comma, which may be a decimal one.
fn delimiter(bytes: &[u8]) -> u8 {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let has = |line: &[u8], mark: &u8| line.contains(mark);
    let first = lines.find(|line| b";\t,".iter().any(|mark| has(line, mark)));
    first.and_then(|line| b";\t,".iter().copied().find(|mark| has(line, mark))).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NumberFile, String> {
        NumberFile::read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn headers_comments_and_separators_are_found_out() {
        let plain = read("# times\n1\n\n 2.5 \n3e2").unwrap();
        assert_eq!(plain.columns, ["value"]);
        assert_eq!(
            plain.rows.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
            [1.0, 2.5, 300.0]
        );
        let groups = read("\u{feff}server;ms\na;1\nb;2\n").unwrap();
        assert_eq!(groups.columns, ["server", "ms"]);
        assert_eq!(groups.rows[1], (vec!["b".to_owned()], 2.0));
        let levels = read("h1\tr1\t5\nh1\tr2\t6\n").unwrap();
        assert_eq!(levels.columns, ["level 1", "level 2", "value"]);
        assert_eq!(read("a,1").unwrap().columns, ["group", "value"]);
    }

    #[test]
    fn a_decimal_comma_is_not_a_group_and_its_value() {
        for (text, may_be) in [
            ("1,5\n1,6\n", true),
            ("group,value\n1,5\n", false),
            ("a,5\n", false),
            ("1,5.5\n", false),
            ("1;5\n", false),
            ("15\n16\n", false),
        ] {
            assert_eq!(read(text).unwrap().may_be_decimal, may_be, "{text:?}");
        }
    }

    #[test]
    fn errors_name_the_line_and_the_fix() {
        for (text, line, fix) in [
            ("1\n2\nx\n", "line 3: ", "plain numbers"),
            ("a,1\nb\n", "line 2: ", "the same"),
            ("a;1\nb;2,5\n", "line 2: ", "with a point"),
            ("a,1\n# more\nb,inf\n", "line 3: ", "leave the line out"),
            ("# first\n\n1\n\n\n# more\n\nx\n", "line 8: ", "plain numbers"),
            ("1\r\n\r\n2\r\nx\r\n", "line 4: ", "plain numbers"),
            ("a,1\nb,\n", "line 2: ", "the last column is empty"),
            ("", "the file has no numbers", "one in each line"),
            ("ms\n", "the file has no numbers", "one in each line"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(line) && error.contains(fix), "{text:?}: {error}");
        }
        let error = NumberFile::read(&b"1\n\xff\n"[..]).unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && error.contains("UTF-8"), "{error}");
    }
}
