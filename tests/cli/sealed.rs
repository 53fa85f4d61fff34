//! Sealed objects as a user makes, opens and looks at them, with keys that openssl made; and bodies
//! that are sealed on their way.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::rig::{Ended, Place};

/// A folder with the keys, each with the permissions that it should have.
fn place(name: &str) -> Place {
    let place = Place::new(name);
    for (file, text) in [
        ("alice.pem", include_str!("keys/alice.pem")),
        ("alice.pub", include_str!("keys/alice.pub")),
        ("bob.pem", include_str!("keys/bob.pem")),
        ("bob.pub", include_str!("keys/bob.pub")),
        ("owner.pem", include_str!("keys/owner.pem")),
        ("owner.pub", include_str!("keys/owner.pub")),
        ("p256.pem", include_str!("keys/p256.pem")),
        ("p256.pub", include_str!("keys/p256.pub")),
        ("locked.pem", include_str!("keys/locked.pem")),
    ] {
        place.write(file, text);
        let mode = if file.ends_with(".pem") { 0o600 } else { 0o644 };
        allow(&place, file, mode);
    }
    place.write("reading.json", READING);
    place
}

fn allow(place: &Place, file: &str, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(place.folder().join(file), permissions).unwrap();
}

/// The command succeeds.
fn done(place: &Place, arguments: &str) -> Ended {
    let ended = place.weigh(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.code, Some(0), "{arguments}: {}", ended.stderr);
    ended
}

/// The command ends with 2, writes nothing, and says this.
fn refused(place: &Place, arguments: &str, said: &[&str]) {
    let ended = place.weigh(&arguments.split(' ').collect::<Vec<_>>());
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
    for said in said {
        assert!(ended.stderr.contains(said), "{arguments}: {} has no {said:?}", ended.stderr);
    }
}

fn file(place: &Place, name: &str) -> PathBuf {
    place.folder().join(name)
}

const READING: &str = "{\"ph\":6.1,\"ec\":1.8}";
const ALICE: &str = "96202ea0f621a3e9";
const BOB: &str = "5ab6d1776316e099";
const OWNER: &str = "803aa3556c548fa4";

#[test]
fn what_was_sealed_opens_for_its_participants_alone() {
    let place = place("sealed");
    done(&place, "seal make reading.json --to alice.pub bob.pub --sign owner.pem -o a.sealed");
    for key in ["alice.pem", "bob.pem"] {
        let ended = done(&place, &format!("seal open a.sealed --key {key} --signer owner.pub"));
        assert_eq!(ended.stdout, READING);
        assert!(ended.stderr.contains(OWNER), "{}", ended.stderr);
    }
    done(&place, "seal open a.sealed --key bob.pem --signer owner.pub -o b.json");
    assert_eq!(std::fs::read_to_string(file(&place, "b.json")).unwrap(), READING);
    let mode = file(&place, "b.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a content is for its owner");
    place.write("there.json", "what was there before, and longer than the content that comes");
    allow(&place, "there.json", 0o644);
    done(&place, "seal open a.sealed --key bob.pem --signer owner.pub -o there.json");
    assert_eq!(std::fs::read_to_string(file(&place, "there.json")).unwrap(), READING);
    let mode = file(&place, "there.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "also where others might read what was there");
    done(&place, "seal make reading.json --to alice.pub -o only.sealed --cipher chacha20-poly1305");
    refused(
        &place,
        "seal open only.sealed --key bob.pem",
        &[BOB, "not one of the object's recipients"],
    );
    refused(&place, "seal open only.sealed --key alice.pem --signer owner.pub", &["not signed"]);
    refused(&place, "seal open a.sealed --key alice.pem", &["is signed\nhelp: give its signer"]);
    done(&place, "seal open only.sealed --key alice.pem");
}

#[test]
fn what_was_changed_does_not_open() {
    let place = place("changed");
    place.write("p.toml", "purpose = \"water the tanks\"");
    done(
        &place,
        "seal make reading.json --to alice.pub --sign owner.pem --policy p.toml -o a.sealed",
    );
    done(&place, "seal make reading.json --to alice.pub --policy p.toml -o b.sealed");
    for (name, signer) in [("a.sealed", " --signer owner.pub"), ("b.sealed", "")] {
        let whole = std::fs::read(file(&place, name)).unwrap();
        let purpose = whole.windows(5).position(|window| window == b"water").unwrap();
        let cases = [whole[..whole.len() - 1].to_vec(), Vec::new(), {
            let mut changed = whole.clone();
            changed[purpose] = b'W';
            changed
        }];
        for changed in cases {
            std::fs::write(file(&place, "c.sealed"), changed).unwrap();
            refused(
                &place,
                &format!("seal open c.sealed --key alice.pem{signer}"),
                &["c.sealed: "],
            );
        }
    }
}

#[test]
fn a_policy_gives_each_participant_his_parts_and_its_time() {
    let place = place("policy");
    let policy = format!(
        "expires = 2199-01-01T00:00:00Z\n\
         audit_endpoint = \"https://audit.example\"\n\
         [[participants]]\nkey = \"{ALICE}\"\nrole = \"doctor\"\nactions = [\"open\"]\n\
         [[participants]]\nkey = \"{BOB}\"\nrole = \"office\"\nactions = [\"open\"]\n\
         parts = [\"address\"]\n\
         [[rules]]\neffect = \"allow\"\nobligation = \"delete it after use\"\n"
    );
    place.write("p.toml", &policy);
    place.write("street.txt", "street");
    let seal = "seal make reading.json address=street.txt --to alice.pub bob.pub --sign owner.pem";
    done(&place, &format!("{seal} --policy p.toml -o a.sealed"));
    let ended = done(&place, "seal open a.sealed --key bob.pem --signer owner.pub");
    assert_eq!(ended.stdout, "street");
    for said in ["delete it after use", "https://audit.example", "not for this key: reading.json"] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    let open = "seal open a.sealed --key alice.pem --signer owner.pub";
    refused(&place, open, &["several parts", "--part, of reading.json, address"]);
    assert_eq!(done(&place, &format!("{open} --part reading.json")).stdout, READING);
    refused(&place, &format!("{open} --part x"), &["the part is not there"]);
    let open = "seal open a.sealed --key bob.pem --signer owner.pub --part reading.json";
    refused(&place, open, &["the part is not readable with this key"]);
    place.write("p.toml", "expires = 2020-01-01T00:00:00Z");
    done(&place, "seal make reading.json --to alice.pub --policy p.toml -o old.sealed");
    refused(
        &place,
        "seal open old.sealed --key alice.pem",
        &["it expired at 2020-01-01T00:00:00Z"],
    );
    refused(
        &place,
        &format!("{seal} -o n.sealed"),
        &["no policy: several parts need one", "--policy"],
    );
    assert!(!file(&place, "n.sealed").exists());
}

#[test]
fn keys_that_will_not_do_are_named_with_the_fix() {
    let place = place("keys");
    let seal = "seal make reading.json -o x.sealed --to";
    for (arguments, said) in [
        ("owner.pub", ["owner.pub: an Ed25519 key", "openssl genpkey -algorithm X25519"]),
        ("p256.pub", ["p256.pub: a key of the kind ECDSA or ECDH", "X25519"]),
        ("alice.pem", ["alice.pem: found a private key", "openssl pkey -in PRIVATE -pubout"]),
        ("none.pub", ["none.pub: ", "name a file that can be read"]),
        ("reading.json", ["reading.json: not a public key in PEM", "openssl pkey"]),
        ("alice.pub alice.pub", ["a recipient is given twice", "name each key once"]),
        ("alice.pub --sign alice.pem", ["alice.pem: an X25519 key", "-algorithm ED25519"]),
        ("alice.pub --sign owner.pub", ["owner.pub: ", "private"]),
        ("alice.pub --cipher des", ["des", "chacha20-poly1305"]),
    ] {
        refused(&place, &format!("{seal} {arguments}"), &said);
    }
    assert!(!file(&place, "x.sealed").exists());
    done(&place, "seal make reading.json --to alice.pub -o a.sealed");
    allow(&place, "alice.pem", 0o640);
    refused(&place, "seal open a.sealed --key alice.pem", &["mode 0640", "chmod 600 alice.pem"]);
    refused(&place, "seal inspect --key alice.pem", &["mode 0640", "chmod 600 alice.pem"]);
    refused(
        &place,
        "seal open a.sealed --key locked.pem",
        &["with a password", "openssl pkey -in"],
    );
    refused(&place, "seal open a.sealed --key p256.pem", &["ECDSA or ECDH", "X25519"]);
    refused(&place, "seal open a.sealed --key alice.pub", &["alice.pub: "]);
    refused(
        &place,
        "seal open reading.json --key bob.pem",
        &["reading.json: not a complete sealed object"],
    );
    let full =
        place.weigh(&["seal", "make", "reading.json", "--to", "alice.pub", "-o", "/dev/full"]);
    assert_eq!(full.code, Some(4), "{}", full.stderr);
}

/// Anybody may have named the parts; no name commands the terminal of who looks.
#[test]
fn names_of_parts_are_shown_without_what_a_terminal_would_obey() {
    let place = place("names");
    let who = format!("[[participants]]\nkey = \"{ALICE}\"\nrole = \"a\"\nactions = [\"open\"]\n");
    place.write("p.toml", &who);
    let seal = "seal make one\u{1b}[2Jx=reading.json two=reading.json --to alice.pub";
    done(&place, &format!("{seal} --policy p.toml -o a.sealed"));
    for wanted in ["", " --part none\u{1b}[2J"] {
        let arguments = format!("seal open a.sealed --key alice.pem{wanted}");
        let ended = place.weigh(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("one\\u001b[2Jx, two"), "{}", ended.stderr);
        assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
    }
}

#[test]
fn a_policy_with_a_slip_is_told_its_place() {
    let place = place("slips");
    for (text, said) in [
        ("issuer = \"x\"\npurpos = \"y\"", ["p.toml: policy, line 2, column 1", "purpose"]),
        ("expires = \"soon\"", ["line 1, column 11", "2027-01-31T12:00:00Z"]),
        ("[[rules]]\neffect = \"allow\"\nwhat = \"x\"", ["an unknown part \"x\"", "reading.json"]),
    ] {
        place.write("p.toml", text);
        refused(&place, "seal make reading.json --to alice.pub --policy p.toml -o x", &said);
    }
}

#[test]
fn an_object_shows_its_layers_and_help_what_it_cannot_do() {
    let place = place("layers");
    done(&place, "seal make reading.json --to alice.pub bob.pub --sign owner.pem -o a.sealed");
    let seen: Value =
        serde_json::from_str(&done(&place, "seal inspect a.sealed --json").stdout).unwrap();
    let part = &seen["parts"][0];
    let sum = ["content_bytes", "tag_bytes", "recipients_bytes", "policy_bytes", "frame_bytes"]
        .map(|name| part[name].as_u64().unwrap());
    assert_eq!(sum[..4], [READING.len() as u64, 16, 168, 0]);
    assert_eq!(sum.iter().sum::<u64>(), part["bytes"].as_u64().unwrap());
    let bytes = std::fs::metadata(file(&place, "a.sealed")).unwrap().len();
    assert_eq!(seen["bytes"], bytes);
    assert_eq!(seen["signature_bytes"], bytes - part["bytes"].as_u64().unwrap());
    assert_eq!(part["recipients"], serde_json::json!([ALICE, BOB]));
    let text = done(&place, "seal inspect a.sealed").stdout;
    for said in [ALICE, BOB, OWNER, "168 B", "aes-128-gcm"] {
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(done(&place, "seal inspect --key alice.pub").stdout, format!("{ALICE}\n"));
    assert_eq!(done(&place, "seal inspect --key owner.pem").stdout, format!("{OWNER}\n"));
    let help = done(&place, "seal inspect --help").stdout;
    for said in ["be revoked", "count how often", "protect its content once it is open"] {
        assert!(help.contains(said), "{help}");
    }
}

fn metric(cell: &Value, name: &str) -> Option<f64> {
    cell["metrics"][name]["value"].as_f64()
}

/// Every message is sealed, every delivery opens, and no byte more goes over than the object has.
#[test]
fn bodies_are_sealed_over_every_protocol() {
    let place = Place::new("bodies");
    let body = "sealed,recipients=3,unsigned:filler";
    let load = ["mqtt", "http", "tcp", "-q", "1", "-n", "60", "-s", "300B", "--body", body];
    let ended = place.compare(&load);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let summary = place.summary();
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3, "{summary}");
    for cell in cells {
        // 44 of the 300 bytes are the mark; from 256 bytes on the frame takes 42.
        assert_eq!(metric(cell, "sealed_overhead_bytes_per_message"), Some(294.0), "{cell}");
        assert_eq!(metric(cell, "body_bytes"), Some(594.0), "{cell}");
        assert!(metric(cell, "seal_cpu_us_per_message").is_some_and(|us| us > 0.0), "{cell}");
        let opens = cell["point"]["load.pattern"] == "deliver";
        assert_eq!(metric(cell, "open_cpu_us_per_message").is_some(), opens, "{cell}");
        let ledger = &cell["ledger"];
        assert_eq!((&ledger["delivered"], &ledger["lost"]), (&60.into(), &0.into()), "{cell}");
    }
    let journal = std::fs::read_to_string(place.run().join("journal.jsonl")).unwrap();
    assert!(!journal.contains("PRIVATE") && !journal.contains("secret"), "keys stay in memory");
}

#[test]
fn a_plan_varies_the_recipients_of_its_bodies() {
    let place = Place::new("recipients");
    let plan = "protocol = \"tcp\"\n[load]\nbody = { sealed = \"filler\", signed = false }\n\
                messages = 20\nwarmup = \"0s\"\nsize = \"1B\"\nconnections = 1\n\
                [vary]\nload.body.recipients = [0, 1, 2, 5, 10]\n[repeat]\nat_least = 1\n";
    place.write("plan.toml", plan);
    done(&place, "run plan.toml");
    let summary = place.summary();
    let cells = summary["cells"].as_array().unwrap();
    let found: Vec<(i64, Option<f64>)> = cells
        .iter()
        .map(|cell| {
            let recipients = cell["point"]["load.body.recipients"].as_i64().unwrap();
            (recipients, metric(cell, "sealed_overhead_bytes_per_message"))
        })
        .collect();
    // The published sizes of data/sealed_payload_overhead.csv.
    let sizes = [(1, 124.0), (2, 208.0), (5, 460.0), (10, 880.0)];
    let expected = sizes.map(|(recipients, bytes)| (recipients, Some(bytes)));
    assert_eq!(found, [&[(0, None)][..], &expected[..]].concat());
    assert_eq!(metric(&cells[0], "body_bytes"), Some(1.0));
    done(&place, &format!("report {}", place.run().display()));
}

#[test]
fn what_cannot_be_sealed_is_said_before_anything_starts() {
    let place = Place::new("unsealed");
    let transfer = "compare tcp --pattern transfer -s 1KB -n 1 --seal-to 2";
    refused(&place, transfer, &["--pattern transfer", "cannot be streamed", "--pattern deliver"]);
    refused(&place, "compare tcp --seal-to 1001", &["--seal-to", "1000"]);
    refused(&place, "compare tcp --body sealed,5:filler", &["unknown option"]);
    place.write("plan.toml", "protocol = \"tcp\"\nload.body.cipher = \"aes-256-gcm\"\n");
    refused(&place, "run plan.toml", &["no body is", "plan.toml:2", "body = { sealed ="]);
    assert!(place.runs().is_empty());
}
