import CLinux
import Confinement
import Glibc
import RingbackClient
import Terminal

/// A command behind a wall: what is needed for it, its start, its signals and its end.
///
/// bubblewrap makes the namespaces and starts this program once more, ``RunInside``. That passes out the network namespace
/// and a pidfd of itself, and waits. The network is made, the routes are set, and on a byte it becomes the command.
struct ConfinedCommand {
    private let wall: Wall
    private let network: Run.Network
    /// The command's file, and its words.
    private let place: String
    private let words: [String]
    private let tools: WallTools

    init(wall: Wall, network: Run.Network, place: String, command: [String]) throws {
        (self.wall, self.network, words) = (wall, network, command)
        let absolute = place.hasPrefix("/") ? place : "\(wall.workFolder.path)/\(place)"
        self.place = absolute
        tools = try WallTools(for: network)
    }

    /// The wall with the folders that the command's own file needs.
    private var whole: Wall {
        var wall = wall
        wall.addProgram(at: place)
        return wall
    }

    /// - Parameter given: rows of what the command is given beside files.
    func explain(_ given: [[String]]) {
        let wall = whole
        var rows = [["change", wall.workFolder.path], ["change", "\(wall.home), which is \(wall.keptHome)"]]
        rows += wall.writable.map { ["change", $0.path] }
        rows += wall.changeable.flatMap(\.fixed).map { ["change", $0.path] }
        rows +=
            (wall.changeable.flatMap(\.protected).map(\.path) + wall.readable.map(\.path) + wall.programFiles
            + wall.displayFiles + ["/usr", "/etc"] + Wall.otherSystemFolders).map { ["read", $0] }
        rows += given
        rows.append(["network", network.rawValue])
        rows.append(["variables", wall.environment.map(\.name).joined(separator: " ")])
        rows.append(["command", ShownCommand(words: [place] + words.dropFirst()).description])
        Output.table(["MAY", "WHAT"], rows)
    }

    // MARK: The start

    func run(_ relays: ConfinedRelays, _ daemon: DaemonOptions) throws -> Int32 {
        try makeHome()
        var wall = whole
        try wall.checkHome()
        wall.settleLinks()
        let code = clinux_join_empty_keyring()
        guard code == 0 || code == ENOSYS else { throw Run.Failed("No session keyring can be made: \(reason(code)).") }
        // bubblewrap passes on every descriptor that is open.
        guard clinux_close_on_exec_from(3) == 0 else { throw Run.Failed("Descriptors cannot be closed.") }
        wall.filter = clinux_confined_calls()
        guard wall.filter >= 0 else { throw Run.Failed("There is no filter of system calls for this processor.") }
        wall.resolver = try resolver()
        var ends: [Int32] = [-1, -1]
        guard unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else { throw Run.Failed("No socket can be made.") }
        for descriptor in wall.descriptors + [ends[1]] { _ = fcntl(descriptor, F_SETFD, 0) }
        let ignored = [SIGINT, SIGQUIT].filter(Signals.isIgnored).map(String.init).joined(separator: ",")
        let inside = [Wall.launcher, RunInside.name, "\(ends[1])", ignored, relays.portList, place] + words
        let options = wall.arguments.reduce(into: [UInt8]()) { $0 += Array($1.utf8) + [0] }
        let list = unsafe clinux_memory_file(options, options.count)
        guard list >= 0, fcntl(list, F_SETFD, 0) == 0 else { throw Run.Failed("A file in memory cannot be made.") }
        let command = ChildCommand()
        // Ctrl-C is for the command: bubblewrap, whose end would end the command, ignores it.
        for number in [SIGINT, SIGQUIT] { signal(number, SIG_IGN) }
        let child: Int32
        do throws(CommandFailure) {
            child = try command.start(
                [tools.bubblewrap, "--args", "\(list)", "--"] + inside,
                environment: wall.environment.map { "\($0.name)=\($0.value)" })
        } catch {
            throw Run.Failed("\(error.program) cannot be started: \(reason(error.code)).")
        }
        close(ends[1])
        var descriptors = [Int32](repeating: -1, count: 8)
        let count = unsafe clinux_receive_descriptors(ends[0], &descriptors)
        guard count == 2 + Int32(relays.addresses.count) else {
            _ = command.wait(for: child, pass: { _ in })
            throw Run.Failed(WallTools.whyNot("bubblewrap said why"))
        }
        let relay = try relays.start(descriptors[2...], command: descriptors[1], daemon)
        let network = try ConfinedNetwork(namespace: descriptors[0], of: self.network, pasta: tools.pasta)
        try relay?.wait()
        guard unsafe clinux_send_descriptors(ends[0], [], 0) == 0 else { throw Run.Failed("The command has ended.") }
        close(ends[0])
        defer { network?.end() }
        // bubblewrap passes nothing on.
        let pass = { (number: Int32) in _ = clinux_signal_process(descriptors[1], number) }
        command.passPending(pass)
        return command.wait(for: child, pass: pass)
    }

    private func reason(_ code: Int32) -> String { unsafe String(cString: strerror(code)) }

    /// What the name server's file has inside. Its place is where `/etc/resolv.conf` leads to.
    private func resolver() throws -> (path: String, descriptor: Int32)? {
        guard network != .none, let found = unsafe realpath("/etc/resolv.conf", nil) else { return nil }
        defer { unsafe free(found) }
        let lines = String(decoding: (try? Files.contents(of: "/etc/resolv.conf")) ?? [], as: UTF8.self)
            .split(separator: "\n").filter { $0.hasPrefix("search ") || $0.hasPrefix("options ") }
        let text = (["nameserver \(Wall.nameServer)"] + lines.map(String.init)).joined(separator: "\n") + "\n"
        let bytes = Array(text.utf8)
        let file = unsafe clinux_memory_file(bytes, bytes.count)
        guard file >= 0 else { throw Run.Failed("A file in memory cannot be made.") }
        return (unsafe String(cString: found), file)
    }

    /// The home directory, with what git needs: who the user is, and our helper, which has tokens only where the command
    /// is given an account. A file that is there is the command's own.
    private func makeHome() throws {
        try Files.makeDirectories(wall.keptHome, mode: 0o700)
        let file = wall.keptHome + "/.gitconfig"
        guard !Files.exists(file) else { return }
        let git = WallTools.place(of: "git")
        let names = ["user.name", "user.email"].compactMap { key in
            git.flatMap { Tool.run([$0, "-C", "/", "config", "--global", "--get", key])?.line }.map { (key, $0) }
        }
        let helper = "!test ! -S \(Wall.socket) || \(Wall.ringback) git-credential"
        let variables = names + [("credential.helper", helper), ("credential.useHttpPath", "true")]
        let lines = variables.map { key, value in
            let parts = key.split(separator: ".")
            let quoted = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            return "[\(parts[0])]\n\t\(parts[1]) = \"\(quoted)\"\n"
        }
        try Files.put(Array(lines.joined().utf8), at: file, mode: 0o600)
    }
}

/// The network of a confined command: pasta, which carries its connections, and rules that it cannot change.
struct ConfinedNetwork {
    private let pasta: Int32

    /// Never reached: this machine's links, multicast, and where clouds have their metadata service.
    private static let never = (
        four: [
            "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16", "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ],
        six: ["fe80::/10", "fec0::/10", "::ffff:0:0/96", "fd00:ec2::254", "fd20:ce::254", "ff00::/8"]
    )
    /// Private networks, whose addresses are not routed on the Internet (RFC 1918, 2544, 4193, 6598).
    private static let intranet = (
        four: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"],
        six: ["fc00::/7"]
    )

    /// Nil without a network.
    init?(namespace: Int32, of network: Run.Network, pasta program: String?) throws {
        guard let program else { return nil }
        let owner = clinux_owner_of_namespace(namespace)
        guard owner >= 0 else { throw Run.Failed("The owner of the network namespace is not known.") }
        defer { close(owner) }
        let log = try Pipe()
        let ready = try Pipe()
        // After pasta has entered the user namespace it cannot look into this process.
        let arguments =
            [program, "-f", "-q", "-e", "--config-net"] + ["-t", "-u", "-T", "-U"].flatMap { [$0, "none"] } + [
                "--no-map-gw", "--dns-forward", Wall.nameServer, "-P", "/proc/self/fd/\(ready.writeEnd)", "--userns",
                "/proc/self/fd/\(owner)", "--netns", "/proc/self/fd/\(namespace)",
            ]
        pasta = try ConfinedNetwork.start(arguments, output: log.writeEnd, [namespace, owner, ready.writeEnd])
        ready.closeWriteEnd()
        log.closeWriteEnd()
        let end = ContinuousClock.now + .seconds(10)
        guard ready.read(until: end)?.isEmpty == false else {
            ConfinedNetwork.kill(pasta)
            let text = String(decoding: log.read(until: end) ?? [], as: UTF8.self).split(separator: "\n").last ?? ""
            throw Run.Failed(
                "There is no network inside: pasta said “\(Sanitizer.line(String(text), limit: 200))”. If this machine is "
                    + "offline, use --network none.")
        }
        let isInternet = network == .internet
        // The networks that this machine is in, too: they may have addresses of the Internet.
        let own = ConfinedNetwork.ownAddresses(withNetworks: isInternet)
        let four = ConfinedNetwork.never.four + (isInternet ? ConfinedNetwork.intranet.four : []) + own.four
        let six = ConfinedNetwork.never.six + (isInternet ? ConfinedNetwork.intranet.six : []) + own.six
        let hasSix = Files.exists("/proc/sys/net/ipv6")
        for (family, ranges) in [("-4", four)] + (hasSix ? [("-6", six)] : []) {
            guard try ConfinedNetwork.setRules(family, ranges, namespace, owner) else {
                ConfinedNetwork.kill(pasta)
                throw Run.Failed("The rules of the network inside cannot be set: ip failed.")
            }
        }
    }

    /// Rules come before every route, also before that of the network that this machine is in, whose prefix is longer.
    /// Only who owns the namespace can change them; the inside does not.
    private static func setRules(
        _ family: String, _ ranges: [String], _ namespace: Int32, _ owner: Int32
    ) throws -> Bool {
        let names = family == "-4" ? "rule add pref 50 to \(Wall.nameServer) lookup main\n" : ""
        let text = Array((names + ranges.map { "rule add pref 100 to \($0) unreachable\n" }.joined()).utf8)
        let batch = unsafe clinux_memory_file(text, text.count)
        guard batch >= 0 else { return false }
        defer { close(batch) }
        guard let nsenter = WallTools.place(of: "nsenter"), let ip = WallTools.place(of: "ip") else { return false }
        let words = [
            nsenter, "--user=/proc/self/fd/\(owner)", "--net=/proc/self/fd/\(namespace)", "--preserve-credentials", ip,
            family, "-batch", "/proc/self/fd/\(batch)",
        ]
        let pid = try start(words, output: 2, [namespace, owner, batch])
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status == 0
    }

    private static func start(_ words: [String], output: Int32, _ kept: [Int32]) throws -> Int32 {
        var vector = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { unsafe vector.forEach { unsafe free($0) } }
        var environment = unsafe [strdup("PATH=/usr/bin:/bin:/usr/sbin:/sbin"), nil]
        defer { unsafe environment.forEach { unsafe free($0) } }
        let pid = unsafe clinux_start_bound(words[0], &vector, &environment, output, kept, kept.count)
        guard pid > 0 else { throw Run.Failed("\(words[0]) cannot be started.") }
        return pid
    }

    /// The addresses of this machine, those that pasta gives to the inside among them, which are the inside's own there.
    private static func ownAddresses(withNetworks: Bool) -> (four: [String], six: [String]) {
        var (list, own) = (unsafe nil as UnsafeMutablePointer<ifaddrs>?, (four: [String](), six: [String]()))
        guard unsafe getifaddrs(&list) == 0 else { return own }
        defer { unsafe freeifaddrs(list) }
        var next = unsafe list
        while let entry = unsafe next {
            unsafe next = entry.pointee.ifa_next
            guard let address = unsafe entry.pointee.ifa_addr else { continue }
            let family = unsafe Int32(address.pointee.sa_family)
            guard family == AF_INET || family == AF_INET6 else { continue }
            let length = socklen_t(family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size)
            var buffer = [CChar](repeating: 0, count: 128)
            guard unsafe getnameinfo(address, length, &buffer, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let text = String(decoding: bytes, as: UTF8.self).prefix { $0 != "%" }
            let whole = family == AF_INET ? 32 : 128
            var prefix = whole
            if withNetworks, let mask = unsafe entry.pointee.ifa_netmask {
                let start = family == AF_INET ? 4 : 8
                let raw = unsafe UnsafeRawBufferPointer(start: mask, count: Int(length))
                prefix = unsafe raw[start..<start + whole / 8].reduce(0) { $0 + $1.nonzeroBitCount }
            }
            // A network without a prefix would be everything.
            let range = "\(text)/\(prefix < 8 ? whole : prefix)"
            if family == AF_INET { own.four.append(range) } else { own.six.append(range) }
        }
        return own
    }

    func end() { ConfinedNetwork.kill(pasta) }

    private static func kill(_ pid: Int32) {
        _ = Glibc.kill(pid, SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }
}
