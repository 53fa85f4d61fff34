//! What the tools print, as far as it is needed: how much they say they did.

use serde_json::Value;

/// What a tool says of itself, for where the target does not count and as a cross-check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Own {
    /// Operations per second.
    Rate(f64),
    /// Operations.
    Count(f64),
}

/// `FLOOR http count=123 ...`
pub(crate) fn floor(text: &str) -> Option<Own> {
    let line = text.lines().find(|line| line.starts_with("FLOOR "))?;
    number_after(line, "count=").map(Own::Count)
}

/// What the ledgers of a `weigh/summary/1` say was sent.
pub(crate) fn weigh(text: &str) -> Option<Own> {
    let sent = |cell: &Value| cell["ledger"]["sent"].as_f64();
    summary(text)?["cells"].as_array()?.iter().map(sent).sum::<Option<f64>>().map(Own::Count)
}

/// The summary at the head of what `weigh --json` printed, with stderr behind it.
pub(crate) fn summary(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()
}

/// wrk, oha and hey: `Requests/sec:  183207.10`.
pub(crate) fn rate(text: &str) -> Option<Own> {
    number_after(text, "Requests/sec:").map(Own::Rate)
}

/// The second column of `redis-benchmark --csv`: `"SET","99009.90",...`
pub(crate) fn redis_benchmark(text: &str) -> Option<Own> {
    let line = text.lines().rfind(|line| line.starts_with("\"SET"))?;
    let rate = line.split(',').nth(1)?.trim_matches('"');
    rate.parse().ok().map(Own::Rate)
}

/// The last line of `kafka-producer-perf-test.sh`: `400000 records sent, 352112.7 records/sec ...`
pub(crate) fn kafka_producer(text: &str) -> Option<Own> {
    let line = text.lines().rfind(|line| line.contains(" records sent, "))?;
    line.split(' ').next()?.parse().ok().map(Own::Count)
}

/// The last sum of PerfTest: `id: test-1, sending rate avg: 48732 msg/s`.
pub(crate) fn perf_test(text: &str) -> Option<Own> {
    let line = text.lines().rfind(|line| line.contains("sending rate avg:"))?;
    number_after(line, "sending rate avg:").map(Own::Rate)
}

/// `status codes: 900 2xx, 0 3xx, ...`
pub(crate) fn h2load(text: &str) -> Option<Own> {
    number_after(text, "status codes:").map(Own::Count)
}

/// `Complete requests:      907315`
pub(crate) fn ab(text: &str) -> Option<Own> {
    number_after(text, "Complete requests:").map(Own::Count)
}

/// `2xx - 808485` of the table of codes.
pub(crate) fn bombardier(text: &str) -> Option<Own> {
    number_after(text, "2xx -").map(Own::Count)
}

/// The JSON of `autocannon -j`.
pub(crate) fn autocannon(text: &str) -> Option<Own> {
    let start = text.find('{')?;
    summary(&text[start..])?["requests"]["total"].as_f64().map(Own::Count)
}

/// `http_reqs......................: 87312  17462.05/s`
pub(crate) fn k6(text: &str) -> Option<Own> {
    let line = text.lines().find(|line| line.trim_start().starts_with("http_reqs"))?;
    number_after(line, ":").map(Own::Count)
}

/// `  Count:        36211`
pub(crate) fn ghz(text: &str) -> Option<Own> {
    number_after(text, "Count:").map(Own::Count)
}

/// `iterations...........: 28719  5741.32/s`
pub(crate) fn k6_grpc(text: &str) -> Option<Own> {
    let line = text.lines().find(|line| line.trim_start().starts_with("iterations."))?;
    number_after(line, ":").map(Own::Count)
}

/// The last `summary =  14210 in 00:00:05 = 2842.0/s ...`
pub(crate) fn jmeter(text: &str) -> Option<Own> {
    let line = text.lines().rfind(|line| line.starts_with("summary ="))?;
    number_after(line, "summary =").map(Own::Count)
}

/// `rate 1216354 per s, 480000 messages in 0.39 s`
pub(crate) fn rumqttc(text: &str) -> Option<Own> {
    number_after(text, "per s,").map(Own::Count)
}

/// The `published` of the JSON of `mqttv5 bench`.
pub(crate) fn mqttv5(text: &str) -> Option<Own> {
    number_after(text, "\"published\":").map(Own::Count)
}

/// The `successes` of the totals of `mqtt-benchmark --format json`.
pub(crate) fn mqtt_benchmark(text: &str) -> Option<Own> {
    let totals = &text[text.find("\"totals\"")?..];
    number_after(totals, "\"successes\":").map(Own::Count)
}

/// `Published Messages:  240000 (100%)`
pub(crate) fn mqtt_stresser(text: &str) -> Option<Own> {
    number_after(text, "Published Messages:").map(Own::Count)
}

/// All round trips, warm-up included, as its processor time is: `[Total Run] ...;
/// ReceivedMessages=59256`.
pub(crate) fn sockperf(text: &str) -> Option<Own> {
    let run = &text[text.find("[Total Run]")?..];
    number_after(run, "ReceivedMessages=").map(Own::Count)
}

/// The last number of the one line of `netperf -P 0`: transactions a second.
pub(crate) fn netperf(text: &str) -> Option<Own> {
    let line = text.lines().find(|line| line.split_whitespace().count() == 6)?;
    line.split_whitespace().last()?.parse().ok().map(Own::Rate)
}

/// The program that a command runs, behind `env NAME=VALUE ...` and inside `sh -c "for ...; do
/// PROGRAM ..."`.
pub(crate) fn program_of(command: &[String]) -> &str {
    match command[0].as_str() {
        "env" => command[1..].iter().find(|word| !word.contains('=')).map_or("env", String::as_str),
        "sh" => {
            let script = command.last().map_or("", String::as_str);
            let inner = script.split_once("do ").map_or(script, |(_, rest)| rest);
            inner.split_whitespace().next().unwrap_or("sh")
        }
        program => program,
    }
}

/// The first number behind `label`.
fn number_after(text: &str, label: &str) -> Option<f64> {
    let rest = text[text.find(label)? + label.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As printed by the versions that docs/benchmarks.md names, shortened to what is read and what
    /// stands around it.
    #[test]
    fn what_the_tools_print_is_understood() {
        let wrk = "  85155 requests in 1.02s, 7.31MB read\nRequests/sec:  83351.52\n\
                   Transfer/sec:      7.15MB\n";
        assert_eq!(rate(wrk), Some(Own::Rate(83_351.52)));
        let kafka = "1203 records sent, 240.6 records/sec (0.01 MB/sec), 3.1 ms avg latency.\n\
                     400000 records sent, 352112.676056 records/sec (21.49 MB/sec), 1.2 ms avg \
                     latency, 301.00 ms max latency, 1 ms 50th, 4 ms 95th, 9 ms 99th.\n";
        assert_eq!(kafka_producer(kafka), Some(Own::Count(400_000.0)));
        let hey = "  Average:\t0.0079 secs\n  Requests/sec:\t7891.7401\n  \n";
        assert_eq!(rate(hey), Some(Own::Rate(7_891.740_1)));
        let nghttp2 = "requests: 58856 total, 58920 started, 58856 done, 0 failed\n\
                       status codes: 58856 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        assert_eq!(h2load(nghttp2), Some(Own::Count(58_856.0)));
        let apache = "Time taken for tests:   1.000 seconds\nComplete requests:      30690\n\
                      Failed requests:        0\nRequests per second:    30680.61 [#/sec] (mean)\n";
        assert_eq!(ab(apache), Some(Own::Count(30_690.0)));
        let codes = "  HTTP codes:\n    1xx - 0, 2xx - 79513, 3xx - 0, 4xx - 0, 5xx - 0\n";
        assert_eq!(bombardier(codes), Some(Own::Count(79_513.0)));
        let cannon = "{\"url\":\"http://127.0.0.1:1/post\",\"connections\":64,\"requests\":\
                      {\"average\":2001,\"mean\":2001,\"total\":2001,\"sent\":2065}}\n";
        assert_eq!(autocannon(cannon), Some(Own::Count(2_001.0)));
        let grafana = "     data_sent......: 13 MB 2.5 MB/s\n\
                       \x20    http_reqs......................: 87312  17462.05/s\n";
        assert_eq!(k6(grafana), Some(Own::Count(87_312.0)));
        let apache = "summary +   1024 in 00:00:01 = 1024.0/s\nsummary =   1024 in 00:00:01 = \
                      1024.0/s\nsummary =  14210 in 00:00:05 = 2842.0/s Avg: 1\n";
        assert_eq!(jmeter(apache), Some(Own::Count(14_210.0)));
        let bojand = "Summary:\n  Count:\t36211\n  Total:\t5.00 s\n  Requests/sec:\t7241.30\n";
        assert_eq!(ghz(bojand), Some(Own::Count(36_211.0)));
        let grafana = "     iteration_duration...: avg=11.1ms\n     iterations...........: 28719  \
                       5741.32/s\n";
        assert_eq!(k6_grpc(grafana), Some(Own::Count(28_719.0)));
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"740740.75\",\"0.983\"\n";
        assert_eq!(redis_benchmark(csv), Some(Own::Rate(740_740.75)));
        assert_eq!(rate("connect: connection refused\n"), None);
    }

    #[test]
    fn what_mqtt_and_tcp_tools_print_is_understood() {
        let line = "FLOOR mqtt-pub count=122880 wall=0.074 rate=1660075 cpu=0.007\nframe 77 B\n";
        assert_eq!(floor(line), Some(Own::Count(122_880.0)));
        assert_eq!(
            rumqttc("rate 51134 per s, 60000 messages in 1.17 s\n"),
            Some(Own::Count(60_000.0))
        );
        let bench = "  0 msg/s\n{ \"results\": {\n \"published\": 41337,\n \"received\": 0 } }";
        assert_eq!(mqttv5(bench), Some(Own::Count(41_337.0)));
        let totals = "{\"runs\":[{\"successes\":100}],\"totals\":{\"ratio\":1,\"successes\":6000}}";
        assert_eq!(mqtt_benchmark(&totals.replace(":6000", ": 6000")), Some(Own::Count(6_000.0)));
        let stresser = "# Results\nPublished Messages:        240000 (100%)\n";
        assert_eq!(mqtt_stresser(stresser), Some(Own::Count(240_000.0)));
        let mellanox = "sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; \
                        SentMessages=74661; ReceivedMessages=74660\nsockperf: [Valid Duration] \
                        RunTime=0.550 sec; SentMessages=45377; ReceivedMessages=45377\n";
        assert_eq!(sockperf(mellanox), Some(Own::Count(74_660.0)));
        assert_eq!(
            netperf("16384  131072 64       64      5.00     33411.27   \n"),
            Some(Own::Rate(33_411.27))
        );
        let ours = "{\"cells\": [{\"ledger\": {\"sent\": 7}}]}\nwarning: one\n";
        assert_eq!(weigh(ours), Some(Own::Count(7.0)));
        assert_eq!(weigh("error: nothing\n"), None);
    }

    #[test]
    fn the_program_of_a_command_is_found() {
        let words = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(program_of(&words("wrk|-t1")), "wrk");
        assert_eq!(program_of(&words("env|A=1|B=2|k6|run")), "k6");
        let script = "sh|-c|for i in $(seq 60); do mosquitto_pub -h 127.0.0.1 & done; wait";
        assert_eq!(program_of(&words(script)), "mosquitto_pub");
    }
}
