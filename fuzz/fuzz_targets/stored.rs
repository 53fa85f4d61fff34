//! Files that a killed program or a power cut leaves: the store of a reference server, and hops of
//! the pipeline. Everything before the damage is read, nothing behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_engine::storage::{FILE_HEAD, append, messages};
use weigh_model::hop::{HOP_BYTES, Hop};
use weigh_model::mark::{Mark, Reading};
use weigh_model::server::{ConnectionId, Record};

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, cut], data)) = data.split_first_chunk() else { return };
    // As it is, and behind records that are whole.
    let _ = messages(data, |_, _| {});
    let mut file = FILE_HEAD.to_vec();
    let of = ConnectionId(u32::from(choice & 1));
    let (name, body) = data.split_at(usize::from(cut).min(data.len()));
    append(&mut file, Record::Message { name, body });
    append(&mut file, Record::Piece { of, is_first: choice & 2 == 0, body });
    append(&mut file, Record::End { of });
    let whole = file.len();
    file.extend_from_slice(data);
    let mut found = Vec::new();
    let torn = messages(&file, |_, body| found.push(body.to_vec())).expect("its head is right");
    assert!(torn <= file.len() - whole);
    assert_eq!(found[..2], [body.to_vec(), body.to_vec()]);
    for chunk in data.chunks_exact(HOP_BYTES) {
        let bytes: &[u8; HOP_BYTES] = chunk.try_into().expect("of this length");
        if let Ok(hop) = Hop::decode(bytes) {
            assert_eq!(hop.encode(), *bytes);
        }
    }
    if let Reading::Whole(mark) = Mark::read_any(data) {
        assert!(mark.producer < 1 << 24 && mark.sequence < 1 << 40);
    }
});
