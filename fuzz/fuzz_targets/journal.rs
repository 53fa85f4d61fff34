//! Journals and live files as a crash, another version or another program may leave them: what can
//! be read is kept, and everything that is made of a journal can be made of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_model::live::Second;
use weigh_report::page::{Provenance, page};
use weigh_report::{Reader, Style, Summary, exports, table};

fuzz_target!(|data: &[u8]| {
    let seconds = Second::newest_last(data);
    assert!(seconds.is_sorted_by_key(|second| second.number));
    let journal = Reader::new(data).read().expect("bytes in memory can be read");
    let _ = journal.unreadable_times();
    journal.bad_lines.iter().for_each(|bad| assert!(!bad.to_string().is_empty()));
    // What was read is read again as it was.
    let lines = journal.events.iter().map(|event| serde_json::to_string(event).expect("as read"));
    let written = lines.fold(String::new(), |all, line| all + &line + "\n");
    let again = Reader::new(written.as_bytes()).read().expect("bytes in memory can be read");
    assert_eq!((again.events.len(), again.bad_lines.len()), (journal.events.len(), 0));
    let Ok(summary) = Summary::from_events(&journal.events) else { return };
    Summary::from_json(summary.to_json().as_bytes()).expect("a summary is read again");
    for style in [Style::plain(80), Style::markdown()] {
        let _ = table::render(&summary, style);
    }
    let _ = page(&summary, &journal.events, &Provenance::default());
    let _ = exports::cells::csv(&summary);
    let text = exports::openmetrics::text(&summary, &journal.events);
    assert!(text.ends_with("# EOF\n"));
});
