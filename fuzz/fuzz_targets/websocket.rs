//! Frames and upgrades of WebSocket, as either end hears them: whole and cut at places that the
//! fuzzer chooses, with the same outcome.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh_websocket::frame::apply_mask;
use weigh_websocket::{Decoder, Header, Messages, Opcode, Rules, put_frame, upgrade};

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, cut], bytes)) = data.split_first_chunk() else { return };
    let is_masked = choice & 1 == 0;
    let whole = heard(is_masked, bytes.chunks(bytes.len().max(1)));
    let pieces = heard(is_masked, bytes.chunks(usize::from(cut).max(1)));
    match (&whole.2, &pieces.2) {
        (None, None) => assert_eq!(whole, pieces),
        // What came before the fault may have been handed over already, never something else.
        (one, other) => {
            assert_eq!(one, other);
            assert_eq!(whole.1, pieces.1);
        }
    }
    if whole.2.is_none() {
        assert!(whole.0.starts_with(&framed(is_masked, bytes)));
    }
    // What is written is read again.
    let key = is_masked.then_some([choice, cut, choice ^ cut, 7]);
    let mut frame = Vec::new();
    put_frame(&mut frame, Opcode::Binary, key, bytes);
    assert_eq!(heard(is_masked, frame.chunks(usize::from(cut).max(1))).0, bytes);
    let _ = upgrade::read_answer(bytes, [choice; 16], "mqtt");
    let _ = upgrade::read_request(bytes, "mqtt");
});

/// Payload, controls and the fault.
fn heard<'b>(
    is_masked: bool,
    pieces: impl Iterator<Item = &'b [u8]>,
) -> (Vec<u8>, Vec<String>, Option<String>) {
    let (mut plain, mut controls) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(is_masked);
    for piece in pieces {
        let mut note = |control: weigh_websocket::Control<'_>| {
            controls.push(format!("{control:?}"));
        };
        if let Err(broken) = decoder.take(piece, &mut plain, &mut note) {
            return (plain, controls, Some(broken.to_string()));
        }
    }
    (plain, controls, None)
}

/// The payload of whole frames, one after the other, as the protocol `websocket` reads them.
fn framed(is_masked: bool, mut bytes: &[u8]) -> Vec<u8> {
    let (mut messages, mut plain) = (Messages::default(), Vec::new());
    // A header that is cut off may already be wrong.
    while let Ok(Some((header, head_bytes))) = Header::read(bytes, is_masked) {
        messages.check(&header, &Rules::BYTES).expect("as before");
        let end = head_bytes.saturating_add(header.length as usize);
        let Some(payload) = bytes.get(head_bytes..end) else { break };
        messages.pass(&header);
        if header.opcode == Opcode::Close {
            break;
        }
        if !header.opcode.is_control() {
            let start = plain.len();
            plain.extend_from_slice(payload);
            apply_mask(&mut plain[start..], header.mask.unwrap_or_default(), 0);
        }
        bytes = &bytes[end..];
    }
    plain
}
