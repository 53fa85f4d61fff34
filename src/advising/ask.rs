//! The interview in a terminal: each question with its default and the reason for it.

use std::io::{BufRead, Write};

use weigh_advice::questions::QUESTIONS;
use weigh_advice::situation::Situation;
use weigh_runner::exit::{Exit, Stop};

/// Asks all questions; an empty answer keeps the default, a wrong one is asked again. `questions`
/// go to `out`, answers come from `input`.
///
/// # Errors
/// The end of the input before the last question, and a device that cannot be written to.
pub fn interview(
    start: Situation,
    input: &mut dyn BufRead,
    out: &mut dyn Write,
) -> Result<Situation, Stop> {
    let mut situation = start;
    for question in QUESTIONS {
        loop {
            let default = question.default(&situation);
            write!(out, "{}\n  {}\n  [{default}] ", question.text, question.why)?;
            out.flush()?;
            let mut answer = String::new();
            if input.read_line(&mut answer)? == 0 {
                return Err(Stop::new(Exit::Usage, "the interview was ended; nothing was asked"));
            }
            match question.put(&mut situation, &answer) {
                Ok(()) => break,
                Err(wrong) => writeln!(out, "  {}; {}", wrong.problem, wrong.fix)?,
            }
        }
    }
    situation.check().map_err(Stop::usage)?;
    Ok(situation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advising::flags::usual;

    fn asked(answers: &str) -> (Result<Situation, Stop>, String) {
        let mut out = Vec::new();
        let found = interview(usual(), &mut answers.as_bytes(), &mut out);
        (found, String::from_utf8(out).unwrap())
    }

    #[test]
    fn empty_answers_keep_every_default() {
        let (found, out) = asked(&"\n".repeat(QUESTIONS.len()));
        assert_eq!(found.unwrap(), usual());
        assert!(QUESTIONS.iter().all(|own| out.contains(own.text) && out.contains(own.why)));
    }

    #[test]
    fn a_wrong_answer_is_asked_again() {
        let rest = "\n".repeat(QUESTIONS.len() - 3);
        let (found, out) = asked(&format!("2000\n60\n1m\n125B\n{rest}"));
        assert_eq!(found.unwrap().traffic.devices, 2000);
        assert!(out.contains("\"60\" has no unit: type 60s"), "{out}");
        let (found, _) = asked("2000\n");
        assert!(found.unwrap_err().to_string().contains("ended"));
    }
}
