//! Facts of the machine that a reader needs to judge or repeat a figure.

use std::fs;
use std::path::{Path, PathBuf};

use weigh_model::event::HostFacts;

/// Roots of the kernel's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`, or what `WEIGH_SYSFS` says.
    pub sys: PathBuf,
}

impl Roots {
    /// The real ones, with `WEIGH_SYSFS` instead of `/sys` where it is set.
    pub fn from_environment() -> Roots {
        let sys = std::env::var_os("WEIGH_SYSFS").filter(|path| !path.is_empty());
        Roots { proc: "/proc".into(), sys: sys.map_or_else(|| "/sys".into(), PathBuf::from) }
    }
}

/// The facts of this host.
pub fn facts() -> HostFacts {
    let mut facts = facts_below(&Roots::from_environment());
    if let Ok(allowed) = rustix::thread::sched_getaffinity(None) {
        facts.cores = allowed.count();
    }
    facts
}

/// The facts as the files below these roots give them; empty or 0 if unknown. The
/// cores are those online, as an affinity mask is in no file.
pub fn facts_below(roots: &Roots) -> HostFacts {
    let cpu_info = line_text(&roots.proc.join("cpuinfo"));
    let memory = line_text(&roots.proc.join("meminfo"));
    let cores = cpu_info.lines().filter(|line| line.starts_with("processor")).count();
    HostFacts {
        kernel: line_text(&roots.proc.join("sys/kernel/osrelease")),
        cpu: processor_name(&cpu_info),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory_bytes: total_memory(&memory).unwrap_or(0),
        governor: line_text(&roots.sys.join("devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        clock_source: line_text(
            &roots.sys.join("devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        congestion_control: line_text(&roots.proc.join("sys/net/ipv4/tcp_congestion_control")),
        virtualisation: virtualisation(roots, &cpu_info),
    }
}

fn processor_name(cpu_info: &str) -> String {
    // x86 says `model name`; several ARM kernels say `Model` or `Hardware` for the board.
    ["model name", "Hardware", "Model"]
        .iter()
        .find_map(|key| value_of(cpu_info, key))
        .unwrap_or_default()
        .to_owned()
}

fn total_memory(memory: &str) -> Option<u64> {
    let kibibytes: u64 = value_of(memory, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Reported by the hypervisor's own file (Xen), by the board's maker, or by the processor flag that
/// every hypervisor on x86 sets (CPUID leaf 1, ECX bit 31).
fn virtualisation(roots: &Roots, cpu_info: &str) -> String {
    let hypervisor = line_text(&roots.sys.join("hypervisor/type"));
    if !hypervisor.is_empty() {
        return hypervisor;
    }
    let board = ["sys_vendor", "product_name"]
        .map(|file| line_text(&roots.sys.join("class/dmi/id").join(file)))
        .join(" ");
    const MAKERS: [(&str, &str); 8] = [
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("Amazon EC2", "kvm"),
        ("Google", "kvm"),
        ("VMware", "vmware"),
        ("VirtualBox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("Microsoft", "hyper-v"),
    ];
    let flags = value_of(cpu_info, "flags");
    let guest = flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let maker = MAKERS.iter().find(|(maker, _)| board.contains(maker)).map(|(_, kind)| *kind);
    match (guest, maker) {
        // Makers of virtual boards also make real ones.
        (Some(false), _) => "none".to_owned(),
        (Some(true), None) if line_text(&clock_sources(roots)).contains("kvm-clock") => {
            "kvm".to_owned()
        }
        (Some(true), None) => "hypervisor".to_owned(),
        (_, Some(kind)) => kind.to_owned(),
        (None, None) => String::new(),
    }
}

fn clock_sources(roots: &Roots) -> PathBuf {
    roots.sys.join("devices/system/clocksource/clocksource0/available_clocksource")
}

fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

fn line_text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_kernel_and_cores() {
        let facts = facts();
        assert!(facts.cores > 0 && facts.memory_bytes > 0, "{facts:?}");
    }

    #[test]
    fn facts_come_from_the_given_roots() {
        let root = std::env::temp_dir().join(format!("weigh-host-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A 1\nflags\t: fpu hypervisor\n");
        write("proc/meminfo", "MemTotal:       1024 kB\n");
        write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
        write("sys/class/dmi/id/sys_vendor", "QEMU\n");
        let facts = facts_below(&Roots { proc: root.join("proc"), sys: root.join("sys") });
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((facts.cpu.as_str(), facts.governor.as_str()), ("A 1", "powersave"));
        assert_eq!((facts.memory_bytes, facts.virtualisation.as_str()), (1 << 20, "kvm"));
        assert_eq!((facts.cores, facts.kernel.as_str()), (1, ""));
    }
}
