import CLinux
import RingbackClient

/// What a sign-in needs of the machine beside the daemon.
extension DoctorReport {
    /// File systems of other machines, by the magic numbers of statfs(2).
    private static let remote: [UInt32: String] = [
        0x6969: "NFS", 0xFF53_4D42: "CIFS", 0xFE53_4D42: "SMB", 0x517B: "SMB", 0x7375_7245: "Coda",
        0x5346_414F: "AFS", 0x6B41_4653: "AFS", 0x00C3_6400: "Ceph", 0x0BD0_0BD0: "Lustre", 0x0102_1997: "9P",
    ]

    /// Two daemons on two hosts with one state directory would use up each other's refresh tokens.
    mutating func lookAtHome() {
        let home = SocketPlace.variable("HOME") ?? ""
        let state = SocketPlace.variable("RINGBACK_STATE") ?? SocketPlace.variable("XDG_STATE_HOME") ?? home
        guard !state.isEmpty, let kind = DoctorReport.kind(of: state) else {
            return add("home", .warning, "HOME is not set, or there is nothing there.")
        }
        if let name = DoctorReport.remote[kind] {
            add(
                "home", .warning,
                "\(state) is on \(name): only one host at a time can run the daemon; on another one it says who does.",
                command: "export RINGBACK_STATE=/var/tmp/ringback-$(id -u)")
        } else {
            add("home", .ok, "\(state) is on a disk of this machine.")
        }
    }

    private static func kind(of path: String) -> UInt32? {
        let kind = unsafe clinux_file_system(path)
        return kind == 0 ? nil : kind
    }

    /// Sign-in pages are shown by the person's browser, or nobody sees them.
    mutating func lookAtBrowser() {
        if let stated = SocketPlace.variable("BROWSER"), !stated.isEmpty {
            let names = stated.split(separator: ":").map { String($0.split(separator: " ").first ?? "") }
            if let found = names.first(where: { Tool.isInstalled($0) }) {
                return add("browser", .ok, "BROWSER names \(found).")
            }
            return add(
                "browser", .warning, "BROWSER names no program that is there: \(stated)", command: "unset BROWSER")
        }
        guard Tool.isInstalled("xdg-open") else {
            return add(
                "browser", .warning, "There is no xdg-open to open pages with: use ringback login --no-browser.",
                command: "sudo apt install xdg-utils")
        }
        let named = Tool.run(["xdg-settings", "get", "default-web-browser"], within: .seconds(5))?.line
        if let named {
            add("browser", .ok, "The default browser is \(named).")
        } else {
            add(
                "browser", .warning, "No default browser is known: use ringback login --no-browser, or choose one.",
                command: "xdg-settings set default-web-browser firefox.desktop")
        }
    }
}
