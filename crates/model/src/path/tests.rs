//! Paths are read as written, and refused with the place and the fix.

use super::check::without_source;
use super::*;
use crate::units::Bytes;

const FULL: &str = r#"
name = "full"
title = "Everything"
about = "a test"
mtu = 1400
[up]
delay = "30ms"
jitter = { distribution = "pareto", scale = "1ms", shape = 1.5, most = "100ms" }
loss = { model = "gilbert-elliott", to_bad = "1%", to_good = "25%", in_bad = "50%", in_good = "0%" }
duplicate = "0.1%"
reorder = { share = "2%", by = "5ms" }
rate = "10Mbit/s"
queue = "64KB"
overhead = "38B"
[down]
loss = "1%"
[[step]]
at = "10s"
up = { rate = "1Mbit/s" }
[[step]]
at = "20s"
up = { rate = "unlimited", delay = "1ms" }
down = { loss = "100%" }
[sources]
"up.delay" = "chosen: a test"
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(FULL.contains(from), "{from}");
    Path::parse("full.toml", &FULL.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn a_path_is_read() {
    let path = Path::parse("full.toml", FULL).unwrap();
    assert_eq!(path.up.delay, Nanos::from_millis(30));
    assert_eq!(path.up.rate, Some(BitRate(10_000_000)));
    assert_eq!((path.up.queue, path.up.overhead), (Some(Bytes(64_000)), Bytes(38)));
    assert!((path.up.loss.long_run() - 0.5 / 26.0).abs() < 1e-12);
    assert_eq!(path.down.loss, Loss::Independent(Share(0.01)));
    let up = path.over_time(Way::Up);
    assert_eq!(up.len(), 3);
    assert_eq!((up[1].0, up[1].1.rate), (Nanos::from_secs(10), Some(BitRate(1_000_000))));
    assert_eq!(up[1].1.delay, path.up.delay);
    assert_eq!((up[2].1.rate, up[2].1.queue), (None, None));
    let down = path.over_time(Way::Down);
    assert_eq!((down.len(), down[1].1.loss), (2, Loss::Independent(Share::ALL)));
    assert!(!path.is_free() && !path.down.is_free() && Direction::free().is_free());
    assert_eq!(
        path.up.to_string(),
        "30 ms + pareto 1 ms, 1.5, at most 100 ms, loss 1.923076923 % in bursts, 0.1 % twice, 2 % \
         held back 5 ms, 10 Mbit/s (queue 64,000 B)"
    );
}

#[test]
fn unreadable_files_are_told_by_line() {
    for (from, to, line, word) in [
        ("delay = \"30ms\"", "delay = \"30\"", "line 7", "30s or 30ms"),
        ("delay = \"30ms\"", "dealy = \"30ms\"", "line 7", "dealy"),
        ("\"pareto\"", "\"lognormal\"", "line 8", "lognormal"),
        ("loss = \"1%\"", "loss = \"0.01\"", "line 16", "type 1%"),
        ("loss = \"1%\"", "loss = 1", "line 16", "gilbert-elliott"),
        ("\"gilbert-elliott\"", "\"gilbert\"", "line 9", "gilbert-elliott"),
        ("to_good = \"25%\", ", "", "line 9", "to_good"),
        ("rate = \"10Mbit/s\"", "rate = \"10MB/s\"", "line 12", "10Mbit/s"),
        ("mtu = 1400", "mtu = 70000", "line 5", "u16"),
    ] {
        let error = refused(from, to);
        assert!(error.contains("full.toml"), "{error}");
        assert!(error.contains(line) && error.contains(word), "{error}");
    }
}

#[test]
fn contradictions_are_told_by_key() {
    for (from, to, word) in [
        ("mtu = 1400", "mtu = 575", "mtu = 575: type 576"),
        ("mtu = 1400", "mtu = 9000", "1500"),
        ("queue = \"64KB\"", "", "up.rate has no up.queue"),
        ("queue = \"64KB\"", "queue = \"1437B\"", "no whole packet of 1438B"),
        ("loss = \"1%\"", "queue = \"64KB\"", "down.queue has no down.rate"),
        ("shape = 1.5", "shape = 0.0", "up.jitter.shape"),
        ("at = \"20s\"", "at = \"10s\"", "step 2"),
        ("at = \"10s\"", "at = \"0s\"", "step 1"),
        ("up = { rate = \"1Mbit/s\" }", "", "step 1 changes nothing"),
        ("up = { rate = \"1Mbit/s\" }", "up = { queue = \"1B\" }", "step at 10 s: up.queue"),
        ("\"up.delay\" =", "\"down.delay\" =", "\"down.delay\" is not a number"),
        ("chosen: a test", "", "is empty"),
        ("delay = \"30ms\"", "delay = \"3h\"", "up.delay is above"),
        ("name = \"full\"", "name = \"a/b\"", "letters"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn every_number_of_a_preset_has_its_source() {
    for (name, text) in PRESETS {
        let path = preset(name).unwrap();
        assert_eq!(path.name, name);
        let file: File = toml::from_str(text).unwrap();
        assert_eq!(without_source(&path, &file.up, &file.down), Vec::<String>::new(), "{name}");
    }
    assert!(preset("loopback").unwrap().is_free());
    let error = preset("lan").unwrap_err().to_string();
    assert!(error.contains("gigabit") && error.contains("nb-iot"), "{error}");
}

/// Study 001's ping took 59.227/65.902/73.218 ms with a deviation of 4.110 ms.
#[test]
fn the_internet_is_that_of_the_study() {
    let path = preset("internet").unwrap();
    let Jitter::Uniform { width } = path.down.jitter else { panic!("{:?}", path.down) };
    assert_eq!(path.up.jitter, Jitter::None);
    let least = (path.up.delay + path.down.delay).as_secs_f64() * 1e3;
    let width = width.as_secs_f64() * 1e3;
    let (mean, deviation) = (least + width / 2.0, width / 12f64.sqrt());
    for (ours, published) in
        [(least, 59.227), (mean, 65.902), (least + width, 73.218), (deviation, 4.110)]
    {
        assert!((ours / published - 1.0).abs() < 0.02, "{ours} for {published}");
    }
}

#[test]
fn a_link_layer_says_its_bytes_and_a_preset_keeps_them_under_other_numbers() {
    let text = "name = \"r\"\ntitle = \"R\"\nabout = \"A radio.\"\nmtu = 1500\nlink = \"MAC 26\"\n";
    let error = Path::parse("r.toml", text).unwrap_err().to_string();
    assert!(error.contains("type up.overhead and down.overhead"), "{error}");
    let lte = Path::named("lte", |_| unreachable!()).unwrap();
    let lossy = Path::of_words(Some(lte), [("path.down_loss", "2%")]).unwrap().unwrap();
    assert!(lossy.link.is_some());
    assert_eq!((lossy.up.overhead, lossy.down.overhead), (Bytes(10), Bytes(10)));
}
