//! The load tools of brokers and of HTTP/3: with which command line each does the work of a job.

use super::counters::BODY_BYTES;
use super::measure::Tool;
use super::places::Places;
use super::process;
use super::words;

impl Places {
    /// h2load, if it was built with HTTP/3; Debian's was not. Another build of it may be in PATH as
    /// `h2load-h3`.
    pub(super) fn h2load_h3(
        &self,
        port: u16,
        (connections, each): (u32, u32),
        seconds: u32,
    ) -> Tool {
        let file = self.scratch.join("body64").display().to_string();
        let program = if speaks_http3("h2load") { "h2load" } else { "h2load-h3" };
        let command = format!(
            "{program} --alpn-list=h3 -t1 -c{connections} -m{each} -D{seconds} -d {file} \
             -H content-type:application/json https://127.0.0.1:{port}/messages"
        );
        Tool::new("h2load-h3", &command, words::h2load)
    }

    /// PerfTest of RabbitMQ, from Maven Central by `benches/perf-test/pom.xml`: persistent messages
    /// to a queue, and at most this many of them unconfirmed.
    pub(super) fn perf_test(&self, port: u16, window: u32, seconds: u32) -> Tool {
        let folder = self.root.join("target/perf-test");
        let command = format!(
            "java -cp {}/* com.rabbitmq.perf.PerfTest -h amqp://guest:guest@127.0.0.1:{port} \
             -x 1 -y 0 -c {window} -f persistent -s {BODY_BYTES} -z {seconds} -u bench -ad false",
            folder.display()
        );
        Tool { needs: Some(folder), ..Tool::new("perf-test", &command, words::perf_test) }
    }

    /// The load tool of Apache Kafka, from Maven Central by `benches/kafka-perf-test/pom.xml`; it
    /// takes a number of messages and no time. Its producer has the limits of Weighbridge's client,
    /// and no linger.
    pub(super) fn kafka_producer(&self, port: u16, seconds: u32) -> Tool {
        let folder = self.root.join("target/kafka-perf-test");
        let command = format!(
            "java -cp {}/* org.apache.kafka.tools.ProducerPerformance --topic bench \
             --num-records {} --record-size {BODY_BYTES} --throughput -1 --producer-props \
             bootstrap.servers=127.0.0.1:{port} acks=all linger.ms=0 enable.idempotence=false \
             batch.size=16384",
            folder.display(),
            400_000 * seconds
        );
        let own = words::kafka_producer;
        Tool { needs: Some(folder), ..Tool::new("kafka-producer-perf-test", &command, own) }
    }
}

/// True if this program holds the name of the library of QUIC that it needs for HTTP/3.
fn speaks_http3(program: &str) -> bool {
    let bytes = process::program(program).and_then(|path| std::fs::read(path).ok());
    let name = b"ngtcp2";
    bytes.is_some_and(|bytes| bytes.windows(name.len()).any(|window| window == name))
}

/// The load tool of NATS' own command line; it takes a number of messages and no time.
pub(super) fn nats_bench(port: u16, clients: u32, seconds: u32) -> Tool {
    let command = format!(
        "nats bench pub bench -s nats://127.0.0.1:{port} --clients {clients} --msgs {} \
         --size {BODY_BYTES}B --no-progress",
        NATS_EACH * seconds * clients
    );
    Tool::new("nats-bench", &command, |_| None)
}

/// It takes a number of requests and no time: about as many as take that long on a small machine.
pub(super) fn redis_benchmark(port: u16, window: u32, seconds: u32) -> Tool {
    let each_second = if window > 1 { 500_000 } else { 80_000 };
    let command = format!(
        "redis-benchmark -h 127.0.0.1 -p {port} -c {REDIS_CLIENTS} -P {window} \
         -n {} -d {BODY_BYTES} -t set --csv",
        each_second * seconds
    );
    Tool::new("redis-benchmark", &command, words::redis_benchmark)
}

/// Messages of each client of NATS that take about a second on one core of a small machine.
pub(super) const NATS_EACH: u32 = 150_000;

/// Clients of the Redis jobs, as redis-benchmark has them by default.
pub(super) const REDIS_CLIENTS: u32 = 50;
