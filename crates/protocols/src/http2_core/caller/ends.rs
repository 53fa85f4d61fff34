//! Requests that end without an answer, and connections that take no more: deadlines, GOAWAY.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Fault, Signal};

use super::super::events::STREAM_MAX;
use super::super::frame::{ErrorCode, code_name, put_reset};
use super::{Caller, Exchange, Stage};

impl<X: Exchange> Caller<X> {
    /// Notes the deadline of the request that is sent next.
    #[inline]
    pub(super) fn note_deadline(&mut self, now: Nanos) {
        if let Some((limit, _)) = self.exchange.deadline() {
            self.deadlines.push_back((now + limit, self.next_stream));
        }
    }

    /// Drops deadlines of requests that have ended.
    #[inline]
    pub(super) fn drop_deadlines(&mut self) {
        while self.deadlines.front().is_some_and(|(_, own)| self.streams.get(*own).is_none()) {
            self.deadlines.pop_front();
        }
    }

    /// Cancels the requests whose deadline has passed, as libraries of gRPC do.
    pub(super) fn end_overdue(&mut self, now: Nanos, out: &mut Vec<u8>, emit: Emit<'_>) {
        let Some((_, code)) = self.exchange.deadline() else { return };
        while let Some((_, stream)) = self.deadlines.pop_front_if(|(at, _)| *at <= now) {
            if let Some(call) = self.streams.remove(stream) {
                self.forget(stream);
                put_reset(out, stream, ErrorCode::Cancel);
                call.refuse(code, &mut *emit);
            }
        }
        self.drop_deadlines();
    }

    /// Section 6.8: streams above the last one were not processed, and may be sent again.
    pub(super) fn take_go_away(
        &mut self,
        last: u32,
        code: u32,
        words: &[u8],
        out: &mut Vec<u8>,
        emit: Emit<'_>,
    ) {
        self.is_leaving = true;
        let mut unprocessed = Vec::new();
        self.streams
            .for_each(|stream, _| unprocessed.extend(Some(stream).filter(|own| *own > last)));
        unprocessed.sort_unstable();
        let is_graceful = code == ErrorCode::None as u32;
        for stream in &unprocessed {
            let call = self.streams.remove(*stream);
            self.forget(*stream);
            if is_graceful {
                let tickets = call.into_iter().flat_map(|call| call.tickets());
                tickets.for_each(|ticket| emit(Signal::Unprocessed(ticket)));
            }
        }
        if !unprocessed.is_empty() && !is_graceful {
            let mut why = format!("GOAWAY with {}", code_name(code));
            if !words.is_empty() {
                why += &format!(": \"{}\"", words[..words.len().min(80)].escape_ascii());
            }
            self.failure.get_or_insert(why);
        }
        if self.streams.get(self.dialogue).is_some_and(|call| call.more.is_empty()) {
            self.end_dialogue(out);
        }
    }

    /// Informs the engine once a connection that takes no more requests has no open ones.
    pub(super) fn settle(&mut self, emit: Emit<'_>) -> Result<(), Fault> {
        let is_used_up = self.is_leaving || self.next_stream > STREAM_MAX;
        if !is_used_up || !self.streams.is_empty() || self.stage != Stage::Ready {
            return Ok(());
        }
        if let Some(why) = self.failure.take() {
            return Err(Fault::Ended(why));
        }
        self.stage = Stage::Closing;
        emit(Signal::Closing);
        Ok(())
    }
}
