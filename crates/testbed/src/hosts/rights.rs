//! The right to make network namespaces, which a scene needs. Root has it; other users get it in
//! a user namespace of their own, if the machine allows that.

use std::fs;
use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use super::error::HostsError;
use super::namespace::Namespace;

/// The right to make a scene, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceRights {
    /// The program may administer networks already.
    Privileged,
    /// The program is in its own user namespace, in which it may. Its user is the same: files,
    /// signals and child processes work as before, only set-user-id programs no longer change the
    /// user.
    UserNamespace,
}

static TAKEN: OnceLock<()> = OnceLock::new();

impl NamespaceRights {
    /// Checks whether hosts are possible here, without a change: what may be forbidden is tried in
    /// a child.
    ///
    /// # Errors
    /// [`HostsError::Forbidden`] with the setting to change.
    pub fn look() -> Result<NamespaceRights, HostsError> {
        if is_privileged() {
            let tried = Namespace::make().map(drop);
            return tried.map(|()| found()).map_err(|error| forbidden(&error, sysctl));
        }
        try_in_child()
            .map(|()| NamespaceRights::UserNamespace)
            .map_err(|error| forbidden(&error, sysctl))
    }

    /// Takes the right: an unprivileged program enters a user namespace as a whole. Call it before
    /// any second thread is started; a second call has no effect.
    ///
    /// # Errors
    /// [`HostsError::Forbidden`], found in a child before this process changes;
    /// [`HostsError::TooLate`].
    pub fn take() -> Result<NamespaceRights, HostsError> {
        let ground = NamespaceRights::look()?;
        if is_privileged() {
            return Ok(ground);
        }
        let threads = fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or(1);
        if threads > 1 {
            return Err(HostsError::TooLate { threads });
        }
        enter_user_namespace().map_err(|error| forbidden(&error, sysctl))?;
        TAKEN.get_or_init(|| ());
        Ok(NamespaceRights::UserNamespace)
    }
}

fn found() -> NamespaceRights {
    if TAKEN.get().is_some() { NamespaceRights::UserNamespace } else { NamespaceRights::Privileged }
}

fn is_privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Enters a new user namespace in which only the own user and group are mapped:
/// user_namespaces(7), "Defining user and group ID mappings".
#[expect(unsafe_code, reason = "unshare is marked unsafe because of its flag FILES")]
fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // SAFETY: only the flag FILES is unsafe, and it is not set.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)? };
    // Without this the kernel takes no map of groups from an unprivileged user.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

/// Tries both namespaces in a child that ends at once. Both together, since a security module may
/// allow the first and then forbid all its uses.
#[expect(unsafe_code, reason = "a child that only makes two system calls needs no new program")]
fn try_in_child() -> io::Result<()> {
    // SAFETY: the child calls only unshare and _exit, which are async-signal-safe, and reads its
    // own errno.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            let failed = libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) != 0;
            let error = if failed { *libc::__errno_location() } else { 0 };
            libc::_exit(error);
        }
    }
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    loop {
        // SAFETY: `status` lives until it returns, and the child belongs to this process and was
        // not yet waited for.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        if waited == child {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match libc::WEXITSTATUS(status) {
        0 if libc::WIFEXITED(status) => Ok(()),
        _ if !libc::WIFEXITED(status) => Err(Errno::PERM.into()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn sysctl(name: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Finds what forbids namespaces: the settings of Debian's kernel, of the kernel itself
/// (namespaces(7), "/proc/sys/user") and of Ubuntu's AppArmor, in this order.
fn forbidden(error: &io::Error, sysctl: impl Fn(&str) -> Option<String>) -> HostsError {
    let is = |name, value: &str| sysctl(name).is_some_and(|found| found == value);
    let by = |setting: &'static str, value: &str, right: &str| HostsError::Forbidden {
        setting: Some(setting),
        reason: format!("{setting} = {value}"),
        fix: format!("run as root, or once: sudo sysctl -w {setting}={right}"),
    };
    let code = error.raw_os_error();
    if is("kernel.unprivileged_userns_clone", "0") {
        return by("kernel.unprivileged_userns_clone", "0", "1");
    }
    for name in ["user.max_user_namespaces", "user.max_net_namespaces"] {
        if is(name, "0") {
            return by(name, "0", "10000");
        }
    }
    if is("kernel.apparmor_restrict_unprivileged_userns", "1") && code != Some(libc::ENOSPC) {
        return by("kernel.apparmor_restrict_unprivileged_userns", "1", "0");
    }
    let (reason, fix) = match code {
        Some(libc::ENOSPC) => (
            "all that user.max_user_namespaces or user.max_net_namespaces allow are in use",
            "end programs that hold some, or raise both with sudo sysctl -w",
        ),
        Some(libc::EINVAL | libc::ENOSYS) => {
            ("this kernel was built without them", "run as root, or on another kernel")
        }
        _ => (
            "a container's seccomp profile or a security module forbids them",
            "run as root outside the container, or start it with --security-opt \
             seccomp=unconfined or --cap-add SYS_ADMIN --cap-add NET_ADMIN",
        ),
    };
    let reason = format!("{reason} ({error})");
    HostsError::Forbidden { setting: None, reason, fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_is_named() {
        let denied = || io::Error::from_raw_os_error(libc::EPERM);
        for (name, value) in [
            ("kernel.unprivileged_userns_clone", "0"),
            ("user.max_user_namespaces", "0"),
            ("user.max_net_namespaces", "0"),
            ("kernel.apparmor_restrict_unprivileged_userns", "1"),
        ] {
            let only = |asked: &str| (asked == name).then(|| value.to_owned());
            let error = forbidden(&denied(), only);
            let HostsError::Forbidden { setting, .. } = &error else { panic!("{error}") };
            assert_eq!(*setting, Some(name));
            assert!(error.to_string().contains(&format!("sysctl -w {name}=")), "{error}");
        }
    }

    #[test]
    fn what_no_setting_explains_is_guessed_from_the_error() {
        let open = |_: &str| Some("63000".to_owned());
        for (code, word) in
            [(libc::EPERM, "seccomp"), (libc::ENOSPC, "in use"), (libc::EINVAL, "built without")]
        {
            let error = forbidden(&io::Error::from_raw_os_error(code), open);
            assert!(error.to_string().contains(word), "{error}");
            assert!(matches!(error, HostsError::Forbidden { setting: None, .. }));
        }
    }
}
