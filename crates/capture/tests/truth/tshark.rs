//! What tshark says about a capture file.

use std::path::Path;
use std::process::Command;

/// Sums over the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub packets: u64,
    pub bytes: u64,
    pub ip: u64,
    pub tcp: u64,
    pub stream: u64,
    pub ack_only: u64,
    pub retransmissions: u64,
    pub keep_alives: u64,
}

/// The sums of both directions: towards `port`, and from it.
pub fn sums(file: &Path, port: u16) -> [Sums; 2] {
    let fields = [
        "tcp.srcport",
        "frame.len",
        "ip.hdr_len",
        "tcp.hdr_len",
        "tcp.len",
        "tcp.flags",
        "tcp.analysis.retransmission",
        "tcp.analysis.keep_alive",
        "tcp.analysis.fast_retransmission",
        "tcp.analysis.spurious_retransmission",
    ];
    let mut sums = [Sums::default(); 2];
    for row in rows(file, &format!("tcp.port=={port}"), &fields, &[]) {
        let number = |at: usize| row[at].parse::<u64>().unwrap_or(0);
        let sum = &mut sums[usize::from(number(0) == u64::from(port))];
        let flags = u64::from_str_radix(row[5].trim_start_matches("0x"), 16).unwrap();
        let is_probe = !row[7].is_empty();
        sum.packets += 1;
        sum.bytes += number(1);
        sum.ip += number(2);
        sum.tcp += number(3);
        sum.stream += number(4);
        // FIN, SYN, RST are the three lowest flags.
        sum.ack_only += u64::from(number(4) == 0 && flags & 7 == 0 && !is_probe);
        sum.retransmissions += u64::from([6, 8, 9].iter().any(|at| !row[*at].is_empty()));
        sum.keep_alives += u64::from(is_probe);
    }
    sums
}

/// The values of `fields` in every packet that the display filter `filter` admits.
pub fn rows(file: &Path, filter: &str, fields: &[&str], more: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-Y", filter, "-T", "fields"]).args(more);
    // Nobody's settings, and none that may not be read.
    command.env("WIRESHARK_CONFIG_DIR", std::env::temp_dir()).env("HOME", std::env::temp_dir());
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().expect("tshark");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    text.lines().map(row).collect()
}
