//! A manifest for Kubernetes: an Indexed Job with one pod on each of N nodes.
//!
//! The types here are the part of the API that is printed. A test reads the printed manifest into
//! the types of `k8s-openapi`, which must hold every field of it.

use std::collections::BTreeMap;

use serde::Serialize;
use weigh_model::protocol::Invalid;

use super::bus_files::BusFiles;
use super::check;
use super::options::LaunchOptions;
use super::yaml::yaml;

/// Prints the manifest.
pub(super) fn print(options: &LaunchOptions) -> Result<String, Invalid> {
    check::reached_from_containers(options)?;
    let image = check::image(options)?.to_owned();
    let labels = labels(options);
    let files = secret_files(options)?;
    let spec = JobSpec {
        completions: options.agents,
        parallelism: options.agents,
        completion_mode: "Indexed",
        backoff_limit: 0,
        active_deadline_seconds: options.deadline.as_secs(),
        ttl_seconds_after_finished: 3600,
        pod_failure_policy: PodFailurePolicy { rules: failure_rules() },
        template: PodTemplate {
            metadata: Metadata { name: None, labels: labels.clone() },
            spec: pod(options, image, &files, labels.clone()),
        },
    };
    let metadata = Metadata { name: Some(options.job_name()), labels };
    let job = Job { api_version: "batch/v1", kind: "Job", metadata, spec };
    Ok(format!("{HEAD}{}", yaml(&job)?))
}

fn labels(options: &LaunchOptions) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name", "weigh".to_owned()),
        ("app.kubernetes.io/component", "agent".to_owned()),
        ("app.kubernetes.io/instance", options.job_name()),
    ])
}

/// An agent that failed, and a pod that was evicted or preempted, end the whole job.
fn failure_rules() -> Vec<FailureRule> {
    let failed = OnExitCodes { container_name: CONTAINER, operator: "NotIn", values: [0] };
    let disrupted = OnPodCondition { kind: "DisruptionTarget", status: "True" };
    vec![
        FailureRule { action: "FailJob", on_exit_codes: Some(failed), on_pod_conditions: None },
        FailureRule {
            action: "FailJob",
            on_exit_codes: None,
            on_pod_conditions: Some([disrupted]),
        },
    ]
}

fn pod(
    options: &LaunchOptions,
    image: String,
    files: &BusFiles<SecretFile>,
    labels: BTreeMap<&'static str, String>,
) -> PodSpec {
    // A domain of every agent: where there are fewer nodes, pods wait instead of sharing one.
    let spread = SpreadConstraint {
        max_skew: 1,
        min_domains: options.agents,
        topology_key: "kubernetes.io/hostname",
        when_unsatisfiable: "DoNotSchedule",
        label_selector: LabelSelector { match_labels: labels },
    };
    PodSpec {
        restart_policy: "Never",
        host_network: options.host_network.then_some(true),
        dns_policy: options.host_network.then_some("ClusterFirstWithHostNet"),
        automount_service_account_token: false,
        enable_service_links: false,
        termination_grace_period_seconds: 10,
        security_context: PodSecurity {
            run_as_non_root: true,
            run_as_user: USER,
            fs_group: USER,
            seccomp_profile: Profile { kind: "RuntimeDefault" },
        },
        topology_spread_constraints: [spread],
        containers: [container(options, image, files)],
        volumes: files.as_ref().given().map(SecretFile::volume).collect(),
    }
}

fn container(options: &LaunchOptions, image: String, files: &BusFiles<SecretFile>) -> Container {
    let words = options.agent_words(files.as_ref().map(SecretFile::path));
    // Whole cores, requested and limited alike: the static CPU manager gives them to this pod
    // alone.
    let resources = BTreeMap::from([
        ("cpu", options.cores.to_string()),
        ("memory", format!("{}Mi", options.memory_mib)),
    ]);
    Container {
        name: CONTAINER,
        image,
        command: [literal(&options.binary.display().to_string())],
        args: words.iter().map(|word| literal(word)).collect(),
        resources: Resources { requests: resources.clone(), limits: resources },
        security_context: ContainerSecurity {
            allow_privilege_escalation: false,
            capabilities: Capabilities { drop: ["ALL"] },
        },
        volume_mounts: files.as_ref().given().map(SecretFile::mount).collect(),
    }
}

/// Kubernetes replaces `$(NAME)` in commands and arguments; `$$` is a dollar sign.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// A key of a Secret that is a file in the container.
struct SecretFile {
    /// Name of the volume, and of its folder below `/etc/weigh`.
    folder: &'static str,
    secret: String,
    key: String,
}

impl SecretFile {
    fn path(&self) -> String {
        format!("/etc/weigh/{}/{}", self.folder, self.key)
    }

    fn mount(&self) -> Mount {
        let name = self.folder;
        Mount { name, mount_path: format!("/etc/weigh/{name}"), read_only: true }
    }

    fn volume(&self) -> Volume {
        let item = Item { key: self.key.clone(), path: self.key.clone() };
        let secret = SecretSource {
            secret_name: self.secret.clone(),
            // Octal 0440: the group is that of the pod.
            default_mode: 0o440,
            items: [item],
        };
        Volume { name: self.folder, secret }
    }
}

fn secret_files(options: &LaunchOptions) -> Result<BusFiles<SecretFile>, Invalid> {
    let keys = BusFiles {
        credentials: options.credentials.as_ref().map(|own| own.kind.key()),
        ca: Some("ca.pem"),
        // Those of a Secret of the type kubernetes.io/tls.
        certificate: Some("tls.crt"),
        key: Some("tls.key"),
    };
    let given = options.flags().zip(options.places()).zip(FOLDERS.zip(keys));
    given.map(|((flag, place), of)| secret_file((flag, place), of)).whole()
}

/// Reads `SECRET` or `SECRET/KEY`, given as an option; a folder, and a key for where none is given.
fn secret_file(
    (flag, place): (&str, &str),
    (folder, key): (&'static str, &str),
) -> Result<SecretFile, Invalid> {
    let (secret, key) = place.split_once('/').unwrap_or((place, key));
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = !secret.is_empty() && secret.bytes().all(is_name);
    if fits && !key.is_empty() && key.bytes().all(is_key) && !key.starts_with("..") {
        return Ok(SecretFile { folder, secret: secret.to_owned(), key: key.to_owned() });
    }
    let problem = format!("{place:?} is not a Secret of Kubernetes");
    Err(Invalid::new(flag, problem, "type SECRET or SECRET/KEY: its file is not printed"))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: JobSpec,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    labels: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobSpec {
    completions: u32,
    parallelism: u32,
    completion_mode: &'static str,
    backoff_limit: u32,
    active_deadline_seconds: u64,
    ttl_seconds_after_finished: u32,
    pod_failure_policy: PodFailurePolicy,
    template: PodTemplate,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodFailurePolicy {
    rules: Vec<FailureRule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FailureRule {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_exit_codes: Option<OnExitCodes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_pod_conditions: Option<[OnPodCondition; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OnExitCodes {
    container_name: &'static str,
    operator: &'static str,
    values: [i32; 1],
}

#[derive(Serialize)]
struct OnPodCondition {
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
}

#[derive(Serialize)]
struct PodTemplate {
    metadata: Metadata,
    spec: PodSpec,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    restart_policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_network: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns_policy: Option<&'static str>,
    automount_service_account_token: bool,
    enable_service_links: bool,
    termination_grace_period_seconds: u32,
    security_context: PodSecurity,
    topology_spread_constraints: [SpreadConstraint; 1],
    containers: [Container; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<Volume>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodSecurity {
    run_as_non_root: bool,
    run_as_user: u32,
    fs_group: u32,
    seccomp_profile: Profile,
}

#[derive(Serialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpreadConstraint {
    max_skew: u32,
    min_domains: u32,
    topology_key: &'static str,
    when_unsatisfiable: &'static str,
    label_selector: LabelSelector,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: &'static str,
    image: String,
    command: [String; 1],
    args: Vec<String>,
    resources: Resources,
    security_context: ContainerSecurity,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volume_mounts: Vec<Mount>,
}

#[derive(Serialize)]
struct Resources {
    requests: BTreeMap<&'static str, String>,
    limits: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerSecurity {
    allow_privilege_escalation: bool,
    capabilities: Capabilities,
}

#[derive(Serialize)]
struct Capabilities {
    drop: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mount {
    name: &'static str,
    mount_path: String,
    read_only: bool,
}

#[derive(Serialize)]
struct Volume {
    name: &'static str,
    secret: SecretSource,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SecretSource {
    secret_name: String,
    default_mode: u32,
    items: [Item; 1],
}

#[derive(Serialize)]
struct Item {
    key: String,
    path: String,
}

/// Folders of the files below `/etc/weigh`.
const FOLDERS: BusFiles<&str> = BusFiles {
    credentials: Some("credentials"),
    ca: Some("ca"),
    certificate: Some("certificate"),
    key: Some("key"),
};

/// Name of the container.
const CONTAINER: &str = "agent";

/// User of the container: none of the usual ones.
const USER: u32 = 65_532;

const HEAD: &str = "\
# Start: kubectl apply -f FILE. Stop: kubectl delete -f FILE. Needs Kubernetes 1.31 or later.
# Each agent has a node of its own, and takes its rank from JOB_COMPLETION_INDEX.
";
