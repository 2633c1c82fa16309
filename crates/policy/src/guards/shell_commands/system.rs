//! Commands that stop the machine or take down its defences.

use crate::facts::shell::{Script, Simple};

/// Stops the machine, or everything on it.
pub(super) fn stopping(script: &Script) -> Option<&'static str> {
    let bad = |command: &Simple| {
        let has = |wanted: &[&str]| command.has_any(wanted);
        let by_name = match command.name().as_str() {
            "shutdown" | "reboot" | "halt" | "poweroff" | "killall5" | "kexec" => true,
            "init" | "telinit" => has(&["0", "6", "1"]),
            "systemctl" => {
                has(&["poweroff", "reboot", "halt", "kexec", "emergency", "rescue", "isolate"])
            }
            "kill" => kills_all(command),
            "pkill" | "killall" => {
                has(&["init", "systemd", "sshd", "."]) || (has(&["-u", "-U"]) && has(&["root"]))
            }
            "insmod" | "modprobe" | "rmmod" => true,
            "swapoff" => has(&["-a"]),
            _ => false,
        };
        let sysrq = command.written().any(|target| target.contains("sysrq"));
        by_name || sysrq || command.arguments().any(|text| text.contains("/proc/sysrq-trigger"))
    };
    script.commands.iter().any(bad).then_some("stops the machine")
}

/// `kill -9 -1`, and of the first process.
fn kills_all(command: &Simple) -> bool {
    let words: Vec<&str> = command.arguments().collect();
    let mut targets = words.as_slice();
    if let [first, rest @ ..] = targets
        && first.starts_with('-')
    {
        // `-s KILL`, `-9`, `-KILL`, or nothing but `-1`, which is a signal.
        targets =
            if matches!(*first, "-s" | "-n") { rest.get(1..).unwrap_or_default() } else { rest };
    }
    targets.iter().any(|target| matches!(*target, "-1" | "1"))
}

/// Services that defend a machine, or keep its logs.
const DEFENDERS: &str = "firewalld apparmor auditd ufw fail2ban falcon clamav crowdstrike rsyslog";

/// Takes down the defences of the machine.
pub(super) fn defences(script: &Script) -> Option<&'static str> {
    let bad = |command: &Simple| {
        let has = |wanted: &[&str]| command.has_any(wanted);
        match command.name().as_str() {
            "iptables" | "ip6tables" | "iptables-legacy" => {
                has(&["-F", "--flush", "-X", "-P", "--policy"])
            }
            "nft" => has(&["flush"]),
            "ufw" => has(&["disable", "reset"]),
            "setenforce" => has(&["0", "Permissive", "permissive"]),
            "systemctl" | "service" => {
                let defends = |text: &str| DEFENDERS.split(' ').any(|name| text.contains(name));
                has(&["stop", "disable", "mask", "kill"]) && command.arguments().any(defends)
            }
            "csrutil" | "spctl" => has(&["disable", "--master-disable"]),
            "sysctl" => {
                has(&["-w"])
                    || command
                        .arguments()
                        .any(|text| text.starts_with("kernel.") && text.contains('='))
            }
            "aa-teardown" | "aa-disable" => true,
            _ => false,
        }
    };
    script.commands.iter().any(bad).then_some("takes down defences")
}
