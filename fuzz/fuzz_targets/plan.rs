//! Plans as a user may write them: an error with its place, or cases that are the same when the
//! resolved plan is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_fuzz::AnyWorld;
use weigh_model::plan::Plan;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let resolved = match weigh_plan::read(text, &AnyWorld).and_then(|draft| draft.resolve("x")) {
        Ok(resolved) => resolved,
        Err(problems) => {
            assert!(!problems.render("plan.toml", text, false).is_empty());
            return;
        }
    };
    assert!(!resolved.plan.cases.is_empty());
    // Whole numbers of 2^63 and more are no numbers of TOML.
    if let Ok(written) = resolved.plan.to_toml() {
        assert_eq!(Plan::from_toml(&written).expect("it was written"), resolved.plan);
    }
});
