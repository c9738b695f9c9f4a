import Confinement
import Glibc
import RingbackClient
import Terminal

/// What the wall needs of this machine: `ringback run` refuses to run a command without it, and `ringback doctor` says so.
struct WallTools {
    let bubblewrap: String
    /// Nil without a network.
    let pasta: String?

    init(for network: Run.Network) throws(Run.Failed) {
        guard geteuid() != 0 else {
            throw Run.Failed("As root nothing is confined: root of the inside would be root of the files that it sees.")
        }
        bubblewrap = try WallTools.tool("bwrap", package: "bubblewrap")
        var facts = stat()
        guard unsafe stat(bubblewrap, &facts) == 0, facts.st_mode & S_ISUID == 0 else {
            throw Run.Failed("\(bubblewrap) is set-uid root. Install one that is not: it then uses user namespaces.")
        }
        guard network != .none else {
            pasta = nil
            return
        }
        pasta = try WallTools.tool("pasta", package: "passt")
        guard unsafe access("/dev/net/tun", R_OK | W_OK) == 0 else {
            throw Run.Failed("/dev/net/tun cannot be opened, so there is no network inside. Use --network none.")
        }
        for name in ["ip", "nsenter"] { _ = try WallTools.tool(name, package: "iproute2 and util-linux") }
    }

    /// Where a program of the system is. `PATH` may begin with a folder that a confined program may change, and what is
    /// started here is not confined.
    static func place(of name: String) -> String? {
        SearchPath("/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin").place(of: name)
    }

    private static func tool(_ name: String, package: String) throws(Run.Failed) -> String {
        guard let place = place(of: name) else {
            throw Run.Failed("\(name) is not installed: install the package \(package), with apt or the like.")
        }
        return place
    }

    /// Has bubblewrap make the namespaces for a program that does nothing.
    func tryNamespaces() throws(Run.Failed) {
        let program = [Programs.own ?? "/bin/true", "--version"]
        let view = ["--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--"]
        let answer = Tool.run([bubblewrap] + Wall.namespaces + view + program, errors: .joined)
        guard answer?.status == 0 else {
            let said = answer?.text.split(separator: "\n").last.map(String.init) ?? "nothing"
            throw Run.Failed(WallTools.whyNot("bubblewrap said “\(Sanitizer.line(said, limit: 200))”"))
        }
    }

    /// Why bubblewrap could not make the wall.
    static func whyNot(_ said: String) -> String {
        func holds(_ path: String, _ text: String) -> Bool {
            (try? Files.contents(of: "/proc/sys/\(path)")) == Array("\(text)\n".utf8)
        }
        let start = "The wall could not be built: "
        if holds("kernel/apparmor_restrict_unprivileged_userns", "1") {
            return start
                + "AppArmor restricts user namespaces here. An administrator allows them for bubblewrap with a "
                + "profile of AppArmor for /usr/bin/bwrap that has \"userns,\"."
        }
        for (path, text) in [("user/max_user_namespaces", "0"), ("kernel/unprivileged_userns_clone", "0")]
        where holds(path, text) {
            return start + "user namespaces are switched off here. An administrator allows them with the setting "
                + "\(path.replacing("/", with: ".")) of sysctl."
        }
        return start + "\(said). Many containers allow no user namespaces."
    }
}

extension DoctorReport {
    /// Who confines nothing needs nothing of it: what is missing is a warning.
    mutating func lookAtWall() {
        let check = "confinement"
        do throws(Run.Failed) {
            try WallTools(for: .none).tryNamespaces()
        } catch {
            return add(check, .warning, "No command can be confined here. \(error.text)")
        }
        do throws(Run.Failed) {
            _ = try WallTools(for: .internet)
            add(check, .ok, "A command can be confined here, with a network.")
        } catch {
            add(check, .warning, "A command can be confined here, but has no network then. \(error.text)")
        }
    }
}
