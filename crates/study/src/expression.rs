//! Expressions over named quantities, and the conditions that they stand in: `a / b < 0.5`,
//! `slope in 0.9..1.1`. The parser is that of the crate exmex with a closed list of words.

use std::fmt;
use std::ops::Range;

use exmex::{BinOp, Express, FlatEx, MakeOperators, MatchLiteral, Operator};
use weigh_report::figures::count;

/// A condition: an expression, and where its value must lie; before it may stand what the
/// expression is, in words: `CPU by htop, HTTP over MQTT: http / mqtt > 2`.
#[derive(Clone, Debug)]
pub struct Condition {
    words: String,
    text: String,
    expression: Expression,
    bound: Bound,
}

/// An expression over named quantities: `a / b`.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    parsed: FlatEx<f64, Words, Numbers>,
}

/// Where a value must lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// `< N`
    Below(f64),
    /// `<= N`
    AtMost(f64),
    /// `> N`
    Above(f64),
    /// `>= N`
    AtLeast(f64),
    /// `in A..B`, both included.
    Within(f64, f64),
}

/// The words of expressions.
#[derive(Clone, Debug)]
struct Words;

impl MakeOperators<f64> for Words {
    fn make<'a>() -> Vec<Operator<'a, f64>> {
        let two = |apply, prio, is_commutative| BinOp { apply, prio, is_commutative };
        let add: fn(f64, f64) -> f64 = |a, b| a + b;
        vec![
            Operator::make_bin("^", two(f64::powf, 4, false)),
            Operator::make_bin("*", two(|a, b| a * b, 2, true)),
            Operator::make_bin("/", two(|a, b| a / b, 3, false)),
            Operator::make_bin_unary("+", two(add, 0, true), |a| a),
            Operator::make_bin_unary("-", two(|a, b| a - b, 1, false), |a| -a),
            Operator::make_bin("min", two(|a, b| of_both(a, b, f64::min), 0, true)),
            Operator::make_bin("max", two(|a, b| of_both(a, b, f64::max), 0, true)),
            Operator::make_unary("abs", f64::abs),
            Operator::make_unary("ln", f64::ln),
            Operator::make_unary("log10", f64::log10),
            Operator::make_unary("sqrt", f64::sqrt),
        ]
    }
}

/// What has no value has none beside another value either: `f64::min` would drop it.
fn of_both(a: f64, b: f64, pick: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) }
}

/// The numbers of expressions: `2`, `0.5`, `1e9`.
#[derive(Clone, Debug, Default)]
struct Numbers;

impl MatchLiteral for Numbers {
    fn is_literal(text: &str) -> Option<&str> {
        let digits = |from: usize| {
            let rest = text[from..].find(|c: char| !c.is_ascii_digit());
            rest.map_or(text.len(), |length| from + length)
        };
        let whole = digits(0);
        let mantissa = match text[whole..].strip_prefix('.') {
            Some(_) => digits(whole + 1),
            None => whole,
        };
        if !text[..mantissa].contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let Some(rest) = text[mantissa..].strip_prefix(['e', 'E']) else {
            return Some(&text[..mantissa]);
        };
        let sign = usize::from(rest.starts_with(['+', '-']));
        let from = mantissa + 1 + sign;
        let end = digits(from);
        Some(if end > from { &text[..end] } else { &text[..mantissa] })
    }
}

impl Condition {
    /// Reads a condition.
    ///
    /// # Errors
    /// What is wrong with it, a colon, and what to type instead.
    pub fn read(text: &str) -> Result<Condition, String> {
        let (words, text) = match text.rsplit_once(": ") {
            Some((words, text)) => (words.trim(), text),
            None => ("", text),
        };
        let (left, bound) = split(text)?;
        let expression = Expression::read(left)?;
        Ok(Condition { words: words.to_owned(), text: text.trim().to_owned(), expression, bound })
    }

    /// Its expression in words; empty if the study has none.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// The names of its expression, in order.
    pub fn names(&self) -> &[String] {
        self.expression.names()
    }

    /// Where its value must lie.
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// The expression alone.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, a colon, and what to type instead.
    pub fn read(text: &str) -> Result<Expression, String> {
        let text = text.trim();
        let refused = |error: exmex::ExError| {
            format!("{text:?} is not an expression ({error}): {EXPRESSION}")
        };
        if let Some(wrong) = text.chars().find(|c| !is_of_expression(*c)) {
            return Err(format!("{text:?} contains {wrong:?}, which is not allowed: {EXPRESSION}"));
        }
        let parsed = FlatEx::<f64, Words, Numbers>::parse(text).map_err(refused)?;
        Ok(Expression { text: text.to_owned(), parsed })
    }

    /// The names in it, in order.
    pub fn names(&self) -> &[String] {
        self.parsed.var_names()
    }

    /// Its value with these values of [`Expression::names`]; not a number where it has none.
    pub fn value(&self, values: &[f64]) -> f64 {
        self.parsed.eval(values).unwrap_or(f64::NAN)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        (&self.words, &self.text) == (&other.words, &other.text)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Bound {
    /// Reads `< 1`, `>= 0.5`, `in 1..2`.
    ///
    /// # Errors
    /// What is wrong with it, a colon, and what to type instead.
    pub fn read(text: &str) -> Result<Bound, String> {
        match split(&format!("x {text}")) {
            Ok(("x", bound)) => Ok(bound),
            _ => Err(format!("{text:?} is not a bound: type for example \"< 1\" or \"in 1..2\"")),
        }
    }

    /// As a sentence says it: `more than 2`, `between 0.5 and 2`.
    pub fn in_words(self) -> String {
        match self {
            Bound::Below(most) => format!("less than {}", plain(most)),
            Bound::AtMost(0.0) => "0".to_owned(),
            Bound::AtMost(most) => format!("at most {}", plain(most)),
            Bound::Above(least) => format!("more than {}", plain(least)),
            Bound::AtLeast(least) => format!("at least {}", plain(least)),
            Bound::Within(least, most) => format!("between {} and {}", plain(least), plain(most)),
        }
    }

    /// How an interval that neither lies there wholly nor wholly elsewhere is placed to it.
    pub(crate) fn astride(self) -> String {
        match self {
            Bound::Below(end) | Bound::AtMost(end) | Bound::Above(end) | Bound::AtLeast(end) => {
                format!("lies on both sides of {}", plain(end))
            }
            Bound::Within(least, most) => {
                format!("lies partly outside {} to {}", plain(least), plain(most))
            }
        }
    }

    /// Whether `value` lies there.
    pub fn holds(self, value: f64) -> bool {
        self.holds_of_all((value, value))
    }

    /// Whether all that lies between the two lies there.
    pub fn holds_of_all(self, (low, high): (f64, f64)) -> bool {
        match self {
            Bound::Below(most) => high < most,
            Bound::AtMost(most) => high <= most,
            Bound::Above(least) => low > least,
            Bound::AtLeast(least) => low >= least,
            Bound::Within(least, most) => low >= least && high <= most,
        }
    }

    /// Whether nothing that lies between the two lies there.
    pub fn holds_of_none(self, (low, high): (f64, f64)) -> bool {
        match self {
            Bound::Below(most) => low >= most,
            Bound::AtMost(most) => low > most,
            Bound::Above(least) => high <= least,
            Bound::AtLeast(least) => high < least,
            Bound::Within(least, most) => high < least || low > most,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Below(most) => write!(f, "< {most}"),
            Bound::AtMost(most) => write!(f, "<= {most}"),
            Bound::Above(least) => write!(f, "> {least}"),
            Bound::AtLeast(least) => write!(f, ">= {least}"),
            Bound::Within(least, most) => write!(f, "in {least}..{most}"),
        }
    }
}

/// A bound as it was written, whole thousands with separators.
fn plain(bound: f64) -> String {
    let is_long = bound.fract() == 0.0 && (1000.0..1e15).contains(&bound);
    if is_long { count(bound as u64) } else { bound.to_string() }
}

/// The expression of a condition, and where its value must lie.
fn split(text: &str) -> Result<(&str, Bound), String> {
    let number = |text: &str| {
        let read = text.trim().parse::<f64>().ok().filter(|number| !number.is_nan());
        read.ok_or_else(|| format!("{:?} is not a number: {CONDITION}", text.trim()))
    };
    if let Some((left, right)) = text.rsplit_once(" in ") {
        let (least, most) = right
            .split_once("..")
            .ok_or_else(|| format!("{:?} is not a range: {CONDITION}", right.trim()))?;
        let (least, most) = (number(least)?, number(most)?);
        if least > most {
            return Err(format!("the range {least}..{most} is empty: write the smaller end first"));
        }
        return Ok((left.trim(), Bound::Within(least, most)));
    }
    let at: Range<usize> = match text.find(['<', '>']) {
        Some(at) => at..at + 1 + usize::from(text[at + 1..].starts_with('=')),
        None => return Err(format!("{text:?} has no bound: {CONDITION}")),
    };
    let bound = match &text[at.clone()] {
        "<" => Bound::Below,
        "<=" => Bound::AtMost,
        ">" => Bound::Above,
        _ => Bound::AtLeast,
    };
    Ok((text[..at.start].trim(), bound(number(&text[at.end..])?)))
}

fn is_of_expression(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_ .+-*/^(),".contains(c)
}

/// Words that no quantity can be called by.
pub const WORDS: [&str; 6] = ["min", "max", "abs", "ln", "log10", "sqrt"];

const CONDITION: &str = "type EXPRESSION < N, <=, >, >=, or EXPRESSION in A..B";
const EXPRESSION: &str =
    "type names with + - * / ^ ( ) and abs ln log10 sqrt, min(a, b), max(a, b)";

#[cfg(test)]
mod tests {
    use super::*;

    fn value(expression: &str, values: &[f64]) -> f64 {
        Condition::read(&format!("{expression} > 0")).unwrap().expression.value(values)
    }

    #[test]
    fn expressions_have_the_values_that_arithmetic_gives_them() {
        for (text, values, expected) in [
            ("a / b", &[6.0, 3.0][..], 2.0),
            ("a - b - 1", &[6.0, 3.0], 2.0),
            ("a / b / 2", &[12.0, 3.0], 2.0),
            ("a / b * 2", &[12.0, 3.0], 8.0),
            ("2 + a * b ^ 2", &[3.0, 2.0], 14.0),
            ("-(a ^ 2)", &[3.0], -9.0),
            ("max(a, b) - min(a, b)", &[3.0, 5.0], 2.0),
            ("abs(a - b)", &[3.0, 5.0], 2.0),
            ("sqrt(a) + log10(b) + ln(1)", &[9.0, 1000.0], 6.0),
            ("1e3 * a", &[2.0], 2000.0),
            ("a / 2.5e-1 + .5", &[2.0], 8.5),
            ("1e+2 - e", &[2.0], 98.0),
            ("(a + b) / 2", &[3.0, 5.0], 4.0),
        ] {
            let got = value(text, values);
            assert!((got - expected).abs() < 1e-12, "{text} is {got}, not {expected}");
        }
        assert!(value("ln(a)", &[-1.0]).is_nan());
        for text in ["min(ln(a), 1)", "max(1, ln(a))"] {
            assert!(value(text, &[-1.0]).is_nan(), "{text} forgets that one has no value");
        }
    }

    #[test]
    fn bounds_decide_wholly_or_not_at_all() {
        for (text, inside, outside) in [
            ("x < 2", (0.0, 1.9), (2.0, 3.0)),
            ("x <= 2", (0.0, 2.0), (2.1, 3.0)),
            ("x > 2", (2.1, f64::INFINITY), (0.0, 2.0)),
            ("x >= 2", (2.0, 3.0), (0.0, 1.9)),
            ("x in 1..2", (1.0, 2.0), (2.1, 9.0)),
        ] {
            let bound = Condition::read(text).unwrap().bound();
            assert!(bound.holds_of_all(inside) && !bound.holds_of_none(inside), "{text}");
            assert!(bound.holds_of_none(outside) && !bound.holds_of_all(outside), "{text}");
            let across = (inside.0.min(outside.0), inside.1.max(outside.1));
            assert!(!bound.holds_of_all(across) && !bound.holds_of_none(across), "{text}");
        }
        assert_eq!(Bound::read("< 1"), Ok(Bound::Below(1.0)));
        assert_eq!(Bound::read("< inf"), Ok(Bound::Below(f64::INFINITY)));
    }

    #[test]
    fn what_is_no_condition_is_told_what_to_type() {
        for (text, said) in [
            ("a / b", "has no bound"),
            ("a < b", "is not a number"),
            ("a in 1", "is not a range"),
            ("a in 2..1", "smaller end first"),
            ("a +* b < 1", "is not an expression"),
            ("(a < 1", "is not an expression"),
            ("sin(a) < 1", "is not an expression"),
            ("a{b} < 1", "contains '{'"),
        ] {
            let error = Condition::read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(Bound::read("1").is_err() && Bound::read("y < 1").is_err());
    }

    #[test]
    fn names_are_those_of_the_quantities() {
        let condition = Condition::read("http / max(mqtt_0, e) > 2").unwrap();
        assert_eq!(condition.names(), ["e", "http", "mqtt_0"]);
        assert_eq!(condition.expression().to_string(), "http / max(mqtt_0, e)");
        assert_eq!(condition.to_string(), "http / max(mqtt_0, e) > 2");
    }

    /// Words change what is said and nothing that is asked.
    #[test]
    fn words_before_a_condition_are_no_part_of_it() {
        let plain = Condition::read("a / b in 1..2").unwrap();
        let told = Condition::read("CPU in % (< 100), A over B: a / b in 1..2").unwrap();
        assert_eq!((plain.words(), told.words()), ("", "CPU in % (< 100), A over B"));
        assert_eq!((told.to_string(), told.names()), (plain.to_string(), plain.names()));
        assert_eq!((told.bound(), told.expression.value(&[3.0, 2.0])), (plain.bound(), 1.5));
        assert!(Condition::read("words alone: ").is_err());
    }

    #[test]
    fn bounds_are_said_as_sentences_have_them() {
        for (text, words) in [
            ("< 0.5", "less than 0.5"),
            ("<= 0", "0"),
            ("<= 3", "at most 3"),
            ("> 1.075", "more than 1.075"),
            (">= 12000", "at least 12,000"),
            ("in 875..3500", "between 875 and 3,500"),
            ("in -0.5..0.5", "between -0.5 and 0.5"),
        ] {
            assert_eq!(Bound::read(text).unwrap().in_words(), words);
        }
        assert_eq!(Bound::Above(1.82).astride(), "lies on both sides of 1.82");
        assert_eq!(Bound::Within(0.75, 1.34).astride(), "lies partly outside 0.75 to 1.34");
    }
}
