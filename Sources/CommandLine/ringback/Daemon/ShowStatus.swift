import ArgumentParser
import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ShowStatus: DaemonVerb {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Show the daemon's state.")

    @OptionGroup var options: CallOptions

    func run() throws {
        let calls = try daemon.calls()
        let answer = try calls.call(.getStatus)
        guard !json.isWanted else { return Output.json(answer) }
        let status = try DaemonStatus(reading: answer)
        // A restricted socket does not tell the pid.
        let pid = status.pid.map { ", pid \($0)" } ?? ""
        let build = try DaemonBuild(reading: answer, socket: daemon.socket)
        Output.field("Daemon", "ringbackd \(build.name)\(pid), up \(TimeText.span(status.uptime))")
        if let difference = build.difference {
            let restart = build.restart
            let step = restart.command.map { "To restart it: \(shown: $0)" } ?? restart.advice
            Output.field("Differs", difference + (step.map { " \($0)" } ?? ""))
        }
        Output.field("Socket", calls.socket)
        Output.field("Restricted", Elsewhere.restriction(answer["exposed_socket"]))
        Output.field("Vault", ShowStatus.vault(answer["vault"]))
        Output.field("Database", ShowStatus.database(answer["vault"]?["database"]))
        if status.isVaultLocked {
            let step =
                answer["exposed_socket"] == nil
                ? answer["vault"]?.object.flatMap(CauseAdvice.sentence) ?? "Run: ringback unlock"
                : "\(Elsewhere.place) ringback unlock"
            Output.field("Locked", status.vaultLockReason.map { "\($0) \(step)" } ?? step)
        }
        let counts = Dictionary(status.accounts.map { ($0.key.text, $0.value) }, uniquingKeysWith: +)
        let known = counts.filter { $0.value > 0 }.sorted { $0.key > $1.key }
        let text = known.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        Output.field("Accounts", text.isEmpty ? "none" : text)
        try showWhatWaits(status, answer, calls)
        let lists: [(String, ShownCommand)] = [
            ("warnings", "ringback expose list"), ("file_warnings", "ringback files"),
        ]
        for (member, list) in lists {
            for warning in answer.texts(member) { Output.field("Warning", "\(warning) See: \(shown: list)") }
        }
        guard let listeners = answer["listeners"]?.array?.compactMap(\.string) else { return }
        Output.field(
            "Listeners", listeners.isEmpty ? "none (no sign-in is pending)" : listeners.joined(separator: ", "))
    }

    private static func database(_ database: JSON?) -> String? {
        guard let database, let place = database["place"]?.string else { return nil }
        let unsent = database["unsent"]?.integer ?? 0
        let rest = unsent > 0 ? " Changes of this host that it does not have yet: \(unsent)." : ""
        if database.isTrue("reachable") { return place + (rest.isEmpty ? "" : ".\(rest)") }
        let problem = database["problem"]?.string ?? "It cannot be used."
        return "\(place), away: \(problem) Tokens are served while they are valid, and nothing is refreshed.\(rest)"
    }

    private func showWhatWaits(_ status: DaemonStatus, _ answer: JSON, _ calls: BrokerCalls) throws(RingbackError) {
        let documents = try calls.call(.listAccounts).list("accounts")
        let configured = Set(documents.compactMap { $0["name"]?.string })
        let stale = documents.filter { $0.isTrue("stale") }.compactMap { $0["name"]?.string }
        for session in SealedSession.all(in: answer) {
            let name = session.account
            let command =
                configured.contains(name)
                ? ShownCommand("ringback logout \(name) --sealed") : ShownCommand("ringback account remove \(name)")
            Output.field(
                "Sealed",
                "\(name): \(session.text), of no configured account. To remove it: \(shown: command)")
        }
        if !stale.isEmpty { Output.field("Stale", "\(stale.joined(separator: ", ")) (the provider cannot be reached)") }
        guard status.pendingRevocations > 0 else { return }
        let names = answer["pending_revocations_by_account"]?.object?.names ?? []
        let whose = names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
        Output.field("Sign-outs", "\(status.pendingRevocations) to be told to the provider\(whose)")
    }

    private static func vault(_ vault: JSON?) -> String? {
        guard let vault, let kind = vault["kind"]?.string else { return nil }
        let details = [vault.isTrue("locked") ? "locked" : nil, vault["key_source"]?.string.map { "key: \($0)" }]
        return ([kind] + details.compactMap { $0 }).joined(separator: ", ")
    }
}

struct ShowMetrics: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics", abstract: "Print the daemon's metrics, in Prometheus's text format.",
        discussion: "For node_exporter's textfile collector: ringback metrics > FILE.new && mv FILE.new FILE.prom")

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let text = try daemon.calls().text(.getMetrics)
        for line in text.split(separator: "\n") { Output.line(Sanitizer.line(String(line), limit: 4_096)) }
    }
}

/// An upgrade does not restart daemons, so the running daemon and this program may be built from different commits.
struct DaemonBuild {
    private let status: DaemonStatus
    /// A restricted socket: its daemon may be on another machine, and does not say its commit.
    private let isRestricted: Bool
    private let socket: String?

    init(reading answer: JSON, socket: String?) throws(RingbackError) {
        status = try DaemonStatus(reading: answer)
        isRestricted = answer["exposed_socket"] != nil
        self.socket = socket
    }

    var name: String { DaemonBuild.name(status.version, status.build) }

    /// What differs, in one sentence; nil if both are of one version and commit.
    var difference: String? {
        guard status.version != Ringback.version || (!isRestricted && status.build != Ringback.build) else {
            return nil
        }
        let own = DaemonBuild.name(Ringback.version, isRestricted ? nil : Ringback.build)
        let other = status.build == nil && !isRestricted ? "\(name), of an earlier commit" : name
        return "ringback is \(own), the daemon that runs is \(other)."
    }

    /// How the daemon is restarted: the command, or, where none can be known, a sentence. Neither for a daemon behind a
    /// restricted socket. Without the unit the command waits for the end of the former daemon, because a state
    /// directory is for one daemon at a time.
    var restart: (command: ShownCommand?, advice: String?) {
        guard !isRestricted, let pid = status.pid else { return (nil, nil) }
        let answer = Tool.systemctl("show", DoctorExamination.service, "--property=MainPID")
        if answer?.status == 0, answer?.line == "MainPID=\(pid)" {
            return (ShownCommand("systemctl --user restart \(DoctorExamination.service)"), nil)
        }
        guard let arguments = DaemonArguments(of: pid) else {
            return (nil, "Restart it where it runs; there its pid is \(pid).")
        }
        if arguments.isOfProgram { return (nil, "It belongs to the program that started it: restart that program.") }
        let command = ShownCommand(
            "kill \(pid) && tail --pid=\(pid) -f /dev/null && \(arguments.command(listeningAt: socket)) &")
        if arguments.isAbsolute { return (command, nil) }
        return (nil, "To restart it, in the directory where it was started: \(shown: command)")
    }

    private static func name(_ version: String, _ build: String?) -> String {
        version + (build.map { " (\($0))" } ?? "")
    }
}

/// How the daemon was started that runs, if no unit of systemd's started it: its command line, as the kernel shows it.
struct DaemonArguments {
    private let words: [String]

    /// Nil if there is no such process here: the daemon may run in a container.
    init?(of pid: Int) {
        guard let bytes = (try? Files.contents(of: "/proc/\(pid)/cmdline")) ?? nil else { return nil }
        words = bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
        guard let program = words.first, program.split(separator: "/").last == "ringbackd" else { return nil }
    }

    /// True if it belongs to a program, which starts it again when it needs it.
    var isOfProgram: Bool {
        let marks = ["--private", "--agent", "--exit-with-parent", "--credential-fd"]
        return words.contains { word in marks.contains { word == $0 || word.hasPrefix($0 + "=") } }
    }

    var isAbsolute: Bool {
        let options = ["--config", "--socket", "--state"]
        var places = words.prefix(1).filter { $0.contains("/") }
        for (index, word) in words.enumerated() {
            let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
            guard let option = parts.first, options.contains(option) else { continue }
            places += parts.count > 1 ? parts[1...] : words[(index + 1)...].prefix(1)
        }
        return places.allSatisfy { $0.hasPrefix("/") }
    }

    func command(listeningAt socket: String?) -> ShownCommand {
        let isStated = words.contains { $0 == "--socket" || $0.hasPrefix("--socket=") }
        let more = isStated ? [] : socket.map { ["--socket", $0] } ?? []
        return ShownCommand(words: words + more)
    }
}
