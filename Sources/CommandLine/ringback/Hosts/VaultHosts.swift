import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct VaultHosts: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hosts", abstract: "List the hosts that share the vault.")

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let answer = try daemon.calls().call(.listVaultHosts)
            guard !json.isWanted else { return Output.json(answer) }
            var table = Table(columns: ["NAME", "KEY", "JOINED", "SEEN"])
            for host in answer["hosts"]?.array ?? [] { table.add(VaultHosts.cells(host)) }
            Output.table(table)
            for name in answer["stale"]?.array?.compactMap(\.string) ?? [] {
                Output.note(
                    "\(Sanitizer.line(name)) was not refreshed since a host was removed: what that host had read may still "
                        + "be good. It is tried again by itself.")
            }
            VaultHosts.showLeft(answer)
        }
    }

    /// Sessions that only another host can refresh.
    static func showLeft(_ answer: JSON) {
        for name in answer["left"]?.array?.compactMap(\.string) ?? [] {
            Output.note(
                "\(Sanitizer.line(name)) is not configured here: its session is refreshed by a host that has it.")
        }
    }

    private static func cells(_ host: JSON) -> [String] {
        // One that is only invited has no name yet. It is removed by its role.
        let name = host["name"]?.string ?? "\(host["role"]?.string ?? "") (invited)"
        return [
            name + (host["self"]?.bool == true ? " (this one)" : ""), host["has_key"]?.bool == true ? "yes" : "no",
            time(host["joined_at"]), time(host["seen_at"]),
        ]
    }

    private static func time(_ seconds: JSON?) -> String { seconds?.integer.map(TimeText.dateAndTime) ?? "" }
}

struct VaultInvite: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Invite one more host to share the vault.",
        discussion: """
            Prints what the configuration of that host is to have, and the invitation's password, which is not shown again. \
            A host that has it can join once. It gets no session before ringback vault share.
            """)

    @Option(help: ArgumentHelp("How long it can be accepted: a minute to seven days.", valueName: "span"))
    var lasting = "1h"

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard let seconds = TimeSpan.seconds(of: lasting), (60...604_800).contains(seconds) else {
            throw ValidationError("--lasting must be a span from 1m to 7d, such as 90s, 15m or 8h.")
        }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            let seconds = TimeSpan.seconds(of: lasting) ?? 0
            let answer = try daemon.calls().call(.inviteVaultHost, body: ["lasting": .integer(seconds)])
            guard !json.isWanted else { return Output.json(answer) }
            Output.line("For the configuration of the new host:")
            Output.line("")
            Output.line("[vault]")
            Output.line("store = \"\(text(answer, "store"))\"")
            Output.line("")
            let span = TimeText.span(answer["expires_in"]?.integer ?? seconds)
            Output.line("The invitation's password, for \(span): \(text(answer, "password"))")
            Output.note(
                "It is not shown again. When the daemon of that host was started anew, run there: ringback vault join")
        }
    }

    private func text(_ answer: JSON, _ member: String) -> String {
        Sanitizer.line(answer[member]?.string ?? "", limit: 4_000)
    }
}

struct VaultJoin: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "join", abstract: "Join the hosts that share the vault.",
        discussion: """
            For a daemon whose [vault] has a store. The invitation's password is asked for on the terminal, or is a line of \
            standard input; it is needed once. A host that joins others shows a code for one that has their key, and waits \
            until it has been given the key. The same command again shows the same code.
            """)

    @Option(help: "This host's name among the others; the machine's if nothing is said.")
    var name: String?

    @Flag(help: "Do not wait for the key.")
    var noWait = false

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    /// How often the daemon is asked whether the vault is open.
    private static let interval: Duration = .seconds(1)

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            let answer = try join(calls, interruption)
            let code = answer["code"]?.string.map { Sanitizer.line($0) }
            if json.isWanted { Output.json(answer) } else { show(answer, code) }
            guard code != nil, !noWait else { return }
            while try calls.call(.getStatus)["vault"]?["locked"]?.bool == true {
                guard !interruption.wait(atMost: VaultJoin.interval) else {
                    throw RingbackError(.cancelled, "This host has not been given the key yet.")
                }
            }
            if !json.isWanted { Output.line("The vault is open.") }
        }
    }

    private func join(_ calls: BrokerCalls, _ interruption: Interruption) throws(RingbackError) -> JSON {
        var body = JSONObject()
        body["name"] = name.map { .string($0) }
        do throws(RingbackError) {
            return try call(calls, body)
        } catch {
            guard error.kind == "validation_failed", error.problem?.extensions["field"] == "password" else {
                throw error
            }
        }
        body["password"] = .string(
            try SecretInput(interruption: interruption).read(
                "password of the invitation", from: nil, otherwise: "Nothing was changed."))
        return try call(calls, body)
    }

    private func call(_ calls: BrokerCalls, _ body: JSONObject) throws(RingbackError) -> JSON {
        try calls.call(.joinVault, body: .object(body), timeout: .seconds(90))
    }

    private func show(_ answer: JSON, _ code: String?) {
        let name = Sanitizer.line(answer["host"]?.string ?? "")
        let owner = Sanitizer.line(answer["owner"]?.string ?? "")
        guard let code else { return Output.line("This host is \(name), of \(owner)'s hosts. The vault is open.") }
        Output.note(
            "This host is \(name), of \(owner)'s hosts. On a host that has their key, run ringback vault share, and type this "
                + "code there:")
        Output.line(code)
        guard !noWait else { return }
        Output.note("Waiting until that was done. The code stays the same if you end this.")
    }
}

struct VaultRemoveHost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove-host", abstract: "Remove another host from those that share the vault.",
        discussion: """
            Its connections to the database end, and its role is dropped. Then every session is refreshed once, so that \
            what it had read is stale. Exit status 1: not every session could be refreshed.
            """)

    @Argument(help: "The host's name or role.")
    var host: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        var failed: [String] = []
        try present { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().call(.removeVaultHost, [host], timeout: .seconds(600))
            } catch {
                throw error.kind == .notFound ? SignInAdvice.adding("See: ringback vault hosts", to: error) : error
            }
            failed = (answer["failed"]?.array ?? []).compactMap(\.string)
            guard !json.isWanted else { return Output.json(answer) }
            let count = answer["refreshed"]?.array?.count ?? 0
            Output.line(
                "\(Sanitizer.line(answer["host"]?.string ?? host)) was removed. Sessions refreshed: \(count).")
            for name in failed where RequestTarget.isAccountName(name) {
                Output.note(
                    "\(name) was not refreshed: what that host had read may still be good. It is tried again by itself, or "
                        + "run: \(shown: "ringback refresh \(name) --force")")
            }
            VaultHosts.showLeft(answer)
        }
        if !failed.isEmpty { throw ExitCode(ExitStatus.failed) }
    }
}

struct VaultShare: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Give the hosts' key to the host that has shown a code.",
        discussion: """
            The code is what ringback vault join has shown on that host. It is asked for, or is a line of standard input: \
            other users can read the arguments of a command. Type what you see there yourself: the host that gets the key can \
            read every session of the vault. A code that has failed is not accepted again.
            """)

    @Argument(help: .hidden)
    var code: [String] = []

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard code.isEmpty else {
            throw ValidationError(
                "The code is no argument: other users can read the arguments of a command. Run ringback vault share, and "
                    + "type the code when it is asked for.")
        }
    }

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            let text = try SecretInput(interruption: interruption).read("code", from: nil)
            let answer: JSON
            do throws(RingbackError) {
                answer = try calls.call(.shareVault, body: ["code": .string(text)])
            } catch {
                guard error.kind == .notFound else { throw error }
                throw SignInAdvice.adding(
                    "See that the code is typed as it is shown there. To show it again, run there: ringback vault join. "
                        + "If it was right, it is not accepted again: remove that host with ringback vault remove-host, "
                        + "and invite it anew.",
                    to: error)
            }
            if json.isWanted {
                Output.json(answer)
            } else {
                Output.line("\(Sanitizer.line(answer["host"]?.string ?? "The host")) has got the key.")
            }
        }
    }
}
