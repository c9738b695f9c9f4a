import Glibc
import Synchronization
import Testing

/// A control group of a test's programs, below that of the tests. For the daemon it is a service's.
struct ControlGroup {
    /// The lines of the hierarchies by which the daemon knows a group, in its order.
    private static let memberships: [Substring] = {
        let lines = (FileTree.text(of: "/proc/self/cgroup") ?? "").split(separator: "\n")
        return lines.filter { $0.hasPrefix("0::/") } + lines.filter { $0.contains(":name=systemd:/") }
    }()

    /// The directory of the tests' own group; nil if none can be made in it. Root may, and others below `user@.service`.
    private static let own: String? = {
        for line in memberships {
            let path = line.split(separator: ":").last.map(String.init) ?? "/"
            for mount in line.hasPrefix("0::") ? ["", "/unified"] : ["/systemd"] {
                let directory = "/sys/fs/cgroup" + mount + (path == "/" ? "" : path)
                if unsafe access(directory + "/cgroup.procs", W_OK) == 0, unsafe access(directory, W_OK) == 0 {
                    return directory
                }
            }
        }
        return nil
    }()

    static let isPossible = own != nil
    static let reason: Comment = "control groups cannot be made below the tests' own"
    /// True if the tests run in an application or a service of systemd: then the daemon takes all programs that they start
    /// for that application's.
    static let isOccupied = memberships.contains { $0.split(separator: "/").contains { $0.hasSuffix(".service") } }

    /// For a test whose programs have to be strangers to each other.
    static let canStartApart: ConditionTrait = .enabled(if: !isOccupied || isPossible, reason)

    /// Removes the groups of former tests: a relay may live longer than the test that started it, and its group with it.
    private static let clearance: Void = {
        guard let own else { return }
        for name in FileTree.names(in: own) where name.hasPrefix("ringback-test-") {
            let process = name.split(separator: "-").dropFirst(2).first.flatMap { pid_t($0) }
            if let process, kill(process, 0) != 0 { unsafe rmdir("\(own)/\(name)") }
        }
    }()

    private static let count = Atomic(0)
    private let directory: String

    init() throws {
        ControlGroup.clearance
        let number = ControlGroup.count.add(1, ordering: .relaxed).newValue
        directory = try #require(ControlGroup.own) + "/ringback-test-\(getpid())-\(number).service"
        try #require(unsafe mkdir(directory, 0o755) == 0)
    }

    /// Removes it if no program runs in it any more.
    func remove() { unsafe rmdir(directory) }

    /// The words that start a command in the group.
    func words(_ command: [String]) -> [String] {
        ["/bin/sh", "-c", #"echo $$ >"$0/cgroup.procs" && exec "$@""#, directory] + command
    }
}

/// A program in a session of its own, and in a control group of its own where the tests are in one that counts.
struct ApartProgram {
    let program: Program
    let group: ControlGroup?

    func end() async throws -> Output {
        defer { group?.remove() }
        return try await program.end()
    }
}

extension Stage {
    func startApart(_ words: [String]) throws -> ApartProgram {
        let group = ControlGroup.isOccupied ? try ControlGroup() : nil
        let session = ["/usr/bin/setsid", "--wait"] + words
        let all = group?.words(session) ?? session
        return ApartProgram(program: try start(all[0], Array(all.dropFirst())), group: group)
    }
}
