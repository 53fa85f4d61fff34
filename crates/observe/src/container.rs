//! Containers by name: the first process of each and its control group. Read from the engine's
//! socket, as its own command does, or from the engine's files.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::ObserveError;
use crate::group::Group;
use crate::host::Roots;
use crate::subject::Subject;

/// Where container engines are on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engines {
    /// Sockets that speak the API of Docker, which Podman speaks too.
    pub sockets: Vec<PathBuf>,
    /// Folders in which Docker keeps a folder for each container.
    pub docker: Vec<PathBuf>,
    /// Files in which Podman lists its containers.
    pub podman: Vec<PathBuf>,
}

/// A running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id, 64 hexadecimal digits.
    pub id: String,
    /// Process ID of its first process on this machine; 0 if only its id is known.
    pub pid: u32,
}

impl Engines {
    /// The usual places, and that of `DOCKER_HOST`.
    pub fn from_environment() -> Engines {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let mut sockets: Vec<PathBuf> = Vec::new();
        let named = text("DOCKER_HOST");
        sockets.extend(named.as_deref().and_then(|url| Some(url.strip_prefix("unix://")?.into())));
        sockets.extend(["/var/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from));
        let own = text("XDG_RUNTIME_DIR").map(PathBuf::from);
        sockets.extend(own.map(|folder| folder.join("podman/podman.sock")));
        let listed = "overlay-containers/containers.json";
        let mut podman = vec![Path::new("/var/lib/containers/storage").join(listed)];
        let home = text("HOME").map(PathBuf::from);
        podman.extend(home.map(|home| home.join(".local/share/containers/storage").join(listed)));
        Engines { sockets, docker: vec!["/var/lib/docker/containers".into()], podman }
    }

    /// The container of this name or id.
    ///
    /// # Errors
    /// If no engine knows it, or if it does not run.
    pub fn find(&self, name: &str) -> Result<Container, ObserveError> {
        let refused = |why: String| ObserveError::NoContainer { name: name.to_owned(), why };
        let mut seen = Vec::new();
        for socket in &self.sockets {
            match asked(socket, name) {
                Ok(Some(found)) => return found.running().map_err(refused),
                Ok(None) => {
                    seen.push(format!("{} does not know it; check its name", socket.display()));
                }
                Err(why) => seen.extend(why.map(|why| format!("{}: {why}", socket.display()))),
            }
        }
        for folder in &self.docker {
            if let Some(found) = written_by_docker(folder, name, &mut seen) {
                return found.running().map_err(refused);
            }
        }
        for file in &self.podman {
            if let Some(id) = written_by_podman(file, name, &mut seen) {
                return Ok(Container { id, pid: 0 });
            }
        }
        Err(refused(match seen.is_empty() {
            true => "no container engine was found on this machine; name a process with pid:N"
                .to_owned(),
            false => seen.join("; "),
        }))
    }
}

impl Container {
    /// What is to be observed: its control group if that bears its id, so that processes started in
    /// it later count too; otherwise its first process and the descendants of that.
    ///
    /// # Errors
    /// If it has ended.
    pub fn subject(&self, roots: &Roots) -> Result<Subject, ObserveError> {
        let group = match self.pid {
            0 => self.group_of_any(roots),
            pid => self.group_of(&roots.proc.join(pid.to_string())),
        };
        if let Some(group) = group.and_then(|path| Group::open(&path, roots).ok()) {
            return Subject::group(group);
        }
        match self.pid {
            0 => Err(ObserveError::NoContainer {
                name: self.id.clone(),
                why: "no process is in a control group of this ID: start it first".to_owned(),
            }),
            pid => Subject::tree(pid),
        }
    }

    /// The path of the group with its id in which the process with this folder is, as cgroups(7)
    /// writes it: `HIERARCHY:CONTROLLERS:PATH`.
    fn group_of(&self, process: &Path) -> Option<String> {
        let text = fs::read_to_string(process.join("cgroup")).ok()?;
        text.lines().find_map(|line| {
            let path = line.splitn(3, ':').nth(2)?;
            // Podman's monitor has a group of its own, whose name holds the container's too.
            if path.contains(MONITOR) {
                return None;
            }
            let place = path.find(&self.id)?;
            let end = path[place..].find('/').map_or(path.len(), |slash| place + slash);
            Some(path[..end].to_owned())
        })
    }

    fn group_of_any(&self, roots: &Roots) -> Option<String> {
        let entries = fs::read_dir(&roots.proc).ok()?;
        let is_number = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
        };
        let mut processes = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_number);
        processes.find_map(|process| self.group_of(&process))
    }
}

/// Part of the name of the group of Podman's monitor, `libpod-conmon-ID.scope` (conmon(8)).
const MONITOR: &str = "conmon";

/// The needed fields of an engine's answer (Docker Engine API,
/// "ContainerInspect"; Docker writes them to `config.v2.json`).
#[derive(Debug, Deserialize)]
struct Inspected {
    #[serde(alias = "Id")]
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "State")]
    state: State,
}

#[derive(Debug, Deserialize)]
struct State {
    #[serde(rename = "Pid", default)]
    pid: u32,
}

/// A container in Podman's list.
#[derive(Debug, Deserialize)]
struct Listed {
    id: String,
    #[serde(default)]
    names: Vec<String>,
}

impl Inspected {
    fn running(self) -> Result<Container, String> {
        match self.state.pid {
            0 => Err("it does not run: start it first".to_owned()),
            pid => Ok(Container { id: self.id, pid }),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name.trim_start_matches('/') == name || is_id(&self.id, name)
    }
}

/// True for an id, complete or as short as engines show it.
fn is_id(id: &str, name: &str) -> bool {
    name.len() >= ID_SHOWN && id.starts_with(name)
}

/// Asks an engine by HTTP/1.0 over its socket. `Ok(None)` if it does not know the container,
/// `Err(None)` if no engine answers.
fn asked(socket: &Path, name: &str) -> Result<Option<Inspected>, Option<String>> {
    if !socket.exists() {
        return Err(None);
    }
    let said = |error: std::io::Error| Some(error.to_string());
    let mut stream = UnixStream::connect(socket).map_err(said)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(said)?;
    let request = format!("GET /containers/{name}/json HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(said)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).map_err(said)?;
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).unwrap_or_default();
    match (status, text.split_once("\r\n\r\n")) {
        ("200", Some((_, body))) => match serde_json::from_str(body) {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                Err(Some(format!("its answer cannot be read: {error}; name a process with pid:N")))
            }
        },
        ("404", _) => Ok(None),
        _ => Err(Some(format!("it answers {status:?}"))),
    }
}

fn written_by_docker(folder: &Path, name: &str, seen: &mut Vec<String>) -> Option<Inspected> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            seen.push(format!("{}: {error}", folder.display()));
            return None;
        }
    };
    let configs = entries.filter_map(|entry| Some(entry.ok()?.path().join("config.v2.json")));
    let read = |path: PathBuf| serde_json::from_str(&fs::read_to_string(path).ok()?).ok();
    let found = configs.filter_map(read).find(|found: &Inspected| found.is_called(name));
    if found.is_none() {
        seen.push(format!("{} does not have it", folder.display()));
    }
    found
}

fn written_by_podman(file: &Path, name: &str, seen: &mut Vec<String>) -> Option<String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            seen.push(format!("{}: {error}", file.display()));
            return None;
        }
    };
    let listed: Vec<Listed> = serde_json::from_str(&text).unwrap_or_default();
    let is_it = |own: &Listed| own.names.iter().any(|known| known == name) || is_id(&own.id, name);
    let found = listed.into_iter().find(is_it).map(|own| own.id);
    if found.is_none() {
        seen.push(format!("{} does not list it", file.display()));
    }
    found
}

/// Engines show 12 of the 64 digits.
const ID_SHOWN: usize = 12;

/// An engine on the same machine answers at once.
const PATIENCE: Duration = Duration::from_secs(3);

/// Description of one container: some kilobytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const ID: &str = "aaaabbbbccccddddeeeeffff00001111aaaabbbbccccddddeeeeffff00001111";

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("weigh-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        }

        fn engines(&self) -> Engines {
            Engines {
                sockets: vec![self.0.join("engine.sock")],
                docker: vec![self.0.join("docker")],
                podman: vec![self.0.join("podman/containers.json")],
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_engine_is_asked_by_its_socket() {
        let folder = Folder::new("engine-socket");
        let listener = UnixListener::bind(folder.0.join("engine.sock")).unwrap();
        let answering = std::thread::spawn(move || {
            for answer in [
                format!("HTTP/1.0 200 OK\r\n\r\n{{\"Id\":\"{ID}\",\"State\":{{\"Pid\":41}}}}"),
                format!("HTTP/1.0 200 OK\r\n\r\n{{\"Id\":\"{ID}\",\"State\":{{\"Pid\":0}}}}"),
                "HTTP/1.0 404 Not Found\r\n\r\n{}".to_owned(),
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 256];
                let count = stream.read(&mut request).unwrap();
                assert!(request[..count].starts_with(b"GET /containers/web/json HTTP/1.0\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let engines = folder.engines();
        assert_eq!(engines.find("web").unwrap(), Container { id: ID.to_owned(), pid: 41 });
        assert!(engines.find("web").unwrap_err().to_string().contains("does not run"));
        assert!(engines.find("web").unwrap_err().to_string().contains("does not know it"));
        answering.join().unwrap();
    }

    #[test]
    fn what_engines_wrote_down_is_read() {
        let folder = Folder::new("engine-files");
        let config = format!("{{\"ID\":\"{ID}\",\"Name\":\"/web\",\"State\":{{\"Pid\":9}}}}");
        folder.write(&format!("docker/{ID}/config.v2.json"), &config);
        folder
            .write("podman/containers.json", "[{\"id\":\"ffff0000ffff0000\",\"names\":[\"db\"]}]");
        let engines = folder.engines();
        for name in ["web", &ID[..12], ID] {
            assert_eq!(engines.find(name).unwrap().pid, 9, "{name}");
        }
        let podman = engines.find("db").unwrap();
        assert_eq!((podman.id.as_str(), podman.pid), ("ffff0000ffff0000", 0));
        let error = engines.find("other").unwrap_err().to_string();
        assert!(
            error.contains("does not have it") && error.contains("does not list it"),
            "{error}"
        );
        let none = Engines { sockets: vec![], docker: vec![], podman: vec![] };
        assert!(none.find("web").unwrap_err().to_string().contains("no container engine"));
    }

    #[test]
    fn its_group_bears_its_id() {
        let folder = Folder::new("engine-group");
        let path = format!("/machine.slice/libpod-{ID}.scope");
        folder.write("proc/9/cgroup", &format!("0::{path}/container\n"));
        folder.write("proc/8/cgroup", "0::/user.slice\n");
        let monitor = format!("/machine.slice/libpod-conmon-{ID}.scope");
        folder.write("proc/7/cgroup", &format!("0::{monitor}\n"));
        folder.write(&format!("sys/fs/cgroup{monitor}/cpu.stat"), "usage_usec 1\n");
        folder.write(&format!("sys/fs/cgroup{path}/cpu.stat"), "usage_usec 5\n");
        let roots = Roots { proc: folder.0.join("proc"), sys: folder.0.join("sys") };
        for pid in [9, 0] {
            let container = Container { id: ID.to_owned(), pid };
            assert!(matches!(container.subject(&roots), Ok(Subject::Group(_))), "{pid}");
            let group = container.group_of_any(&roots).expect("a group");
            assert_eq!(group, path, "not its monitor's");
        }
        let elsewhere = Container { id: "b".repeat(64), pid: 0 };
        let error = elsewhere.subject(&roots).unwrap_err().to_string();
        assert!(error.contains("start it first"), "{error}");
        let itself = Container { id: "b".repeat(64), pid: std::process::id() };
        assert!(matches!(itself.subject(&roots), Ok(Subject::Tree(_))));
    }
}
