//! The account of a stored capture, or of an interface for some seconds.
//!
//! ```text
//! cargo run -p weigh-capture --example account -- FILE [PORT]
//! cargo run -p weigh-capture --example account -- INTERFACE SECONDS [PORT]
//! ```

use std::path::Path;
use std::time::Duration;

use weigh_capture::files::account_of;
use weigh_capture::kernel::{KernelWatch, agreement};
use weigh_capture::{Account, Capture, Counting, Filter, Options, Phase, Settings, WireError};

fn main() -> Result<(), WireError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let settings = |port: Option<&&str>| {
        let ports = port.and_then(|word| word.parse().ok()).into_iter().collect();
        let filter = Filter { ports, addresses: Vec::new() };
        Settings { filter, ..Settings::default() }
    };
    match &words[..] {
        [file, more @ ..] if Path::new(file).is_file() => {
            let settings = Settings { counting: Counting::AsCaptured, ..settings(more.first()) };
            print(&account_of(Path::new(file), settings)?);
        }
        [interface, seconds, more @ ..] if seconds.parse::<u64>().is_ok() => {
            let settings = settings(more.first());
            let watch = KernelWatch::start(&settings.filter.ports, None)?;
            let capture = Capture::start(Options::new(interface, settings))?;
            std::thread::sleep(Duration::from_secs(seconds.parse().unwrap_or(1)));
            let account = capture.stop()?;
            print(&account);
            let found = agreement(&account, &watch.stop(account.connections.len())?.sockets);
            println!(
                "kernel: {} sockets compared, {} differences",
                found.compared,
                found.differences.len()
            );
            for difference in found.differences.iter().take(20) {
                println!("  {difference:?}");
            }
        }
        _ => println!("which capture? Name a file, or an interface and some seconds"),
    }
    Ok(())
}

fn print(account: &Account) {
    if let Some(found) = &account.interface {
        println!("{} ({}), MTU {}", found.name, found.link.words(), found.mtu_bytes);
        println!("{:?}", found.offloads);
    }
    println!(
        "{} packets captured, {} dropped, {} connections, {} packets of none",
        account.packets_captured,
        account.packets_dropped,
        account.connections.len() as u64 + account.connections_folded,
        account.other.packets
    );
    for (name, phases) in [("sent", &account.sent), ("received", &account.received)] {
        for phase in Phase::ALL {
            let found = phases[phase];
            println!("{name:8} {:9} {:7} packets {:?}", phase.name(), found.packets, found.layers);
        }
    }
    for (name, value) in account.metrics(None) {
        println!("{name:40} {value}");
    }
    for warning in account.warnings() {
        println!("warning: {}; {}", warning.text(), warning.advice());
    }
}
