//! Certificates that must not be accepted, and the words of the refusal.

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

use super::pair::{Folder, Pair, Setting};
use crate::layer::tls::{Certificates, Identity, MadeFor, Versions};

/// Every way in which a certificate can be wrong has its own words and its own fix.
#[test]
fn wrong_certificates_are_named() {
    let folder = Folder::new();
    let others = Certificates::make(&folder.0).unwrap();
    let (identity, authority) = expired(&folder);
    for (setting, said, fix) in [
        (Setting { name: "elsewhere", ..Setting::default() }, "not for elsewhere", "tls_name"),
        (
            Setting { authority: Some(others.authority()), ..Setting::default() },
            "authority is not known",
            "--cacert",
        ),
        (
            Setting { identity: Some(identity), authority: Some(authority), ..Setting::default() },
            "has expired",
            "renew",
        ),
        (
            Setting { mutual: true, shows_itself: false, ..Setting::default() },
            "requires a client certificate",
            "--cert",
        ),
        (
            Setting {
                versions: Versions::Tls12,
                server_versions: Some(Versions::Tls13),
                ..Setting::default()
            },
            "this version",
            "--tls on",
        ),
    ] {
        let mut pair = Pair::new(&setting.made(), vec![1_000]);
        pair.run();
        let fault = pair.fault.clone().unwrap_or_else(|| panic!("accepted: {said}")).to_string();
        assert!(fault.contains(said) && fault.contains(fix), "{fault}");
        assert!(pair.answers().is_empty());
    }
}

/// A certificate of `openssl req -x509` is an authority's certificate. If it is named, it is
/// accepted as the server's own, provided that it is for this host and of this time; another one
/// that signs itself is not.
#[test]
fn an_authority_that_serves_itself_is_taken_if_it_is_named() {
    let folder = Folder::new();
    let own = |name: &str, host: &str, until: i32| {
        let key = KeyPair::generate().unwrap();
        let mut wanted = CertificateParams::new(vec![host.to_owned()]).unwrap();
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        wanted.not_before = date_time_ymd(2001, 1, 1);
        wanted.not_after = date_time_ymd(until, 1, 1);
        let certificate = wanted.self_signed(&key).unwrap();
        let path = |end: &str| folder.0.join(format!("{name}.{end}"));
        std::fs::write(path("pem"), certificate.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        (Identity { certificate: path("pem"), key: path("key") }, path("pem"))
    };
    let (identity, authority) = own("own", "localhost", 4000);
    let (other, _) = own("other", "localhost", 4000);
    let (elsewhere, of_elsewhere) = own("elsewhere", "elsewhere", 4000);
    let (old, of_old) = own("old", "localhost", 2002);
    for (identity, authority, said) in [
        (identity, authority.clone(), None),
        (other, authority, Some("--cacert FILE")),
        (elsewhere, of_elsewhere, Some("not for localhost")),
        (old, of_old, Some("has expired")),
    ] {
        for versions in [Versions::Tls12, Versions::Tls13] {
            let (identity, authority) = (Some(identity.clone()), Some(authority.clone()));
            let setting = Setting { identity, authority, versions, ..Setting::default() };
            let mut pair = Pair::new(&setting.made(), vec![1_000]);
            pair.run();
            let fault = pair.fault.as_ref().map(ToString::to_string);
            match said {
                None => assert!(pair.is_ready() && fault.is_none(), "{fault:?}"),
                Some(said) => assert!(fault.as_ref().unwrap().contains(said), "{fault:?}"),
            }
        }
    }
}

/// Without a check everything is accepted, and what would have been wrong is reported.
#[test]
fn what_is_not_checked_is_told() {
    let setting = Setting { name: "elsewhere", verifies: false, ..Setting::default() };
    let made = setting.made();
    let mut pair = Pair::new(&made, vec![1_000]);
    pair.run();
    assert!(pair.is_ready());
    let told = made.client_tally.figures().unchecked.unwrap();
    assert!(told.contains("not for elsewhere"), "{told}");
}

/// A server that speaks something else.
#[test]
fn what_is_no_tls_is_named() {
    let made = Setting::default().made();
    let mut pair = Pair::new(&made, vec![1_000]);
    pair.deliver(b"220 ready, who is there?\r\n");
    let fault = pair.fault.clone().unwrap().to_string();
    assert!(fault.contains("are not TLS") && fault.contains("port"), "{fault}");
}

/// Files are looked at before anything is connected to.
#[test]
fn wrong_files_are_named() {
    let folder = Folder::new();
    let certificates = Certificates::make(&folder.0).unwrap();
    let ((certificate, key), (_, other_key)) =
        (certificates.of(MadeFor::Server), certificates.of(MadeFor::Client));
    let nonsense = folder.0.join("nonsense.pem");
    std::fs::write(&nonsense, "no certificate at all\n").unwrap();
    let missing = folder.0.join("missing.pem");
    let identity = |certificate: &std::path::Path, key: &std::path::Path| {
        Some(Identity { certificate: certificate.to_owned(), key: key.to_owned() })
    };
    let of = |identity| Setting { identity, ..Setting::default() };
    for (setting, said) in [
        (of(identity(&certificate, &other_key)), "is not the certificate of the key"),
        (of(identity(&nonsense, &key)), "nonsense.pem: contains no certificate; check the path"),
        (
            of(identity(&certificate, &nonsense)),
            "nonsense.pem: contains no private key; give the key",
        ),
        (of(identity(&missing, &key)), "missing.pem: cannot be read"),
        (
            Setting { authority: Some(nonsense.clone()), ..Setting::default() },
            "nonsense.pem: contains no certificate",
        ),
        (Setting { name: "no name", ..Setting::default() }, "is not a host name"),
    ] {
        let Err(error) = setting.try_made() else { panic!("accepted: {said}") };
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn expired(folder: &Folder) -> (Identity, std::path::PathBuf) {
    let key = KeyPair::generate().unwrap();
    let mut wanted = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    wanted.not_before = date_time_ymd(2001, 1, 1);
    wanted.not_after = date_time_ymd(2002, 1, 1);
    let certificate = wanted.self_signed(&key).unwrap();
    let path = |name: &str| folder.0.join(name);
    std::fs::write(path("old.pem"), certificate.pem()).unwrap();
    std::fs::write(path("old.key"), key.serialize_pem()).unwrap();
    let identity = Identity { certificate: path("old.pem"), key: path("old.key") };
    (identity, path("old.pem"))
}
