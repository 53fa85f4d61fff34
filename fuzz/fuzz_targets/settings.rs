//! Files that a user may bring besides a plan: situations, paths, devices, radios, targets and
//! abilities; and the words of options. An error with its place, or values that are written and
//! read again as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_advice::Situation;
use weigh_energy::PartFile;
use weigh_energy::keys::Kind;
use weigh_model::Condition;
use weigh_model::endpoint::Endpoint;
use weigh_model::path::{self, Path, Way};
use weigh_model::units::{parse_duration, parse_rate, parse_size, parse_whole};
use weigh_probe::abilities::Abilities;
use weigh_testbed::target::Target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match choice % 7 {
        0 => {
            if let Ok(read) = Situation::read("x", text) {
                assert_eq!(Situation::read("x", &read.to_toml()), Ok(read));
            }
        }
        1 => {
            if let Ok(path) = Path::parse("x", text) {
                assert!([Way::Up, Way::Down].iter().all(|way| !path.over_time(*way).is_empty()));
            }
        }
        2 => drop(PartFile::parse(Kind::Device, "x", text)),
        3 => drop(PartFile::parse(Kind::Radio, "x", text)),
        4 => {
            if let Ok(target) = Target::parse("x", text) {
                let _ = target.profile(None).map(|profile| target.durability(profile));
            }
        }
        5 => {
            for file in ["x.toml", "x.json"] {
                if let Ok(read) = Abilities::read(file, text) {
                    assert_eq!(Abilities::read(file, &read.write(file)), Ok(read));
                }
            }
        }
        _ => words(text),
    }
});

/// What stands behind options of the command line.
fn words(text: &str) {
    if let Ok(condition) = text.parse::<Condition>() {
        assert_eq!(condition.to_string().parse::<Condition>(), Ok(condition));
    }
    let _ = (parse_duration(text), parse_size(text), parse_rate(text), parse_whole(text));
    let _ = (path::parse_share(text), path::parse_bit_rate(text));
    let _ = Endpoint::parse(text);
    let _ = text.parse::<weigh_model::battery::Battery>();
    let _ = text.parse::<weigh_model::arrival::Arrival>();
    let _ = text.parse::<weigh_model::Durability>();
    let _ = text.parse::<weigh_model::rule::Rule>();
}
