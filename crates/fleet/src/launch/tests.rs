use k8s_openapi::api::batch::v1::Job;
use proptest::prelude::*;
use serde_json::Value;
use weigh_model::fleet::AGENTS_MAX;

use std::time::Duration;

use super::*;

fn options() -> LaunchOptions {
    LaunchOptions {
        may_load: vec!["broker:1883".to_owned(), "10.0.0.0/8".to_owned()],
        image: Some("registry.example/weigh:1".to_owned()),
        hosts: vec!["one".to_owned(), "user@two".to_owned()],
        ..LaunchOptions::new(4, "nats://bus:4222")
    }
}

fn full() -> LaunchOptions {
    LaunchOptions {
        fleet_name: Some("lab".to_owned()),
        host_network: true,
        cores: 4,
        credentials: Some(Credentials {
            kind: CredentialsKind::Creds,
            place: "bus/user.creds".to_owned(),
        }),
        ca: Some("bus-ca".to_owned()),
        client_cert: Some(("bus-tls".to_owned(), "bus-tls/own.key".to_owned())),
        once: false,
        ..options()
    }
}

/// The document as a parser reads it.
fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// Strings of a list.
fn words(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|word| word.as_str().expect("a string")).collect()
}

/// Every field of the manifest is one of the API's, with a value of its type: what the types of the
/// API do not know, they drop.
#[test]
fn the_manifest_is_one_of_kubernetes_without_loss() {
    for options in [options(), full()] {
        let text = options.print(Launcher::Kubernetes).unwrap();
        let job: Job = serde_saphyr::from_str(&text).expect("a Job");
        assert_eq!(serde_json::to_value(&job).unwrap(), read(&text), "{text}");
        let spec = job.spec.expect("spec");
        assert_eq!((spec.completions, spec.parallelism), (Some(4), Some(4)));
        assert_eq!(spec.backoff_limit, Some(0));
        let pod = spec.template.spec.expect("pod");
        let [container] = &pod.containers[..] else {
            panic!("{} containers", pod.containers.len())
        };
        let resources = container.resources.as_ref().expect("resources");
        assert_eq!(resources.requests, resources.limits);
        // The selector of the spread is that of the pods themselves.
        let spread = &pod.topology_spread_constraints.expect("spread")[0];
        let selector = spread.label_selector.as_ref().expect("selector");
        let labels = spec.template.metadata.expect("metadata").labels;
        assert_eq!((spread.min_domains, &selector.match_labels), (Some(4), &labels));
        let args = container.args.as_ref().expect("args");
        assert_eq!(args[..3], ["agent", "--bus", "nats://bus:4222"]);
    }
}

/// A field that Kubernetes does not know is found by the comparison above.
#[test]
fn a_field_that_is_unknown_is_lost() {
    let text = options().print(Launcher::Kubernetes).unwrap();
    let text = text.replace("  backoffLimit: 0", "  backoffLimits: 0");
    let job: Job = serde_saphyr::from_str(&text).expect("a Job");
    assert_ne!(serde_json::to_value(&job).unwrap(), read(&text));
}

#[test]
fn secrets_are_files_of_their_secret_and_never_text() {
    let text = full().print(Launcher::Kubernetes).unwrap();
    let document = read(&text);
    let pod = &document["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "bus");
    assert_eq!(pod["volumes"][0]["secret"]["items"][0]["key"], "user.creds");
    let args = words(&pod["containers"][0]["args"]);
    let of = |flag: &str| args[args.iter().position(|word| *word == flag).unwrap() + 1];
    assert_eq!(of("--creds"), "/etc/weigh/credentials/user.creds");
    assert_eq!(of("--bus-ca"), "/etc/weigh/ca/ca.pem");
    assert_eq!(of("--bus-cert"), "/etc/weigh/certificate/tls.crt");
    assert_eq!(of("--bus-key"), "/etc/weigh/key/own.key");
    assert_eq!(pod["volumes"].as_array().map(Vec::len), Some(4));
    assert_eq!(pod["volumes"][3]["secret"]["secretName"], "bus-tls");
    assert_eq!(pod["volumes"][3]["secret"]["items"][0]["key"], "own.key");
    assert!(!args.contains(&"--once"), "{args:?}");
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().all(|mount| mount["readOnly"] == true), "{mounts:?}");
}

/// Files of the hosts: containers get them as secrets, and the others by their names.
#[test]
fn an_agent_shows_its_certificate_whatever_starts_it() {
    let client_cert = Some(("/etc/own.pem".to_owned(), "/etc/own.key".to_owned()));
    let options = LaunchOptions { client_cert, ..options() };
    for launcher in [Launcher::Slurm, Launcher::Ssh] {
        let text = options.print(launcher).unwrap();
        assert!(text.contains("--bus-cert /etc/own.pem --bus-key /etc/own.key"), "{text}");
    }
    let document = read(&options.print(Launcher::Compose).unwrap());
    let service = &document["services"]["agent-0000"];
    assert_eq!(words(&service["secrets"]), ["bus-certificate", "bus-key"]);
    let command = words(&service["command"]).join(" ");
    let flags = "--bus-cert /run/secrets/bus-certificate --bus-key /run/secrets/bus-key";
    assert!(command.contains(flags), "{command}");
    assert_eq!(document["secrets"]["bus-key"]["file"], "/etc/own.key");
}

#[test]
fn each_container_has_cores_and_a_rank_of_its_own() {
    let options = LaunchOptions { cores: 2, ..options() };
    let document = read(&options.print(Launcher::Compose).unwrap());
    let services = document["services"].as_object().unwrap();
    let sets: Vec<&str> =
        services.values().map(|service| service["cpuset"].as_str().unwrap()).collect();
    assert_eq!(sets, ["0-1", "2-3", "4-5", "6-7"]);
    for (rank, service) in services.values().enumerate() {
        assert_eq!(words(&service["command"])[8..], ["--rank", &rank.to_string()]);
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_flag() {
    let wrong = |place: &str, launcher, change: &dyn Fn(&mut LaunchOptions)| {
        let mut options = options();
        change(&mut options);
        let error = options.print(launcher).expect_err(place);
        assert_eq!(error.place, place, "{error:?}");
        assert!(!error.problem.is_empty() && !error.fix.is_empty());
    };
    use Launcher::{Compose, Kubernetes, Slurm, Ssh};
    wrong("--agents", Slurm, &|own| own.agents = 0);
    wrong("--agents", Slurm, &|own| own.agents = AGENTS_MAX + 1);
    wrong("--bus", Slurm, &|own| own.bus = "bus:4222".into());
    wrong("--bus", Slurm, &|own| own.bus = "http://bus".into());
    wrong("--bus", Slurm, &|own| own.bus = "nats://token@bus:4222".into());
    wrong("--bus", Kubernetes, &|own| own.bus = "nats://127.0.0.1:4222".into());
    wrong("--bus", Compose, &|own| own.bus = "nats://[::1]:4222".into());
    wrong("--may-load", Slurm, &|own| own.may_load.clear());
    wrong("--may-load", Slurm, &|own| own.may_load.push("--once".into()));
    wrong("--may-load", Slurm, &|own| own.may_load.push("a:1\n#SBATCH --x".into()));
    wrong("--fleet-name", Slurm, &|own| own.fleet_name = Some("a b".into()));
    wrong("--fleet-name", Slurm, &|own| own.fleet_name = Some("-a".into()));
    wrong("--cores", Slurm, &|own| own.cores = 0);
    wrong("--deadline", Slurm, &|own| own.deadline = Duration::from_secs(5));
    wrong("--binary", Slurm, &|own| own.binary = "".into());
    wrong("--image", Compose, &|own| own.image = None);
    wrong("--memory", Kubernetes, &|own| own.memory_mib = 0);
    wrong("--bus-ca", Kubernetes, &|own| own.ca = Some("Not A Secret".into()));
    let cert = |key: &str| Some(("tls".to_owned(), key.to_owned()));
    wrong("--bus-key", Kubernetes, &|own| own.client_cert = cert("Not A Secret"));
    wrong("--bus-key", Slurm, &|own| own.client_cert = cert("-x"));
    wrong("--host", Ssh, &|own| own.hosts.clear());
    wrong("--host", Ssh, &|own| own.hosts.push("-oProxyCommand=x".into()));
    wrong("--host", Ssh, &|own| own.hosts.push("a;b".into()));
    wrong("--agents", Ssh, &|own| own.agents = 1);
    let on_host =
        LaunchOptions { bus: "nats://127.0.0.1:4222".into(), host_network: true, ..options() };
    on_host.print(Kubernetes).expect("the network of the host has its loopback");
}

#[test]
fn a_deadline_is_written_as_slurm_reads_it() {
    let deadline = Duration::from_secs(26 * 3600 + 62);
    let text = LaunchOptions { deadline, ..options() }.print(Launcher::Slurm).unwrap();
    assert!(text.contains("#SBATCH --time=1-02:01:02\n"), "{text}");
}

/// Lines that a shell read, with the words of each.
fn shell_words(script: &str) -> Vec<Vec<String>> {
    script.lines().filter_map(shlex::split).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever a user typed is one word, the same as it was typed, in every format.
    #[test]
    fn words_stay_what_they_are(text in "[^\\p{C}\\-][^\\p{C}]{0,24}") {
        let own = LaunchOptions {
            may_load: vec!["broker:*".to_owned()],
            binary: text.clone().into(),
            image: Some(text.clone()),
            hosts: vec!["one".to_owned()],
            ..LaunchOptions::new(1, "nats://bus:4222")
        };

        let job = read(&own.print(Launcher::Kubernetes).unwrap());
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        prop_assert_eq!(&container["image"], &text);
        let args = words(&container["args"]);
        let args: Vec<String> = args.into_iter().map(expanded).collect();
        prop_assert_eq!(&args[3..], &["--may-load", "broker:*", "--once"][..]);
        prop_assert_eq!(expanded(words(&container["command"])[0]), text.clone());

        // In Kubernetes these are keys of a Secret.
        let kind = CredentialsKind::Token;
        let place = text.clone();
        let own = LaunchOptions { credentials: Some(Credentials { kind, place }), ..own };
        let compose = read(&own.print(Launcher::Compose).unwrap());
        let service = &compose["services"]["agent-0000"];
        prop_assert_eq!(expanded(words(&service["entrypoint"])[0]), text.clone());
        let file = compose["secrets"]["bus-credentials"]["file"].as_str().unwrap();
        prop_assert_eq!(expanded(file), text.clone());
        prop_assert_eq!(expanded(service["image"].as_str().unwrap()), text.clone());

        let slurm = own.print(Launcher::Slurm).unwrap();
        let last = shell_words(&slurm).pop().unwrap();
        prop_assert_eq!(&last[0], &text);
        prop_assert_eq!(&last[4..6], &["--token-file", &text][..]);

        let ssh = own.print(Launcher::Ssh).unwrap();
        let start = shell_words(&ssh).into_iter().find(|line| line.len() == 3 && line[1] == "one");
        let remote = shlex::split(&start.unwrap()[2]).unwrap();
        prop_assert_eq!(&remote[0], &text);
        prop_assert_eq!(&remote[4..6], &["--token-file", &text][..]);
    }
}

/// What Kubernetes and compose make of a string: `$$` is a dollar sign. One that stands alone would
/// begin a name.
fn expanded(text: &str) -> String {
    assert!(!text.replace("$$", "").contains('$'), "{text:?} has a name to expand");
    text.replace("$$", "$")
}
