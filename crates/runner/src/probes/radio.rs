//! Computes the bytes of a trial's packets over a radio: the captured bytes, with the radio's link
//! layer instead of Ethernet headers (decision 42).

use std::collections::BTreeMap;

use weigh_capture::{Account, Traffic};
use weigh_model::path::Path;

/// The link layer of a path that is not Ethernet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioLink {
    /// Its name: `PDCP 1, RLC 2, MAC 2, CRC 3`.
    pub name: String,
    /// Bytes added to a packet from the clients, and to one to them.
    bytes: [u64; 2],
}

impl RadioLink {
    /// The radio link of a path; `None` for Ethernet framing.
    pub fn of(path: &Path) -> Option<RadioLink> {
        let bytes = [path.up.overhead.0, path.down.overhead.0];
        Some(RadioLink { name: path.link.clone()?, bytes })
    }

    /// The words for the table: `PDCP 1, RLC 2, MAC 2, CRC 3: 8 B a packet`.
    pub fn words(&self) -> String {
        match self.bytes {
            [up, down] if up == down => format!("{}: {up} B a packet", self.name),
            [up, down] => format!("{}: {up} B a packet up, {down} B down", self.name),
        }
    }

    /// Adds the captured bytes as the radio would carry them. All layers above the link stay the
    /// same, so the layers still add up to the total.
    pub fn tell(&self, account: &Account, messages: u64, metrics: &mut BTreeMap<String, f64>) {
        let both = [account.sent.total(), account.received.total()];
        metrics.extend(self.figures(both, [messages, account.sessions()]));
    }

    fn figures(
        &self,
        [sent, received]: [Traffic; 2],
        [messages, sessions]: [u64; 2],
    ) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let link = sent.packets * self.bytes[0] + received.packets * self.bytes[1];
        let above = sent.bytes() + received.bytes() - sent.layers.link - received.layers.link;
        let mut add = |name: &str, value: f64| {
            metrics.insert(format!("wire.radio.{name}"), value);
        };
        add("link_bytes", link as f64);
        add("bytes", (above + link) as f64);
        for (what, count) in [("message", messages), ("session", sessions)] {
            if count > 0 {
                add(&format!("link.bytes_per_{what}"), link as f64 / count as f64);
                add(&format!("bytes_per_{what}"), (above + link) as f64 / count as f64);
            }
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(up: u64, down: u64) -> RadioLink {
        RadioLink { name: "PDCP 1, RLC 2, MAC 2, CRC 3".to_owned(), bytes: [up, down] }
    }

    /// 10 packets of 1,000 bytes up with 140 of Ethernet in them, 5 of 400 down with 70: 1,190
    /// bytes from IP up, and 8 bytes for each of 15 packets.
    #[test]
    fn all_layers_but_the_link_stay_and_the_sum_is_whole() {
        let (mut sent, mut received) = (Traffic::default(), Traffic::default());
        (sent.packets, sent.layers.link, sent.layers.ip) = (10, 140, 860);
        (received.packets, received.layers.link, received.layers.transport) = (5, 70, 330);
        let metrics = link(8, 8).figures([sent, received], [5, 1]);
        assert_eq!(metrics["wire.radio.link_bytes"], 120.0);
        assert_eq!(metrics["wire.radio.bytes"], 860.0 + 330.0 + 120.0);
        assert_eq!(metrics["wire.radio.bytes_per_message"], 262.0);
        assert_eq!(metrics["wire.radio.link.bytes_per_message"], 24.0);
        assert_eq!(link(8, 9).words(), "PDCP 1, RLC 2, MAC 2, CRC 3: 8 B a packet up, 9 B down");
    }

    #[test]
    fn presets_of_radios_have_a_link_layer_of_their_own_and_ethernet_has_none() {
        for (name, _) in weigh_model::path::PRESETS {
            let path = weigh_model::path::preset(name).unwrap();
            let is_radio = ["nb-iot", "lte-m", "lte", "3g", "wifi"].contains(&name);
            assert_eq!(RadioLink::of(&path).is_some(), is_radio, "{name}");
        }
    }
}
