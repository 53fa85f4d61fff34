//! The record of one hop: when a stage of the pipeline received a message, and when it had finished
//! with it. Every stage writes a file of these, 40 bytes each without separators; the generator
//! reads them.
//!
//! Layout, little-endian: tag 2, flags 1, stage 1, producer 4, sequence 8 (these are of the mark,
//! [`crate::mark`]), arrived 8, left 8, batch 4, spare 4. Times are nanoseconds of
//! `CLOCK_MONOTONIC`, which all processes of a machine share (clock_gettime(2)).

use serde::{Deserialize, Serialize};

use crate::mark::Mark;
use crate::units::Nanos;

/// Bytes that a record takes in a file.
pub const HOP_BYTES: usize = 40;

/// The stages that write such a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HopStage {
    /// Takes messages from the broker and hands them on.
    Gateway,
    /// Takes readings by HTTP.
    Api,
    /// Keeps readings.
    Store,
}

impl HopStage {
    /// All of them, in the order in which a message goes through them.
    pub const ALL: [HopStage; 3] = [HopStage::Gateway, HopStage::Api, HopStage::Store];

    /// Name as it is typed and printed: `gateway`, `api` or `store`.
    pub fn name(self) -> &'static str {
        match self {
            HopStage::Gateway => "gateway",
            HopStage::Api => "api",
            HopStage::Store => "store",
        }
    }

    /// Number in a record.
    fn number(self) -> u8 {
        match self {
            HopStage::Gateway => 1,
            HopStage::Api => 2,
            HopStage::Store => 3,
        }
    }
}

/// One message at one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Tag of the trial that the message belongs to.
    pub tag: u16,
    /// True for a message of the warm-up.
    pub warmup: bool,
    /// True if the store already had it and, set to keep each message once, stored no second row.
    pub repeated: bool,
    /// The stage.
    pub stage: HopStage,
    /// Index of its producer.
    pub producer: u32,
    /// Its number at the producer.
    pub sequence: u64,
    /// Time at which the stage had read the whole message, on `CLOCK_MONOTONIC`.
    pub arrived: Nanos,
    /// Time at which the stage had done its part, on `CLOCK_MONOTONIC`: the store has committed it;
    /// the api has the store's answer; the gateway has the next stage's answer and hands its
    /// acknowledgement to the broker's connection.
    pub left: Nanos,
    /// Messages that left together with it by one commit or one call, itself included.
    pub batch: u32,
}

impl Hop {
    /// Creates the record of the message that carries `mark`.
    pub fn of(mark: &Mark, stage: HopStage, arrived: Nanos, left: Nanos, batch: u32) -> Hop {
        Hop {
            tag: mark.tag,
            warmup: mark.warmup,
            repeated: false,
            stage,
            producer: mark.producer,
            sequence: mark.sequence,
            arrived,
            left,
            batch,
        }
    }

    /// Encodes it as in the file.
    pub fn encode(&self) -> [u8; HOP_BYTES] {
        let mut bytes = [0; HOP_BYTES];
        let flags = (u8::from(self.warmup) * WARMUP) | (u8::from(self.repeated) * REPEATED);
        bytes[0..2].copy_from_slice(&self.tag.to_le_bytes());
        bytes[2] = flags;
        bytes[3] = self.stage.number();
        bytes[4..8].copy_from_slice(&self.producer.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.arrived.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.left.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.batch.to_le_bytes());
        bytes
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// If no stage writes such a record.
    pub fn decode(bytes: &[u8; HOP_BYTES]) -> Result<Hop, NoHop> {
        let word = |from: usize, count: usize| {
            bytes[from..from + count]
                .iter()
                .rev()
                .fold(0, |all, byte| (all << 8) | u64::from(*byte))
        };
        let number = bytes[3];
        let stage = HopStage::ALL.into_iter().find(|stage| stage.number() == number);
        let stage = stage.ok_or(NoHop::Stage(number))?;
        let flags = bytes[2];
        let spare = word(36, 4) as u32;
        if flags & !(WARMUP | REPEATED) != 0 || spare != 0 {
            return Err(NoHop::Unknown { flags, spare });
        }
        let (arrived, left) = (Nanos(word(16, 8)), Nanos(word(24, 8)));
        if left < arrived {
            return Err(NoHop::Backwards { arrived, left });
        }
        Ok(Hop {
            tag: word(0, 2) as u16,
            warmup: flags & WARMUP != 0,
            repeated: flags & REPEATED != 0,
            stage,
            producer: word(4, 4) as u32,
            sequence: word(8, 8),
            arrived,
            left,
            batch: word(32, 4) as u32,
        })
    }
}

/// Reason for which 40 bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHop {
    /// Unknown stage number.
    #[error("unknown stage {0}: gateway is 1, api 2, store 3")]
    Stage(u8),
    /// Bits are set that no stage sets.
    #[error("its flags are {flags:#04x} and its spare bytes {spare:#010x}: no stage writes that")]
    Unknown {
        /// The flags.
        flags: u8,
        /// Bytes that should be 0.
        spare: u32,
    },
    /// It left before it arrived.
    #[error("it left at {} ns, before it arrived at {} ns", .left.0, .arrived.0)]
    Backwards {
        /// The recorded arrival.
        arrived: Nanos,
        /// The recorded departure.
        left: Nanos,
    },
}

const WARMUP: u8 = 1;
const REPEATED: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: Hop = Hop {
        tag: 0xBEEF,
        warmup: false,
        repeated: true,
        stage: HopStage::Store,
        producer: 0x01_02_03,
        sequence: 0x04_05_06_07_08,
        arrived: Nanos(0x11_22_33_44),
        left: Nanos(0x11_22_33_45),
        batch: 500,
    };

    /// The layout that the module describes, byte by byte.
    #[test]
    fn the_layout_is_as_described() {
        let expected = [
            0xEF, 0xBE, 2, 3, 3, 2, 1, 0, 8, 7, 6, 5, 4, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 0, 0, 0,
            0, 0x45, 0x33, 0x22, 0x11, 0, 0, 0, 0, 0xF4, 1, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(HOP.encode(), expected);
        assert_eq!(Hop::decode(&expected), Ok(HOP));
    }

    #[test]
    fn every_stage_and_flag_is_read_back() {
        for stage in HopStage::ALL {
            for (warmup, repeated) in [(false, false), (true, false), (false, true), (true, true)] {
                let hop = Hop { stage, warmup, repeated, ..HOP };
                assert_eq!(Hop::decode(&hop.encode()), Ok(hop), "{}", stage.name());
            }
        }
    }

    #[test]
    fn what_no_stage_writes_is_refused() {
        let mut bytes = HOP.encode();
        bytes[3] = 4;
        assert_eq!(Hop::decode(&bytes), Err(NoHop::Stage(4)));
        let mut bytes = HOP.encode();
        bytes[2] |= 4;
        assert_eq!(Hop::decode(&bytes), Err(NoHop::Unknown { flags: 6, spare: 0 }));
        let mut bytes = HOP.encode();
        bytes[39] = 1;
        assert_eq!(Hop::decode(&bytes), Err(NoHop::Unknown { flags: 2, spare: 1 << 24 }));
        let backwards = Hop { arrived: Nanos(2), left: Nanos(1), ..HOP }.encode();
        let error = Hop::decode(&backwards).unwrap_err();
        assert_eq!(error.to_string(), "it left at 1 ns, before it arrived at 2 ns");
    }
}
