import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct ShowStatus: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "status", abstract: "Show the daemon's state.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
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
                let step = restart?.command.map { "To restart it: \(shown: $0)" } ?? restart?.advice
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
            let counts = status.accounts.filter { $0.value > 0 }.sorted { $0.key.rawValue < $1.key.rawValue }
            let text = counts.map { "\($0.value) \($0.key.rawValue)" }.joined(separator: ", ")
            Output.field("Accounts", text.isEmpty ? "none" : text)
            try showWhatWaits(status, answer, calls)
            for warning in (answer["warnings"]?.array ?? []).compactMap(\.string) {
                Output.field("Warning", "\(warning) See: ringback expose list")
            }
            for warning in (answer["file_warnings"]?.array ?? []).compactMap(\.string) {
                Output.field("Warning", "\(warning) See: ringback files")
            }
            guard let listeners = answer["listeners"]?.array?.compactMap(\.string) else { return }
            Output.field(
                "Listeners", listeners.isEmpty ? "none (no sign-in is pending)" : listeners.joined(separator: ", "))
        }
    }

    /// The database of a vault that hosts share; nil for a vault of one host.
    private static func database(_ database: JSON?) -> String? {
        guard let database, let place = database["place"]?.string else { return nil }
        let unsent = database["unsent"]?.integer ?? 0
        let rest = unsent > 0 ? " Changes of this host that it does not have yet: \(unsent)." : ""
        if database["reachable"]?.bool == true { return place + (rest.isEmpty ? "" : ".\(rest)") }
        let problem = database["problem"]?.string ?? "It cannot be used."
        return "\(place), away: \(problem) Tokens are served while they are valid, and nothing is refreshed.\(rest)"
    }

    /// Shows what is pending: sessions that cannot be refreshed now, and sessions whose revocation was not sent yet.
    private func showWhatWaits(_ status: DaemonStatus, _ answer: JSON, _ calls: BrokerCalls) throws(RingbackError) {
        var stale: [String] = []
        var configured: Set<String> = []
        for document in try calls.call(.listAccounts)["accounts"]?.array ?? [] {
            guard let name = document["name"]?.string else { continue }
            configured.insert(name)
            if document["stale"]?.bool == true { stale.append(name) }
        }
        for session in SealedSession.all(in: answer) {
            let command = SealedSession.command(session.account, isConfigured: configured.contains(session.account))
            Output.field(
                "Sealed",
                "\(session.account): \(session.text), of no configured account. To remove it: \(shown: command)")
        }
        if !stale.isEmpty { Output.field("Stale", "\(stale.joined(separator: ", ")) (the provider cannot be reached)") }
        guard status.pendingRevocations > 0 else { return }
        let names = answer["pending_revocations_by_account"]?.object?.names ?? []
        let whose = names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
        Output.field("Sign-outs", "\(status.pendingRevocations) to be told to the provider\(whose)")
    }

    private static func vault(_ vault: JSON?) -> String? {
        guard let kind = vault?["kind"]?.string else { return nil }
        let details = [
            vault?["locked"]?.bool == true ? "locked" : nil, vault?["key_source"]?.string.map { "key: \($0)" },
        ]
        return ([kind] + details.compactMap { $0 }).joined(separator: ", ")
    }
}

struct ShowMetrics: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "metrics", abstract: "Print the daemon's metrics, in Prometheus's text format.",
        discussion: "For node_exporter's textfile collector: ringback metrics > FILE.new && mv FILE.new FILE.prom")

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let text = try daemon.calls().text(.getMetrics)
            for line in text.split(separator: "\n") { Output.line(Sanitizer.line(String(line), limit: 4_096)) }
        }
    }
}
