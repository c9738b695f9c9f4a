import Glibc
import RingbackClient

/// The user's systemd, asked through `systemctl --user`.
enum UserManager {
    /// True if one responds.
    static var isThere: Bool { saysYes(["show", "--property=Version"]) }

    /// True if the unit runs, or listens.
    static func isActive(_ unit: String) -> Bool { saysYes(["is-active", "--quiet", unit]) }

    /// True if `systemctl` exits with status 0. False also if it takes longer than 10 s.
    private static func saysYes(_ words: [String]) -> Bool {
        guard let pid = Subprocess.start(command(words), output: .nothing, errors: .nothing) else { return false }
        let end = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < end {
            if let status = Subprocess.endedStatus(pid) { return status == 0 }
            poll(nil, 0, 5)
        }
        kill(pid, SIGKILL)
        Subprocess.wait(pid)
        return false
    }

    private static func command(_ words: [String]) -> [String] { ["systemctl", "--user", "--no-pager"] + words }
}
