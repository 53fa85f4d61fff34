//! The files of a study as their authors may write them: errors with their places, or a study.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::AnyWorld;
use weigh_study::{Study, StudyTexts};

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let own = StudyTexts::FILES[usize::from(*choice) % StudyTexts::FILES.len()];
    let files = TINY.iter().map(|(file, tiny)| match *file == own {
        true => (*file, text.to_owned()),
        false => (*file, (*tiny).to_owned()),
    });
    let mut texts = StudyTexts::of("tiny", "tiny", files);
    if own == "tools.toml" {
        texts.tools = text.to_owned();
    }
    if own == "facts.toml" {
        texts.facts = Some(text.to_owned());
    }
    match Study::read(&texts, &AnyWorld) {
        Ok(study) => drop(study.unused_cells()),
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(!problems.render(&texts, false).is_empty());
        }
    }
});

/// The study of the tests.
const TINY: [(&str, &str); 5] = [
    ("study.toml", include_str!("../../tests/cli/tiny-study/study.toml")),
    ("plan-published.toml", include_str!("../../tests/cli/tiny-study/plan-published.toml")),
    ("plan-right.toml", include_str!("../../tests/cli/tiny-study/plan-right.toml")),
    ("published.csv", include_str!("../../tests/cli/tiny-study/published.csv")),
    ("README.md", include_str!("../../tests/cli/tiny-study/README.md")),
];
