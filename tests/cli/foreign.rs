//! Programs of other makes: a Python with its libraries, and servers that end with their test.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::ops::{Deref, DerefMut};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::rig::{Place, has, skip, until};

/// The Python of this variable, else `python3`, if it has these modules; `None`, and said, if not.
#[track_caller]
pub fn python(variable: &str, modules: &str) -> Option<String> {
    let python = std::env::var(variable).unwrap_or_else(|_| "python3".to_owned());
    let has_it = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
    if has_it.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip(&format!("no {modules}: set {variable} to a Python that has it"));
    None
}

/// A process that ends with its test.
pub struct Process(pub Child);

impl Process {
    /// Starts a server that says nothing.
    pub fn quiet(command: &mut Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Process(command.spawn().expect("it starts"))
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of a test: its first line is its port, and after the end of its input it prints what it
/// counted.
pub struct Counting {
    pub process: Process,
    out: BufReader<ChildStdout>,
    pub port: String,
}

impl Counting {
    pub fn start(mut command: Command) -> Counting {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output"));
        let mut port = String::new();
        out.read_line(&mut port).expect("its port");
        Counting { process: Process(child), out, port: port.trim().to_owned() }
    }

    /// The URL at which it is reached.
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    pub fn end(mut self) -> String {
        drop(self.process.stdin.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("its last line");
        self.process.wait().expect("it ends");
        rest.trim().to_owned()
    }
}

/// An installed server on a free port.
pub struct Installed {
    _process: Process,
    pub port: u16,
}

impl Installed {
    /// Starts `program` in the place's folder, where `server.conf` is `file`: in it and in the
    /// arguments PORT is the port. `None`, and said, if it is not installed.
    pub fn start(
        place: &Place,
        program: &str,
        arguments: &[&str],
        file: &str,
    ) -> Option<Installed> {
        if !has(program) {
            return None;
        }
        let port = free_port();
        let with_port = |text: &str| text.replace("PORT", &port.to_string());
        place.write("server.conf", &with_port(file));
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
        let mut command = Command::new(program);
        command
            .args(arguments.iter().map(|own| with_port(own)))
            .current_dir(place.folder())
            .env("PATH", path);
        let process = Process::quiet(&mut command);
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Installed { _process: process, port })
    }

    /// Mosquitto, with more lines in its file.
    pub fn mosquitto(place: &Place, more: &str) -> Option<Installed> {
        let file = format!("listener PORT 127.0.0.1\nallow_anonymous true\n{more}");
        Installed::start(place, "mosquitto", &["-c", "server.conf"], &file)
    }

    /// nginx, with this part of its file as `http`.
    pub fn nginx(place: &Place, http: &str) -> Option<Installed> {
        let file = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr crit;\n\
             events {{ worker_connections 64; }}\nhttp {{ access_log off; {http} }}\n"
        );
        let arguments = ["-p", ".", "-e", "stderr", "-c", "server.conf"];
        Installed::start(place, "nginx", &arguments, &file)
    }

    /// The URL at which it is reached.
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }
}

/// A port of TCP that is free now.
pub fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr());
    free.expect("a port").port()
}

/// A port of UDP that is free now.
pub fn free_udp_port() -> u16 {
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|own| own.local_addr());
    free.expect("a port").port()
}
