//! Identifies a boot of a machine: only the next boot of the same machine shows whether the power
//! went.

/// A boot of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The kernel's boot id; `None` if it cannot be read.
    pub boot: Option<String>,
    /// Check value of the machine's name; `None` if it has none, as in old logs.
    pub machine: Option<String>,
}

impl Start {
    /// Makes it from the kernel's boot id and `/etc/machine-id`.
    ///
    /// The machine id should not leave the machine (`machine-id(5)`), and logs are passed on: a
    /// CRC-32 distinguishes machines in all but one of 2^32 pairs, and does not reveal the id.
    pub fn new(boot: Option<String>, machine_id: Option<&str>) -> Start {
        let named = machine_id.map(str::trim).filter(|id| !id.is_empty() && *id != NOT_YET);
        let check = |id: &str| format!("{:08x}", crc32fast::hash(id.as_bytes()));
        Start { boot, machine: named.map(check) }
    }

    /// True if both were certainly of one machine. The kernel draws boot ids at random
    /// (`random(4)`), so equal ones suffice.
    pub(crate) fn is_same_machine(&self, other: &Start) -> bool {
        let is_same_boot = self.boot.is_some() && self.boot == other.boot;
        is_same_boot || (self.machine.is_some() && self.machine == other.machine)
    }

    /// True if they were certainly of two machines.
    pub(crate) fn is_another_machine(&self, other: &Start) -> bool {
        let both = self.machine.is_some() && other.machine.is_some();
        both && !self.is_same_machine(other)
    }
}

/// Content of the file until the first boot is complete (`machine-id(5)`).
const NOT_YET: &str = "uninitialized";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_without_a_name_are_neither_the_same_nor_others() {
        let start = |boot: &str, id| Start::new(Some(boot.to_owned()), id);
        let (one, next) = (start("1", Some("ab\n")), start("2", Some("ab")));
        let other = start("3", Some("cd"));
        assert!(one.is_same_machine(&next) && !one.is_another_machine(&next));
        assert!(!one.is_same_machine(&other) && one.is_another_machine(&other));
        for nameless in [None, Some(""), Some("uninitialized\n")] {
            let nameless = start("4", nameless);
            assert!(!one.is_same_machine(&nameless) && !one.is_another_machine(&nameless));
            assert!(!nameless.is_same_machine(&start("5", None)));
            assert!(nameless.is_same_machine(&start("4", None)), "the same start");
        }
    }
}
