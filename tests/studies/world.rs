//! The studies that are built in, read with the protocols and targets that there really are. What
//! a single case can carry is the program's own check: `miniature` runs them through it.

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;
use weigh_plan::Case;
use weigh_plan::world::{PIPELINE, REFERENCE, TargetWord, World};
use weigh_study::{Study, StudyTexts};
use weigh_testbed::catalogue::Catalogue;

struct Real(Catalogue);

impl World for Real {
    fn protocols(&self) -> &'static [&'static dyn Protocol] {
        weigh_protocols::PROTOCOLS
    }

    fn target(&self, word: &str) -> Result<TargetWord, String> {
        let speaks = match word {
            REFERENCE => None,
            PIPELINE => Some(["mqtt", "http1", "grpc"].map(str::to_owned).to_vec()),
            _ => {
                let choice = self.0.choose(word).map_err(|error| error.to_string())?;
                let speaks = choice.target.speaks.iter();
                Some(speaks.map(|speaks| speaks.protocol.clone()).collect())
            }
        };
        Ok(TargetWord { name: word.to_owned(), speaks })
    }

    fn target_names(&self) -> Vec<String> {
        self.0.targets().iter().map(|target| target.name.clone()).collect()
    }

    fn is_secret(&self, _key: &str, _value: &str) -> bool {
        false
    }

    fn check(&self, _case: &Case) -> Result<(), Invalid> {
        Ok(())
    }
}

/// Every study that is built in.
pub fn studies() -> Vec<Study> {
    let world = Real(Catalogue::load(None).expect("the targets that are built in"));
    let read = |texts: &StudyTexts| {
        Study::read(texts, &world).unwrap_or_else(|wrong| panic!("{}", wrong.render(texts, false)))
    };
    StudyTexts::built_in().iter().map(read).collect()
}
