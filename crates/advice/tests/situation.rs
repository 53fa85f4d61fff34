//! Situations: what is read, what is written again, and what is refused with which words.

use weigh_advice::Situation;
use weigh_advice::answer::Advice;
use weigh_advice::cells::Cells;
use weigh_model::protocol::Guarantee;

const WHOLE: &str = r#"
schema = "weigh/situation/1"
name = "Sensors over NB-IoT"
options = ["mqtt", "http"]
matters = ["energy", "server-cpu"]

[traffic]
devices = 2000
every = "1m"
size = "125B"

[network]
path = "nb-iot"
tls = "on"

[needs]
loss = "0%"

[device]
model = "nrf9160"
radio = "nb-iot"
battery = "3000mAh@3.7V"
lifetime = "2years"

[server]
cores = 1
memory = "2GiB"
"#;

#[test]
fn a_situation_is_read_and_written_again() {
    let read = Situation::read("x.toml", WHOLE).unwrap();
    assert_eq!((read.traffic.devices, read.traffic.size.0), (2000, 125));
    assert!((read.rate_per_s() - 2000.0 / 60.0).abs() < 1e-12);
    assert_eq!(read.guarantee(), Guarantee::AtLeastOnce);
    assert_eq!(Situation::read("y.toml", &read.to_toml()).unwrap(), read, "{}", read.to_toml());
}

/// Every wrong input has one sentence that names its place, and what to type instead.
#[test]
fn what_is_wrong_is_named_with_its_place() {
    let of = |from: &str, to: &str| {
        assert!(WHOLE.contains(from), "{from}");
        let wrong = Situation::read("x.toml", &WHOLE.replace(from, to)).unwrap_err().to_string();
        assert!(wrong.contains("help: "), "{wrong}");
        wrong
    };
    for (from, to, place) in [
        ("devices = 2000", "devices = 0", "traffic.devices"),
        ("devices = 2000", "devices = 20000000000", "more than there are people"),
        ("every = \"1m\"", "every = \"60\"", "type 60s"),
        ("every = \"1m\"", "every = \"0s\"", "traffic.every"),
        ("size = \"125B\"", "size = \"125\"", "type 125B"),
        ("size = \"125B\"", "size = \"1GiB\"", "traffic.size"),
        ("loss = \"0%\"", "loss = \"0\"", "line"),
        ("cores = 1", "cores = 0", "server.cores"),
        ("memory = \"2GiB\"", "memory = \"2\"", "type 2B"),
        ("\"energy\", ", "\"energy\", \"energy\", ", "twice"),
        ("matters = [\"energy\", \"server-cpu\"]", "matters = []", "nothing matters"),
        ("\"energy\"", "\"joules\"", "joules"),
        ("battery = \"3000mAh@3.7V\"", "", "device.lifetime"),
        ("loss = \"0%\"", "loss = \"0%\"\nguarantee = \"at most once\"", "needs.loss"),
        ("loss = \"0%\"", "guarantee = \"at most once\"\ndurability = \"fsync\"", "durability"),
        ("loss = \"0%\"", "latency = \"0s\"", "needs.latency"),
        ("[server]", "[server]\ncors = 2", "cors"),
        ("situation/1", "situation/9", "situation/9"),
    ] {
        let wrong = of(from, to);
        assert!(wrong.contains(place), "{place} is not in {wrong}");
    }
    let no_device = WHOLE.split("[device]").next().unwrap();
    let wrong = Situation::read("x.toml", no_device).unwrap_err().to_string();
    assert!(wrong.contains("energy matters, and no device is given"), "{wrong}");
}

/// The schemas that are kept are those that the code writes.
#[test]
fn schemas_are_kept() {
    for (name, schema) in [
        ("situation", Situation::schema()),
        ("cells", Cells::schema()),
        ("advice", Advice::schema()),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");
        let path = format!("{folder}/{name}.schema.json");
        if std::env::var_os("WEIGH_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == schema, "{name}: run this test once with WEIGH_WRITE_SCHEMAS=1 set");
    }
}

#[test]
fn cells_that_are_none_are_refused() {
    let shipped = include_str!("../../../data/cells/farms.json");
    assert!(Cells::read("farms.json", shipped).unwrap().cells.len() > 50);
    for (from, to, place) in [
        ("weigh/cells/1", "weigh/cells/7", "weigh/cells/7"),
        ("\"cores\": 0.0", "\"cores\": -1.0", "below 0"),
        ("\"protocol\"", "\"protocl\"", "not a file of cells"),
    ] {
        let wrong = Cells::read("x.json", &shipped.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(wrong.contains(place) && wrong.contains("help: "), "{wrong}");
    }
}
