//! What sealing and opening cost on this machine, by size, recipients and cipher: processor time of
//! one thread, the median of many. `cargo run --release -p weigh-seal --example cost`

use rustix::time::{ClockId, clock_gettime};
use weigh_model::seal::{Cipher, Seal, Sealer};
use weigh_seal::BodySealer;

fn main() {
    println!(
        "{:<18} {:>10} {:>10} {:>9} {:>9} {:>9}",
        "", "bytes", "recipients", "seal µs", "open µs", "MB/s"
    );
    for bytes in [1, 1_024, 10_000, 100_000, 1_000_000] {
        tell("signed", bytes, Seal::default());
    }
    for recipients in [2, 5, 10, 100] {
        tell("signed", 1_024, Seal { recipients, ..Seal::default() });
    }
    for cipher in Cipher::ALL {
        for bytes in [1_024, 1_000_000] {
            tell(cipher.name(), bytes, Seal { cipher, is_signed: false, ..Seal::default() });
        }
    }
    tell("signed, policy", 1_024, Seal { has_policy: true, ..Seal::default() });
}

fn tell(name: &str, bytes: usize, seal: Seal) {
    let sealer = BodySealer::new(seal, 1_800_000_000, cpu_ns).expect("random bytes");
    let content = vec![7; bytes];
    let rounds = (20_000_000 / (bytes + 20_000 * seal.recipients as usize)).clamp(25, 400);
    let (mut seals, mut opens) = (Vec::new(), Vec::new());
    let mut object = Vec::new();
    for _ in 0..rounds {
        object.clear();
        let start = cpu_ns();
        sealer.seal(&content, false, &mut object);
        let sealed = cpu_ns();
        assert!(sealer.opens(&object, 0, false));
        seals.push(sealed - start);
        opens.push(cpu_ns() - sealed);
    }
    let (seal_us, open_us) = (median_us(seals), median_us(opens));
    let rate = bytes as f64 / (seal_us + open_us);
    let recipients = seal.recipients;
    println!("{name:<18} {bytes:>10} {recipients:>10} {seal_us:>9.1} {open_us:>9.1} {rate:>9.1}");
}

fn median_us(mut times_ns: Vec<u64>) -> f64 {
    times_ns.sort_unstable();
    times_ns[times_ns.len() / 2] as f64 / 1e3
}

/// Processor time of this thread, nanoseconds.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
