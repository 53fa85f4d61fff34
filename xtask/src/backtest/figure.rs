//! From the figures of a trial to what the criterion asks for: cores, bytes of memory, bytes of 30
//! days, joules of a day, seconds. Bytes and joules are composed of what was captured: a message,
//! and the opening and closing of a connection. Keep-alives take minutes to come; they are those of
//! the prediction.

use anyhow::{Context, anyhow};
use serde_json::Value;
use weigh_advice::Criterion;
use weigh_advice::family::KERNEL_BYTES_PER_CONNECTION;
use weigh_advice::figures::{MONTH_S, device_work, energy_basis};
use weigh_advice::situation::Situation;
use weigh_energy::{Catalogue, Model, Quantity};
use weigh_report::summary::Cell;

/// A situation with what its energy is modelled by.
pub(crate) struct Ground {
    /// The situation.
    pub(crate) situation: Situation,
    model: Option<Model>,
}

impl Ground {
    /// Reads a situation from its file.
    pub(crate) fn read(file: &str, text: &str) -> anyhow::Result<Ground> {
        let situation = Situation::read(file, text)?;
        let mut model = None;
        if let Some(device) = &situation.device {
            let catalogue = Catalogue::load(&[]).map_err(|wrong| anyhow!("{wrong}"))?;
            let basis = energy_basis(device, situation.traffic.every, &catalogue);
            model = Some(Model::new(&basis.map_err(|(key, said)| anyhow!("{key}: {said}"))?));
        }
        Ok(Ground { situation, model })
    }

    /// The criterion.
    pub(crate) fn criterion(&self) -> Criterion {
        self.situation.matters[0]
    }

    /// The figure of every repetition of an option; `option` is its prediction.
    ///
    /// # Errors
    /// Why the cell cannot stand for the option.
    pub(crate) fn values(&self, option: &Value, cell: &Cell) -> anyhow::Result<Vec<f64>> {
        let needed = match self.criterion() {
            Criterion::ServerCpu => "target_cpu_percent.mean",
            Criterion::Memory => "target_memory_bytes.max",
            Criterion::Latency => "response_time_ns.p99",
            Criterion::Bytes | Criterion::Energy => "wire.bytes",
        };
        if let Some(warning) = cell.invalidated_by(needed) {
            return Err(anyhow!("{}", warning.text));
        }
        let unsent = cell.ledger.not_sent + cell.ledger.lost.unwrap_or(0);
        if unsent as f64 > MISSED_MAX * cell.ledger.sent as f64 {
            return Err(anyhow!("{unsent} messages were not sent or lost: it does not keep up"));
        }
        let number = cell.metrics.get(needed).map_or(0, |own| own.values.len());
        if number == 0 {
            return Err(anyhow!("the trial has no {needed}"));
        }
        let all = (0..number).map(|at| self.value(option, &Trial { cell, at }));
        all.collect()
    }

    fn value(&self, option: &Value, trial: &Trial<'_>) -> anyhow::Result<f64> {
        match self.criterion() {
            Criterion::ServerCpu => Ok(trial.get("target_cpu_percent.mean")? / 100.0),
            Criterion::Memory => {
                // The kernel's part of a connection is the same constant that was predicted.
                let devices = self.situation.traffic.devices as f64;
                let held = if is_kept(option) { devices } else { 0.0 };
                Ok(trial.get("target_memory_bytes.max")? + held * KERNEL_BYTES_PER_CONNECTION)
            }
            Criterion::Latency => Ok(trial.get("response_time_ns.p99")? / 1e9),
            Criterion::Bytes => self.month(option, trial),
            Criterion::Energy => self.joules(option, trial),
        }
    }

    /// Messages of a device in 30 days.
    fn messages(&self) -> f64 {
        MONTH_S / self.situation.traffic.every.as_secs_f64()
    }

    /// Connections of a device in 30 days that are opened again.
    fn reopened(&self, option: &Value) -> f64 {
        let each = self.situation.network.reconnect.filter(|_| is_kept(option));
        each.map_or(0.0, |each| MONTH_S / each.as_secs_f64())
    }

    /// Bytes of 30 days that keep silent connections, as predicted, up and down.
    fn keep_alive(&self, option: &Value) -> [f64; 2] {
        let [month, message, around] = ["month", "message", "around"].map(|own| pair(option, own));
        let (messages, reopened) = (self.messages(), self.reopened(option));
        [0, 1].map(|way| (month[way] - messages * message[way] - reopened * around[way]).max(0.0))
    }

    fn month(&self, option: &Value, trial: &Trial<'_>) -> anyhow::Result<f64> {
        let message: f64 = trial.message(is_kept(option))?.iter().sum();
        let reopened = self.reopened(option);
        let around = if reopened > 0.0 { trial.around()? } else { 0.0 };
        let keep_alive: f64 = self.keep_alive(option).iter().sum();
        Ok(self.messages() * message + reopened * around + keep_alive)
    }

    fn joules(&self, option: &Value, trial: &Trial<'_>) -> anyhow::Result<f64> {
        let model = self.model.as_ref().context("no device is given")?;
        let is_kept = is_kept(option);
        let time = if is_kept { "response_time_ns.mean" } else { "session_time_ns.mean" };
        let exchange_s = trial.get(time)? / 1e9;
        let silence_s = self.situation.network.idle_limit.as_secs_f64();
        let every_s = self.situation.traffic.every.as_secs_f64();
        let number = ((every_s / silence_s).ceil() - 1.0).max(0.0) * self.messages();
        let ping = self.keep_alive(option).map(|own| if number > 0.0 { own / number } else { 0.0 });
        let work = device_work(is_kept, trial.message(is_kept)?, exchange_s, (silence_s, ping));
        let joules = model.value(Quantity::WakePerMessage, &work);
        Ok(joules.context("a message takes longer than the time between two")? * DAY_S / every_s)
    }
}

/// One repetition of a cell.
struct Trial<'t> {
    cell: &'t Cell,
    at: usize,
}

impl Trial<'_> {
    fn get(&self, name: &str) -> anyhow::Result<f64> {
        let metric = self.cell.metrics.get(name).with_context(|| format!("no {name}"))?;
        metric.values.get(self.at).copied().flatten().with_context(|| format!("no {name}"))
    }

    /// Bytes of a message from IP up, up and down: without opening and closing, if connections are
    /// kept.
    fn message(&self, is_kept: bool) -> anyhow::Result<[f64; 2]> {
        let messages = self.get("wire.messages")?;
        let [sent, received, link] = match is_kept {
            true => ["sent_bytes", "received_bytes", "layers.link_bytes"]
                .map(|own| self.get(&format!("wire.phases.messages.{own}"))),
            false => ["sent.bytes", "received.bytes", "layers.link_bytes"]
                .map(|own| self.get(&format!("wire.{own}"))),
        };
        // The 14 bytes of Ethernet are on no radio; both directions have them for each packet.
        let up = self.get("wire.sent.packets")? / self.get("wire.packets")?;
        let link = link?;
        Ok([(sent? - link * up) / messages, (received? - link * (1.0 - up)) / messages])
    }

    /// Bytes of opening and closing a connection, from IP up.
    fn around(&self) -> anyhow::Result<f64> {
        let of = |phase: &str| -> anyhow::Result<f64> {
            let name = |own: &str| format!("wire.phases.{phase}.{own}");
            Ok(self.get(&name("bytes"))? - self.get(&name("layers.link_bytes"))?)
        };
        Ok((of("set_up")? + of("tear_down")?) / self.get("wire.connections")?)
    }
}

/// True for an option whose devices keep their connections.
pub(crate) fn is_kept(option: &Value) -> bool {
    option["name"].as_str().is_some_and(|name| !name.contains(", one each"))
}

fn pair(option: &Value, name: &str) -> [f64; 2] {
    [0, 1].map(|way| option[name][way].as_f64().unwrap_or_default())
}

const DAY_S: f64 = 86_400.0;

/// Share of the messages that may be missing.
const MISSED_MAX: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weigh_report::summary::Metric;

    fn cell(metrics: &[(&str, f64)]) -> Cell {
        let mut own: Cell = serde_json::from_value(json!({
            "name": "it", "point": {}, "guarantee": "at least once", "target": "", "repetitions": 1,
            "valid": true, "metrics": {}, "doubts": [], "granted": {},
            "ledger": weigh_model::ledger::Ledger { sent: 10, ..Default::default() },
        }))
        .expect("a cell");
        for (name, value) in metrics {
            let metric = Metric { values: vec![Some(*value)], n: 1, ..Metric::default() };
            own.metrics.insert((*name).to_owned(), metric);
        }
        own
    }

    fn captured() -> Cell {
        cell(&[
            ("wire.bytes", 7_000.0),
            ("wire.messages", 10.0),
            ("wire.connections", 2.0),
            ("wire.packets", 40.0),
            ("wire.sent.packets", 20.0),
            ("wire.sent.bytes", 4_000.0),
            ("wire.received.bytes", 3_000.0),
            ("wire.layers.link_bytes", 560.0),
            ("wire.phases.messages.sent_bytes", 2_140.0),
            ("wire.phases.messages.received_bytes", 1_140.0),
            ("wire.phases.messages.layers.link_bytes", 280.0),
            ("wire.phases.set_up.bytes", 600.0),
            ("wire.phases.set_up.layers.link_bytes", 84.0),
            ("wire.phases.tear_down.bytes", 400.0),
            ("wire.phases.tear_down.layers.link_bytes", 56.0),
            ("response_time_ns.mean", 1.6e9),
            ("session_time_ns.mean", 6.4e9),
        ])
    }

    fn ground(matters: &str, more: &str) -> Ground {
        let text = format!(
            "schema = \"weigh/situation/1\"\nmatters = [\"{matters}\"]\n[traffic]\ndevices = 10\n\
             every = \"1h\"\nsize = \"200B\"\n{more}"
        );
        Ground::read("it", &text).expect("a situation")
    }

    /// 720 messages of 200 B up and 100 B down, 11 keep-alives of 160 B each hour, and a connection
    /// of 430 B every ten hours.
    #[test]
    fn bytes_of_a_month_are_composed_of_what_was_captured() {
        let option = json!({
            "name": "mqtt qos 1, kept",
            "message": [210.0, 90.0], "around": [250.0, 150.0],
            "month": [
                720.0 * (210.0 + 11.0 * 100.0) + 72.0 * 250.0,
                720.0 * (90.0 + 11.0 * 60.0) + 72.0 * 150.0
            ],
        });
        let own = ground("bytes", "[network]\nreconnect = \"10h\"\n");
        let found = own.values(&option, &captured()).expect("bytes");
        let expected = 720.0 * 300.0 + 720.0 * 11.0 * 160.0 + 72.0 * 430.0;
        assert!((found[0] - expected).abs() < 1e-6, "{found:?} {expected}");
        // With a connection for each message all bytes are its own.
        let each = json!({ "name": "http1, one each" });
        let found = own.values(&each, &captured()).expect("bytes");
        assert!((found[0] - 720.0 * 644.0).abs() < 1e-6, "{found:?}");
    }

    /// Joules follow the energy model: a longer exchange and more bytes take more.
    #[test]
    fn joules_are_those_of_the_energy_model() {
        let own = ground(
            "energy",
            "[network]\npath = \"nb-iot\"\nidle_limit = \"2h\"\n\
             [device]\nmodel = \"nrf9160\"\nradio = \"nb-iot\"\n",
        );
        let of = |name: &str| {
            let option = json!({ "name": name, "message": [200.0, 100.0] });
            own.values(&option, &captured()).expect("joules")[0]
        };
        let (kept, each) = (of("mqtt qos 1, kept"), of("mqtt qos 1, one each"));
        assert!(kept > 0.1 && each > 2.0 * kept, "{kept} J and {each} J a day");
        let model = own.model.as_ref().expect("a model");
        let work = device_work(true, [200.0, 100.0], 1.6, (7_200.0, [0.0; 2]));
        let expected = 24.0 * model.value(Quantity::WakePerMessage, &work).expect("joules");
        assert!((kept - expected).abs() < 1e-9, "{kept} {expected}");
    }

    #[test]
    fn memory_has_the_kernels_part_and_losses_end_a_cell() {
        let own = ground("memory", "");
        let option = json!({ "name": "http1, kept" });
        let mut found = cell(&[("target_memory_bytes.max", 1e6)]);
        assert_eq!(own.values(&option, &found).expect("memory"), [1e6 + 39_000.0]);
        found.ledger.not_sent = 5;
        assert!(own.values(&option, &found).unwrap_err().to_string().contains("keep up"));
        assert!(own.values(&option, &cell(&[])).unwrap_err().to_string().contains("has no"));
    }
}
