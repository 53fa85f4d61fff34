//! What all clients of a trial send: the request, rendered once, and its rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weigh_model::protocol::{Invalid, Role, Seat};
use weigh_model::trial::Trial;
use weigh_model::{Nanos, Pattern};

use super::blocks::{self, Blocks};
use super::codec::{
    self, BLOCK_SZX_MAX, Block, Code, Kind, OptionWriter, Token, code, number, put_payload,
};
use super::ids::IDS;
use super::oscore::{Session, Sessions};
use super::parameters::Parameters;
use super::path::{self, Place};
use crate::chance::Chance;

/// The request of a trial.
pub(super) struct Plan {
    /// Type of every request.
    pub(super) kind: Kind,
    code: Code,
    /// Options of a whole message.
    options: Vec<u8>,
    /// Options before those of blocks, and the number of the last of them.
    head: Vec<u8>,
    head_last: u16,
    /// Options of a consumer's registration, without Observe, and the number of the last of them.
    place: Place,
    token_bytes: usize,
    szx: u8,
    /// False if the server is asked for no response.
    pub(super) is_answered: bool,
    pub(super) parameters: Parameters,
    /// Requests in progress on one connection.
    pub(super) nstart: u32,
    /// Message IDs that one message may take.
    pub(super) ids_per_message: u32,
    /// How long a response is expected.
    pub(super) patience: Nanos,
    seed: u64,
    connections: AtomicU32,
    sessions: Arc<Sessions>,
}

impl Plan {
    /// Reads a trial whose requests go to its path, or to list `list` below it.
    ///
    /// # Errors
    /// A trial that CoAP cannot do.
    pub(super) fn read(
        trial: &Trial,
        list: Option<u32>,
        sessions: &Arc<Sessions>,
    ) -> Result<Plan, Invalid> {
        let settings = &trial.settings;
        let parameters = Parameters::read(settings)?;
        let kind = match settings.text("type") {
            "non" => Kind::NonConfirmable,
            _ => Kind::Confirmable,
        };
        let code = match settings.text("method") {
            "GET" => code::GET,
            "PUT" => code::PUT,
            _ => code::POST,
        };
        let place = path::place(trial, list)?;
        let (mut head, mut writer) = (Vec::new(), OptionWriter::default());
        place.put(&mut head, &mut writer);
        let mut head_last = place.last_before_query();
        if code != code::GET
            && let Some(format) = content_format(settings.text("content_format"))?
        {
            writer.put_unsigned(&mut head, number::CONTENT_FORMAT, format.into());
            head_last = number::CONTENT_FORMAT;
        }
        if place.put_query(&mut head, &mut writer) {
            head_last = number::URI_QUERY;
        }
        let mut options = head.clone();
        let is_answered = !settings.flag("no_response");
        if !is_answered {
            writer.put_unsigned(&mut options, number::NO_RESPONSE, NOTHING_WANTED);
        }
        let nstart = trial.load.window.unwrap_or(0).max(parameters.nstart);
        let plan = Plan {
            kind,
            code,
            options,
            head,
            head_last,
            place,
            token_bytes: settings.integer("token_bytes").clamp(2, 8) as usize,
            szx: szx(settings.integer("block_bytes"))?,
            is_answered,
            parameters,
            nstart,
            ids_per_message: 1,
            patience: trial.load.timeout,
            seed: trial.seed,
            connections: AtomicU32::new(0),
            sessions: sessions.clone(),
        };
        plan.checked(trial)
    }

    fn checked(mut self, trial: &Trial) -> Result<Plan, Invalid> {
        let size = trial.load.size.map_or(0, |size| size.0);
        if !self.is_answered && self.kind == Kind::Confirmable {
            return Err(Invalid::new(
                "coap.no_response",
                "a confirmable message is always acknowledged",
                "type --set coap.type=non, or leave coap.no_response at false",
            ));
        }
        if self.carries() && size > self.block_bytes() as u64 {
            if !self.is_answered {
                return Err(Invalid::new(
                    "coap.no_response",
                    format!("{size} bytes need several blocks, and each waits for its response"),
                    format!("type -s {}B or less", self.block_bytes()),
                ));
            }
            let blocks = blocks::count(size, self.szx);
            if blocks > u64::from(BLOCKS_MAX) {
                return Err(Invalid::new(
                    "load.size",
                    format!("{blocks} blocks need more message IDs than one endpoint has"),
                    format!("type -s {}B or less", u64::from(BLOCKS_MAX) << (self.szx + 4)),
                ));
            }
            self.ids_per_message = blocks as u32;
        }
        // The size of a file is known when it is sent.
        if trial.load.pattern == Pattern::Transfer && trial.load.size.is_none() {
            self.ids_per_message = BLOCKS_MAX;
        }
        Ok(self)
    }

    /// True if requests carry their message.
    pub(super) fn carries(&self) -> bool {
        self.code != code::GET
    }

    /// Bytes of a block.
    pub(super) fn block_bytes(&self) -> usize {
        16 << self.szx
    }

    /// Appends a request.
    pub(super) fn put_request(&self, out: &mut Vec<u8>, id: u16, token: Token, body: &[u8]) {
        codec::put_head(out, self.kind, self.code, id, token);
        out.extend_from_slice(&self.options);
        if self.carries() {
            put_payload(out, body);
        }
    }

    /// Appends the block of a body that is in progress; nothing of it before all of it is known.
    pub(super) fn put_block(&self, out: &mut Vec<u8>, id: u16, token: Token, blocks: &Blocks) {
        codec::put_head(out, self.kind, self.code, id, token);
        out.extend_from_slice(&self.head);
        let mut writer = OptionWriter::after(self.head_last);
        let at = blocks.at();
        writer.put_unsigned(out, number::BLOCK1, at.number());
        if at.index == 0 {
            writer.put_unsigned(out, number::SIZE1, blocks.whole() as u32);
        }
        put_payload(out, blocks.block().unwrap_or_default());
    }

    /// Appends a consumer's registration for notifications, or with `observe` 1 its end.
    pub(super) fn put_observe(&self, out: &mut Vec<u8>, id: u16, token: Token, observe: u32) {
        codec::put_head(out, Kind::Confirmable, code::GET, id, token);
        let mut writer = OptionWriter::default();
        self.place.put_host(out, &mut writer);
        writer.put_unsigned(out, number::OBSERVE, observe);
        self.place.put_path(out, &mut writer);
        self.place.put_query(out, &mut writer);
    }

    /// Appends a request for the readings from a cursor on, at most as many as the limit; of a
    /// large answer one block is requested.
    pub(super) fn put_poll(
        &self,
        out: &mut Vec<u8>,
        id: u16,
        token: Token,
        (cursor, limit): (Option<&str>, u32),
        block: Block,
    ) {
        codec::put_head(out, Kind::Confirmable, code::GET, id, token);
        let mut writer = OptionWriter::default();
        self.place.put(out, &mut writer);
        self.place.put_query(out, &mut writer);
        if let Some(cursor) = cursor {
            writer.put(out, number::URI_QUERY, format!("since={cursor}").as_bytes());
        }
        writer.put(out, number::URI_QUERY, format!("limit={limit}").as_bytes());
        // The first request leaves the size of blocks to the server, unless it is to be smaller
        // (RFC 7959, section 2.4).
        if block.index > 0 || block.szx < BLOCK_SZX_MAX {
            let block = Block { has_more: false, ..block };
            writer.put_unsigned(out, number::BLOCK2, block.number());
        }
    }

    /// OSCORE of the next connection of a seat.
    pub(super) fn session(&self, seat: Seat) -> Session {
        self.sessions.of(seat)
    }

    /// The size of blocks, as its exponent.
    pub(super) fn szx(&self) -> u8 {
        self.szx
    }

    /// The first message ID, the first token and the timers of the next connection of a seat.
    pub(super) fn chance(&self, seat: Seat) -> Chance {
        let turn = self.connections.fetch_add(1, Ordering::Relaxed);
        let role = u64::from(seat.role == Role::Consumer);
        let stream = u64::from(turn) << 32 | u64::from(seat.index) << 1 | role;
        Chance::new(self.seed, stream)
    }

    /// The token of a request: its number after a random first one.
    pub(super) fn token(&self, number: u64) -> Token {
        Token::of_number(number, self.token_bytes)
    }
}

fn content_format(text: &str) -> Result<Option<u16>, Invalid> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let problem = format!("{text:?} is not the number of a content format");
        Invalid::new("coap.content_format", problem, "type 0 to 65535, or nothing for none")
    })
}

fn szx(block_bytes: u64) -> Result<u8, Invalid> {
    let sizes = 0..=BLOCK_SZX_MAX;
    sizes.into_iter().find(|szx| 16u64 << szx == block_bytes.max(16)).ok_or_else(|| {
        let problem = format!("{block_bytes} is not the size of a block (RFC 7959, section 2.2)");
        Invalid::new("coap.block_bytes", problem, "type 16, 32, 64, 128, 256, 512 or 1024")
    })
}

/// Suppresses 2.xx, 4.xx and 5.xx (RFC 7967, section 2.1).
const NOTHING_WANTED: u32 = 26;

/// Blocks of one body: half of the message IDs, so that one body always fits.
pub(super) const BLOCKS_MAX: u32 = IDS / 2;
