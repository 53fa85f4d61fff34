//! Servers that are asked, and what they are found to be able to do.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weigh_engine::serving::Serving;
use weigh_model::protocol::Host;
use weigh_model::trial::Settings;
use weigh_probe::abilities::{Ability, Status, Value};
use weigh_probe::{Bounds, Reach, Unusable, probe};
use weigh_protocols as registry;

/// Abilities by name.
pub struct Found(BTreeMap<String, Ability>);

impl Found {
    /// Fails unless the ability has this status and number.
    #[track_caller]
    pub fn is(&self, name: &str, status: Status, number: u64) -> &Found {
        let ability = self.ability(name);
        let value = ability.value.clone();
        assert_eq!((ability.status, value), (status, Some(Value::Number(number))), "{ability:?}");
        self
    }

    /// Fails unless the ability has this status.
    #[track_caller]
    pub fn stands(&self, name: &str, status: Status) -> &Found {
        let ability = self.ability(name);
        assert_eq!(ability.status, status, "{ability:?}");
        self
    }

    /// Fails unless what was seen holds this.
    #[track_caller]
    pub fn saw(&self, name: &str, text: &str) -> &Found {
        let ability = self.ability(name);
        assert!(ability.evidence.contains(text), "{ability:?}");
        self
    }

    #[track_caller]
    pub fn ability(&self, name: &str) -> &Ability {
        self.0.get(name).unwrap_or_else(|| panic!("nothing was asked about {name}"))
    }
}

/// Starts a reference server with these settings.
pub fn serve(protocol: &str, given: &[(&str, &str)]) -> Serving {
    serve_as(protocol, given, |host| host)
}

/// Starts a reference server with these settings inside layers.
pub fn serve_as(
    protocol: &str,
    given: &[(&str, &str)],
    layers: impl FnOnce(Host) -> Host,
) -> Serving {
    let protocol = registry::find(protocol).unwrap();
    let given = given.iter().copied();
    let settings = Settings::new(protocol.name(), protocol.settings(), given).unwrap();
    let host = layers(protocol.host(&settings).unwrap());
    Serving::start(&host, SocketAddr::from(([127, 0, 0, 1], 0)), 1).unwrap()
}

/// A reference server inside QUIC, the access to it, and the folder of its certificates, which the
/// test removes; `url` has `ADDRESS` for where it is.
#[cfg(feature = "quic")]
pub fn inside_quic(
    (protocol, given): (&str, &[(&str, &str)]),
    alpn: &str,
    url: &str,
) -> (Serving, Reach, std::path::PathBuf) {
    use std::sync::Arc;

    use weigh_engine::layer::quic::{Congestion, Tuning, secure_host};
    use weigh_engine::layer::tls::{
        Certificates, ClientChoice, Identity, MadeFor, ServerChoice, Versions,
    };

    let name = format!("weigh-probe-{alpn}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let made = Certificates::make(&folder).unwrap();
    let (certificate, key) = made.of(MadeFor::Server);
    let choice = ServerChoice {
        versions: Versions::Both,
        identity: Identity { certificate, key },
        clients: None,
        alpn: vec![alpn.as_bytes().to_vec()],
        resumes: false,
    };
    let tuning =
        Tuning { congestion: Congestion::Cubic, datagram_bytes: 1_200, is_cut_by_kernel: false };
    let server = serve_as(protocol, given, |host| {
        secure_host(host, &choice, &tuning, &Arc::default()).unwrap()
    });
    let address = server.address();
    let mut inside = reach(&url.replace("ADDRESS", &address.to_string()), address, PATIENCE);
    inside.tls = Some(ClientChoice {
        versions: Versions::Both,
        authority: Some(made.authority()),
        identity: None,
        name: "localhost".to_owned(),
        alpn: Vec::new(),
        resumes: false,
        verifies: true,
    });
    (server, inside, folder)
}

/// Returns the access to `url`.
pub fn reach(url: &str, address: SocketAddr, patience: Duration) -> Reach {
    Reach {
        endpoint: weigh_protocols::urls::endpoint(url).unwrap(),
        address,
        #[cfg(feature = "tls")]
        tls: None,
        patience,
        end: Instant::now() + Duration::from_secs(300),
        stop: Default::default(),
    }
}

/// Asks a server that is there everything.
#[track_caller]
pub fn ask(scheme: &str, address: SocketAddr, bounds: Bounds) -> Found {
    ask_at(scheme, address, "", bounds)
}

/// Probes a server at a path.
#[track_caller]
pub fn ask_at(scheme: &str, address: SocketAddr, path: &str, bounds: Bounds) -> Found {
    asked(&reach(&format!("{scheme}://{address}{path}"), address, PATIENCE), bounds).unwrap()
}

/// Asks the server everything.
pub fn asked(reach: &Reach, bounds: Bounds) -> Result<Found, Unusable> {
    let mut told = 0;
    let found = probe(reach, bounds, &mut |_| told += 1)?;
    assert_eq!(told, found.len());
    Ok(Found(found.into_iter().map(|ability| (ability.name.clone(), ability)).collect()))
}

/// A server that treats every connection in its own way until the test ends.
pub fn stranger(treat: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let treat = treat.clone();
            std::thread::spawn(move || treat(stream));
        }
    });
    address
}

/// Sends this answer to a client that has sent something, and then nothing.
pub fn saying(answer: &'static [u8]) -> SocketAddr {
    stranger(move |mut stream| {
        let mut heard = [0; 1024];
        if stream.read(&mut heard).is_ok_and(|count| count > 0) {
            let _ = stream.write_all(answer);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    })
}

/// Few and small, so that a test is quick.
pub const SMALL: Bounds = Bounds { payload_bytes: 20_000, name_bytes: 65_535, queue_messages: 300 };

/// Long enough on a busy machine; only what never comes takes it.
pub const PATIENCE: Duration = Duration::from_secs(2);
