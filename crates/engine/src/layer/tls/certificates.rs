//! Certificates made for a run: an authority that only this run trusts, and the certificates that
//! it signed.

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::choice::TlsError;

/// Paths of the certificate files; all of them are PEM.
#[derive(Clone, Debug)]
pub struct Certificates {
    folder: PathBuf,
    /// Keys that are on no disk: the server's and the client's.
    keys: Option<Arc<[fs::File; 2]>>,
}

/// Holder of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeFor {
    /// A server of these names and addresses.
    Server,
    /// A client.
    Client,
}

impl Certificates {
    /// Makes an authority, a server's certificate for `localhost`, 127.0.0.1 and ::1, and a
    /// client's, all with keys on the curve P-256, and writes them into `folder`. The authority's
    /// own key is thrown away. Keys are readable for their owner alone.
    ///
    /// # Errors
    /// If they cannot be made or written.
    pub fn make(folder: &Path) -> Result<Certificates, TlsError> {
        let made = Certificates { folder: folder.to_owned(), keys: None };
        let keys = made.write_certificates()?;
        for (whom, key) in [MadeFor::Server, MadeFor::Client].into_iter().zip(keys) {
            made.write(&format!("{}.key", whom.name()), &key)?;
        }
        Ok(made)
    }

    /// Makes them as [`Certificates::make`] does, but keys are in memory only, where this process
    /// and those that it starts read them as files (memfd_create(2), proc(5)). They vanish with the
    /// last of these processes, however it ends.
    ///
    /// # Errors
    /// If they cannot be made or written.
    pub fn make_with_keys_in_memory(folder: &Path) -> Result<Certificates, TlsError> {
        let mut made = Certificates { folder: folder.to_owned(), keys: None };
        let [server, client] = made.write_certificates()?;
        let wrong =
            |error: io::Error| TlsError::file(folder, &format!("no memory for keys: {error}"), "");
        let keys = [in_memory(&server).map_err(wrong)?, in_memory(&client).map_err(wrong)?];
        made.keys = Some(Arc::new(keys));
        Ok(made)
    }

    /// Writes the certificates, and hands out the keys of server and client.
    fn write_certificates(&self) -> Result<[String; 2], TlsError> {
        let (authority, issuer) = authority().map_err(TlsError::making)?;
        self.write("ca.pem", &authority)?;
        let each = |whom: MadeFor| -> Result<String, TlsError> {
            let (certificate, key) = signed(&issuer, whom).map_err(TlsError::making)?;
            self.write(&format!("{}.pem", whom.name()), &certificate)?;
            Ok(key)
        };
        Ok([each(MadeFor::Server)?, each(MadeFor::Client)?])
    }

    /// Those that [`Certificates::make`] wrote there.
    pub fn at(folder: &Path) -> Certificates {
        Certificates { folder: folder.to_owned(), keys: None }
    }

    /// The authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Certificate and key of one side.
    pub fn of(&self, whom: MadeFor) -> (PathBuf, PathBuf) {
        let name = whom.name();
        let key = match &self.keys {
            None => self.folder.join(format!("{name}.key")),
            Some(keys) => {
                let descriptor = keys[whom as usize].as_raw_fd();
                PathBuf::from(format!("/proc/self/fd/{descriptor}"))
            }
        };
        (self.folder.join(format!("{name}.pem")), key)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TlsError> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.folder.join(name);
        fs::create_dir_all(&self.folder)
            .and_then(|()| {
                let mut options = fs::OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o600).open(&path)
            })
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| TlsError::file(&path, &format!("cannot be written: {error}"), ""))
    }
}

impl MadeFor {
    fn name(self) -> &'static str {
        match self {
            MadeFor::Server => "server",
            MadeFor::Client => "client",
        }
    }
}

fn in_memory(key: &str) -> io::Result<fs::File> {
    // Inherited by whatever is started: what lies below another's /proc/PID/fd may be read only by
    // those with his capabilities (ptrace(2)), which children in user namespaces have not.
    let flags = rustix::fs::MemfdFlags::empty();
    let mut file = fs::File::from(rustix::fs::memfd_create("weigh-key", flags)?);
    file.write_all(key.as_bytes())?;
    Ok(file)
}

fn authority() -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut wanted = CertificateParams::new(Vec::new())?;
    // Authorities of different runs must not be taken for each other by their names.
    let mark: String = key.public_key_raw()[1..9].iter().map(|b| format!("{b:02x}")).collect();
    wanted.distinguished_name.push(DnType::CommonName, format!("Weighbridge, one run, {mark}"));
    wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    wanted.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = wanted.self_signed(&key)?;
    Ok((certificate.pem(), Issuer::new(wanted, key)))
}

fn signed(
    issuer: &Issuer<'static, KeyPair>,
    whom: MadeFor,
) -> Result<(String, String), rcgen::Error> {
    let (names, name, usage) = match whom {
        MadeFor::Server => {
            let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
            (names, "localhost", ExtendedKeyUsagePurpose::ServerAuth)
        }
        MadeFor::Client => (Vec::new(), "weigh", ExtendedKeyUsagePurpose::ClientAuth),
    };
    let key = KeyPair::generate()?;
    let mut wanted = CertificateParams::new(names)?;
    wanted.distinguished_name.push(DnType::CommonName, name);
    wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    wanted.extended_key_usages = vec![usage];
    wanted.use_authority_key_identifier_extension = true;
    let certificate = wanted.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
