//! The servers that the tools are weighed against, each on its own free port and pinned core.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::kinds::Counter;
use super::kinds::Kind;
use super::places::Places;
use super::process;
use super::process::Cores;

/// A running server; it ends with this value.
pub(crate) struct Target {
    child: Child,
    /// Where it listens on 127.0.0.1.
    pub(crate) port: u16,
    /// Where it counts.
    pub(crate) counter: Counter,
    /// The port of its monitor, if it has one.
    pub(crate) monitor: u16,
    /// The file it counts in, if it does so in one.
    pub(crate) count_file: PathBuf,
}

impl Target {
    /// Starts a server with its files in `folder`, pinned to its core.
    pub(crate) fn start(
        kind: Kind,
        folder: &Path,
        places: &Places,
        cores: Cores,
    ) -> anyhow::Result<Target> {
        fs::create_dir_all(folder)?;
        let (port, monitor) = (free_port()?, free_port()?);
        let count_file = folder.join("sink-count");
        let (program, arguments, counter) = match kind {
            Kind::Nginx | Kind::NginxTls => {
                let file = folder.join("nginx.conf");
                let is_tls = kind == Kind::NginxTls;
                let tls = if is_tls { make_certificate(folder)? } else { String::new() };
                fs::write(&file, nginx_conf(folder, port, &tls))?;
                let arguments = ["-c".into(), file.into(), "-p".into(), folder.into()].to_vec();
                (found("nginx")?, arguments, Counter::StubStatus)
            }
            Kind::Mosquitto => {
                let file = folder.join("mosquitto.conf");
                fs::write(&file, mosquitto_conf(port))?;
                (found("mosquitto")?, ["-c".into(), file.into_os_string()].to_vec(), Counter::Sys)
            }
            Kind::Redis => {
                let text = format!("--port {port} --bind 127.0.0.1 --appendonly no --dir");
                let mut arguments = words(&text);
                let more: [OsString; 3] = [folder.into(), "--save".into(), "".into()];
                arguments.extend(more);
                (found("redis-server")?, arguments, Counter::Info)
            }
            Kind::Nats => {
                let text = format!("-a 127.0.0.1 -p {port} -m {monitor}");
                (found("nats-server")?, words(&text), Counter::Varz)
            }
            Kind::Sink(protocol) => {
                let file = count_file.clone().into_os_string();
                let arguments = [protocol.into(), port.to_string().into(), file].to_vec();
                (places.floor.join("floor_sink"), arguments, Counter::File)
            }
            Kind::Sockperf => {
                let text = format!("server --tcp -i 127.0.0.1 -p {port}");
                (found("sockperf")?, words(&text), Counter::None)
            }
            Kind::Netperf => {
                let text = format!("-D -L 127.0.0.1 -p {port}");
                (found("netserver")?, words(&text), Counter::None)
            }
            Kind::Reference(protocol) => {
                let mut arguments = words(&format!("serve {protocol} --listen 127.0.0.1:{port}"));
                if protocol == "http3" {
                    arguments.extend(["--certificates".into(), folder.join("ca").into()]);
                }
                (places.weigh.clone(), arguments, Counter::None)
            }
            Kind::Echo => {
                let arguments =
                    ["serve".into(), port.to_string().into(), FRAME_BYTES.into(), ECHOED.into()]
                        .to_vec();
                (places.floor.join("floor_tcp"), arguments, Counter::None)
            }
        };
        let log = File::create(folder.join("target.log"))?;
        let child = process::on_core(cores.target, cores.is_ahead)
            .arg(&program)
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut target = Target { child, port, counter, monitor, count_file };
        target.await_ready(folder, kind)?;
        Ok(target)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn await_ready(&mut self, folder: &Path, kind: Kind) -> anyhow::Result<()> {
        let start = Instant::now();
        let said = || fs::read_to_string(folder.join("target.log")).unwrap_or_default();
        let listens = |port| match kind {
            Kind::Reference("coap") => answers_ping(port),
            Kind::Reference("http3") => said().contains("h3://"),
            Kind::Nats => accepts(port) && accepts(self.monitor),
            _ => accepts(port),
        };
        while !listens(self.port) {
            if let Some(status) = self.child.try_wait()? {
                bail!("the target ended at once ({status}): {}", said());
            }
            if start.elapsed() > READY_WITHIN {
                bail!("the target does not listen after {READY_WITHIN:?}: {}", said());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn accepts(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// An empty confirmable message of CoAP is answered by a reset (RFC 7252, section 4.3).
fn answers_ping(port: u16) -> bool {
    let asked = || -> std::io::Result<usize> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        socket.send(b"\x40\x00\x77\x67")?;
        socket.recv(&mut [0; 16])
    };
    asked().is_ok()
}

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

fn found(name: &str) -> anyhow::Result<PathBuf> {
    process::program(name)
        .with_context(|| format!("{name} is not installed: apt-get install {name}"))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Makes a key and a certificate in `folder`, and returns the lines of nginx's server that use
/// them. The cipher suite and the group are fixed, so that every client does the same work. Plain
/// requests on the same port get the counter, as only `Counter::StubStatus` sends them.
fn make_certificate(folder: &Path) -> anyhow::Result<String> {
    let (key, cert) = (folder.join("key.pem"), folder.join("cert.pem"));
    let made = Command::new(found("openssl")?)
        .args("req -x509 -nodes -days 2 -subj /CN=localhost -newkey ec".split(' '))
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext"])
        .arg("subjectAltName=IP:127.0.0.1")
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()?;
    ensure!(made.status.success(), "no certificate: {}", String::from_utf8_lossy(&made.stderr));
    Ok(format!(
        "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256; ssl_ecdh_curve X25519;
    error_page 497 =200 /stat;",
        cert.display(),
        key.display()
    ))
}

fn nginx_conf(folder: &Path, port: u16, tls: &str) -> String {
    let folder = folder.display();
    let ssl = if tls.is_empty() { "" } else { " ssl" };
    format!(
        "worker_processes 1;
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log crit;
events {{ worker_connections 16000; multi_accept on; }}
http {{
  access_log off;
  default_type text/plain;
  tcp_nodelay on;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port}{ssl} backlog=4096;
    {tls}
    location = /stat {{ stub_status; }}
    location / {{ return 200 \"ok\"; }}
  }}
}}
"
    )
}

/// No limit on queues or messages in flight, so that the generator and not a policy is weighed.
fn mosquitto_conf(port: u16) -> String {
    format!(
        "listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
set_tcp_nodelay true
sys_interval 1
persistence false
log_dest none
connection_messages false
"
    )
}

/// Bytes of a `tcp` frame with a body of 64 bytes: the echo server turns byte 4 of each into the
/// kind of an echo's answer (crates/protocols/src/tcp/README.md).
pub(crate) const FRAME_BYTES: &str = "73";
const ECHOED: &str = "130";
const READY_WITHIN: Duration = Duration::from_secs(5);
