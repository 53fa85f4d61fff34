//! Sealed message bodies: each body is an object of this crate, with keys made for one trial.
//! Counts the cost of sealing.

use std::sync::atomic::{AtomicU64, Ordering};

use weigh_model::seal::{Seal, Sealer};

use crate::content::TAG_BYTES;
use crate::error::SealError;
use crate::keys::{OpenerKey, RecipientKey, SignatureKey, SignerKey};
use crate::object::{ONLY, PlainPart, Sealing, open};
use crate::policy::{Action, Participant, Policy};

/// Seals and opens the bodies of one trial. Its keys exist only in it; every
/// body has a content key, a nonce and ephemeral keys of its own.
#[derive(Debug)]
pub struct BodySealer {
    seal: Seal,
    openers: Vec<OpenerKey>,
    recipients: Vec<RecipientKey>,
    signer: Option<(SignerKey, SignatureKey)>,
    participants: Vec<Participant>,
    now_s: i64,
    /// Returns the processor time of the calling thread, nanoseconds: this crate reads no clock.
    cpu_ns: fn() -> u64,
    /// Bytes besides content and lengths: of all parts, and of the signature around them.
    frame: Frame,
    account: Account,
}

#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    inner_bytes: usize,
    outer_bytes: usize,
}

/// Counts so far, without the warm-up.
#[derive(Debug, Default)]
struct Account {
    sealed: AtomicU64,
    seal_cpu_ns: AtomicU64,
    overhead_bytes: AtomicU64,
    opened: AtomicU64,
    open_cpu_ns: AtomicU64,
}

/// Cost of sealing and opening, on average over the measured messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Processor time to seal a body, microseconds; `None` if none was sealed.
    pub seal_cpu_us: Option<f64>,
    /// Processor time to open a body, or to find that it does not open, microseconds.
    pub open_cpu_us: Option<f64>,
    /// Bytes of an object in addition to its content.
    pub overhead_bytes: Option<f64>,
}

impl BodySealer {
    /// Makes new keys. Policies contain `now_s`, seconds since 1970, as their time of creation;
    /// `cpu_ns` returns the processor time of the calling thread.
    ///
    /// # Errors
    /// If there are no random bytes.
    pub fn new(seal: Seal, now_s: i64, cpu_ns: fn() -> u64) -> Result<BodySealer, SealError> {
        let openers: Vec<OpenerKey> =
            (0..seal.recipients).map(|_| OpenerKey::random()).collect::<Result<_, _>>()?;
        let recipients: Vec<RecipientKey> = openers.iter().map(OpenerKey::recipient).collect();
        let signer = seal.is_signed.then(SignerKey::random).transpose()?;
        let participants = recipients.iter().map(|one| Participant {
            key: one.id().to_string(),
            role: "consumer".to_owned(),
            actions: vec![Action::Open],
            parts: Vec::new(),
        });
        let mut sealer = BodySealer {
            seal,
            participants: participants.collect(),
            recipients,
            openers,
            signer: signer.map(|signer| {
                let public = signer.signature_key();
                (signer, public)
            }),
            now_s,
            cpu_ns,
            frame: Frame::default(),
            account: Account::default(),
        };
        sealer.frame = sealer.measure_frame()?;
        Ok(sealer)
    }

    /// Cost so far.
    pub fn figures(&self) -> Figures {
        let Account { sealed, seal_cpu_ns, overhead_bytes, opened, open_cpu_ns } = &self.account;
        let mean = |sum: &AtomicU64, count: &AtomicU64| {
            let count = count.load(Ordering::Relaxed);
            (count > 0).then(|| sum.load(Ordering::Relaxed) as f64 / count as f64)
        };
        Figures {
            seal_cpu_us: mean(seal_cpu_ns, sealed).map(|ns| ns / 1e3),
            open_cpu_us: mean(open_cpu_ns, opened).map(|ns| ns / 1e3),
            overhead_bytes: mean(overhead_bytes, sealed),
        }
    }

    fn object(&self, content: &[u8], signer: Option<&SignerKey>) -> Result<Vec<u8>, SealError> {
        let policy = match self.seal.has_policy {
            true => {
                let participants = self.participants.clone();
                Some(Policy { participants, ..Policy::plain(self.now_s)? })
            }
            false => None,
        };
        let sealing = Sealing {
            cipher: self.seal.cipher,
            recipients: &self.recipients,
            signer,
            policy: policy.as_ref(),
        };
        sealing.seal(&[PlainPart { name: ONLY.to_owned(), content: content.to_vec() }])
    }

    /// Size of an object without content, from which the size of any other follows.
    fn measure_frame(&self) -> Result<Frame, SealError> {
        let inner = self.object(b"", None)?.len();
        let whole = self.object(b"", self.signer())?.len();
        let outer_bytes = if whole == inner { 0 } else { whole - inner - head(inner) };
        Ok(Frame { inner_bytes: inner - TAG_BYTES - head(TAG_BYTES), outer_bytes })
    }

    fn signer(&self) -> Option<&SignerKey> {
        self.signer.as_ref().map(|(signer, _)| signer)
    }
}

impl Sealer for BodySealer {
    fn seal(&self, content: &[u8], is_measured: bool, out: &mut Vec<u8>) {
        let start = (self.cpu_ns)();
        let object =
            self.object(content, self.signer()).expect("it was tried when the trial began");
        out.extend_from_slice(&object);
        if is_measured {
            let spent = (self.cpu_ns)().saturating_sub(start);
            let overhead = (object.len() - content.len()) as u64;
            self.account.sealed.fetch_add(1, Ordering::Relaxed);
            self.account.seal_cpu_ns.fetch_add(spent, Ordering::Relaxed);
            self.account.overhead_bytes.fetch_add(overhead, Ordering::Relaxed);
        }
    }

    fn object_bytes(&self, content_bytes: usize) -> usize {
        let encrypted = content_bytes + TAG_BYTES;
        let inner = self.frame.inner_bytes + head(encrypted) + encrypted;
        match self.frame.outer_bytes {
            0 => inner,
            outer => outer + head(inner) + inner,
        }
    }

    fn opens(&self, object: &[u8], consumer: u32, is_measured: bool) -> bool {
        let start = (self.cpu_ns)();
        let key = &self.openers[consumer as usize % self.openers.len()];
        let signer = self.signer.as_ref().map(|(_, public)| public);
        let is_open = open(object, key, signer, self.now_s).is_ok();
        if is_measured {
            let spent = (self.cpu_ns)().saturating_sub(start);
            self.account.opened.fetch_add(1, Ordering::Relaxed);
            self.account.open_cpu_ns.fetch_add(spent, Ordering::Relaxed);
        }
        is_open
    }
}

/// Bytes of the head of a byte string of this length (RFC 8949, section 3).
fn head(bytes: usize) -> usize {
    match bytes {
        0..24 => 1,
        24..0x100 => 2,
        0x100..0x1_0000 => 3,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::seal::Cipher;

    fn sealer(seal: Seal) -> BodySealer {
        BodySealer::new(seal, 1_800_000_000, || 0).unwrap()
    }

    /// The size of an object is known before it is made, whatever it is made of.
    #[test]
    fn sizes_are_predicted() {
        for recipients in [1, 2, 5, 23, 24] {
            for (is_signed, has_policy) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                let cipher = Cipher::ALL[recipients as usize % 3];
                let sealer = sealer(Seal { recipients, cipher, is_signed, has_policy });
                for bytes in [0, 1, 7, 8, 100, 239, 240, 1_000, 65_000, 65_519, 65_520, 70_000] {
                    let mut object = Vec::new();
                    sealer.seal(&vec![7; bytes], true, &mut object);
                    assert_eq!(object.len(), sealer.object_bytes(bytes), "{recipients} {bytes}");
                }
            }
        }
    }

    #[test]
    fn every_consumer_opens_what_was_sealed_and_nothing_else() {
        let sealer = sealer(Seal { recipients: 3, ..Seal::default() });
        let mut object = Vec::new();
        sealer.seal(b"content", true, &mut object);
        for consumer in 0..7 {
            assert!(sealer.opens(&object, consumer, true));
        }
        object[20] ^= 1;
        assert!(!sealer.opens(&object, 0, false) && !sealer.opens(b"", 0, false));
        let figures = sealer.figures();
        assert_eq!(figures.overhead_bytes, Some((object.len() - 7) as f64));
        assert_eq!((figures.seal_cpu_us, figures.open_cpu_us), (Some(0.0), Some(0.0)));
        let other = self::sealer(Seal { recipients: 3, ..Seal::default() });
        assert_eq!(other.figures().open_cpu_us, None);
        object[20] ^= 1;
        assert!(!other.opens(&object, 0, true), "keys of another trial");
    }

    /// Nothing that could be used again is: two objects of one content share no nonce, no key.
    #[test]
    fn no_two_objects_are_alike() {
        let sealer = sealer(Seal { is_signed: false, ..Seal::default() });
        let made: Vec<Vec<u8>> = (0..200)
            .map(|_| {
                let mut object = Vec::new();
                sealer.seal(&[0; 32], true, &mut object);
                object
            })
            .collect();
        // 8 bytes of any place that is random are the same in two of 200 once in 10^15 times.
        for (index, one) in made.iter().enumerate() {
            for other in &made[..index] {
                let nonces = [one, other].map(|object| object.windows(12).nth(10).unwrap());
                assert_ne!(nonces[0], nonces[1], "the nonces");
                let wrapped = [one, other].map(|object| &object[object.len() - 24..]);
                assert_ne!(wrapped[0], wrapped[1], "the wrapped keys");
            }
        }
    }
}
