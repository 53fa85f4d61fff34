//! Settings of the reference server.

use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;

/// Rules of all shards of one server.
#[derive(Clone, Debug)]
pub(in crate::kafka) struct Rules {
    /// What it calls itself in Metadata.
    pub(super) host: String,
    pub(super) port: i32,
    /// Partitions of a topic that it creates by itself.
    pub(super) partitions: i32,
    /// Largest batch.
    pub(super) batch_bytes_max: usize,
    /// Largest request.
    pub(super) request_bytes_max: usize,
    /// Bytes of all logs.
    pub(super) log_bytes_max: usize,
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// An address without a port.
    pub(in crate::kafka) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let address = match settings.text("server_advertised") {
            "" => ADVERTISED,
            text => text,
        };
        let parts = address.rsplit_once(':').and_then(|(host, port)| {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            Some((host, port.parse::<u16>().ok()?)).filter(|(host, _)| !host.is_empty())
        });
        let Some((host, port)) = parts else {
            return Err(Invalid::new(
                "kafka.server_advertised",
                format!("{address:?} is not a host and a port"),
                format!("type HOST:PORT, such as {ADVERTISED}"),
            ));
        };
        let whole = |key, default| settings.integer_or(key, default) as usize;
        let batch_bytes_max = whole("server_message_max_bytes", BATCH_BYTES_MAX);
        Ok(Rules {
            host: host.to_owned(),
            port: port.into(),
            partitions: whole("server_partitions", 1).max(1) as i32,
            batch_bytes_max,
            request_bytes_max: 2 * batch_bytes_max + REQUEST_BYTES_MORE,
            log_bytes_max: whole("server_log_bytes", LOG_BYTES_MAX),
        })
    }
}

const ADVERTISED: &str = "127.0.0.1:9092";
const BATCH_BYTES_MAX: u64 = 1_048_588;
const LOG_BYTES_MAX: u64 = 1 << 30;
const REQUEST_BYTES_MORE: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::settings::SETTINGS;

    #[test]
    fn an_address_needs_a_host_and_a_port() {
        let read = |text: &str| {
            let given = [("server_advertised", text)];
            Rules::read(&Settings::new("kafka", SETTINGS, given).unwrap())
        };
        let rules = read("[::1]:9093").unwrap();
        assert_eq!((&*rules.host, rules.port), ("::1", 9093));
        for wrong in ["localhost", ":9092", "h:x", "h:99999"] {
            assert!(read(wrong).unwrap_err().fix.contains("HOST:PORT"), "{wrong}");
        }
        let full = Settings::new("kafka", SETTINGS, []).unwrap();
        let empty = Rules::read(&Settings::default()).unwrap();
        assert_eq!(format!("{empty:?}"), format!("{:?}", Rules::read(&full).unwrap()));
    }
}
