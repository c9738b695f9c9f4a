public import ArgumentParser
import RingbackAPI
public import RingbackBase
import RingbackClient
import Terminal

struct Lock: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Lock the vault: no token is issued until it is unlocked.",
        discussion: "Sessions stay, sealed; nobody is signed out.")

    @OptionGroup var options: CallOptions

    func run() throws { json.print(try daemon.calls().call(.lockVault), or: "The vault is locked.") }
}

struct Unlock: DaemonVerb {
    static let configuration = CommandConfiguration(
        abstract: "Unlock the vault: its sessions can be used again.",
        discussion: """
            If the key needs a passphrase, it is asked for on the terminal, without echo; if standard input is not a \
            terminal, it is its first line. It is never an argument. A new passphrase is asked for twice.
            """)

    @OptionGroup var options: CallOptions

    func run() throws {
        let calls = try daemon.calls()
        let vault = try calls.call(.getStatus)["vault"]
        var passphrase: String?
        if vault?["key_source"]?.string == KeySourceChoice.passphrase.rawValue, vault?["locked"]?.bool == true {
            let isNew = vault?["needs_new_passphrase"]?.bool == true
            passphrase = try isNew ? Passphrase.readNew() : Passphrase.read("Passphrase (it is not shown): ")
        }
        let answer = try calls.call(.unlockVault, body: .object(["passphrase": passphrase]), timeout: .seconds(150))
        json.print(answer, or: "The vault is open.")
    }
}

/// A passphrase comes from a terminal, where it is not shown, or as the first line of standard input: never from an
/// argument or the environment, which other programs can read.
enum Passphrase {
    private static let maxLength = 1_024

    static func read(_ question: String) throws(RingbackError) -> String {
        let way = " It is asked for on a terminal; else it is the first line of standard input."
        return try line(
            question, "passphrase", missing: "No passphrase was read." + (Console.Stream.input.isTerminal ? "" : way))
    }

    static func readNew() throws(RingbackError) -> String {
        let first = try read("New passphrase (it is not shown): ")
        guard Console.Stream.input.isTerminal else { return first }
        guard try read("The same again: ") == first else {
            throw RingbackError(.cancelled, "The two are not the same. Nothing was changed.")
        }
        return first
    }

    static func line(_ question: String, _ name: String, missing: String) throws(RingbackError) -> String {
        let line =
            Console.Stream.input.isTerminal
            ? Prompt.readHidden(question, limit: maxLength, interruption: try Signals.interruption().descriptor)
            : readLine(strippingNewline: true)
        guard let line, !line.isEmpty else { throw RingbackError(.cancelled, missing) }
        guard line.utf8.count <= maxLength else {
            throw RingbackError(.cancelled, "The \(name) is longer than \(maxLength) bytes.")
        }
        return line
    }
}

struct VaultVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vault", abstract: "Change where the vault's key is stored; share the vault with other hosts.",
        subcommands: [
            VaultRekey.self, VaultInit.self, VaultMigrate.self, VaultMove.self, VaultFacts.self, VaultInvite.self,
            VaultJoin.self, VaultShare.self, VaultHosts.self, VaultRemoveHost.self,
        ])
}

extension KeySourceChoice: ExpressibleByArgument {}

struct VaultRekey: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "rekey", abstract: "Move the vault's key to another source.",
        discussion: "A new passphrase is asked for twice on the terminal, or is the first line of standard input.")

    @Argument(help: "The new place of the key.") var place: KeySourceChoice?
    @Option(help: "The new place of the key, as an option.") var keySource: KeySourceChoice?
    @OptionGroup var options: CallOptions

    func validate() throws {
        try require((place == nil) != (keySource == nil), "Name the new place of the key, once.")
    }

    func run() throws {
        guard let keySource = keySource ?? place else { return }
        let calls = try daemon.calls()
        let body: JSONObject = [
            "key_source": keySource.rawValue, "passphrase": try keySource == .passphrase ? Passphrase.readNew() : nil,
        ]
        let answer = try calls.call(.rekeyVault, body: .object(body), timeout: .seconds(150))
        guard !json.isWanted else { return Output.json(answer) }
        Output.line("The vault's key: \(Sanitizer.line(answer["key_source"]?.string ?? keySource.rawValue))")
        if let protects = answer["protects"]?.string { Output.note(Sanitizer.line(protects)) }
        if let named = answer["other_key_source"]?.string, let source = answer["key_source"]?.string {
            Output.note(
                Sanitizer.line(
                    "Set key_source = \"\(source)\" in the configuration too: it says \"\(named)\", and the daemon "
                        + "would be locked at its next start.", limit: 400))
        }
    }
}

struct VaultHosts: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "hosts", abstract: "List the hosts that share the vault.")

    @OptionGroup var options: CallOptions

    func run() throws {
        let answer = try daemon.calls().call(.listVaultHosts)
        try json.printList(
            answer, "hosts", ["NAME", "KEY", "JOINED", "SEEN"], none: "There is no host.", VaultHosts.cells)
        guard !json.isWanted else { return }
        for name in answer.texts("stale") {
            Output.note(
                "\(Sanitizer.line(name)) was not refreshed since a host was removed: what that host had read may still "
                    + "be good. It is tried again by itself.")
        }
        VaultHosts.showLeft(answer)
    }

    static func showLeft(_ answer: JSON) {
        for name in answer.texts("left") {
            Output.note(
                "\(Sanitizer.line(name)) is not configured here: its session is refreshed by a host that has it.")
        }
    }

    private static func cells(_ host: JSON) -> [String] {
        // One that is only invited has no name yet. It is removed by its role.
        let name = host["name"]?.string ?? "\(host.text("role")) (invited)"
        return [
            name + (host.isTrue("self") ? " (this one)" : ""), host.isTrue("has_key") ? "yes" : "no",
            time(host["joined_at"]), time(host["seen_at"]),
        ]
    }

    private static func time(_ seconds: JSON?) -> String { seconds?.integer.map(TimeText.dateAndTime) ?? "" }
}

struct VaultInvite: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Invite one more host to share the vault.",
        discussion: """
            Prints what the configuration of that host is to have, and the invitation's password, which is not shown again. \
            A host that has it can join once. It gets no session before ringback vault share.
            """)

    @Option(help: .value("span", "How long it can be accepted: a minute to seven days.")) var lasting = "1h"
    @OptionGroup var options: CallOptions

    func validate() throws {
        try require(
            (60...604_800).contains(TimeSpan.seconds(of: lasting) ?? 0),
            "--lasting must be a span from 1m to 7d, such as 90s, 15m or 8h.")
    }

    func run() throws {
        let seconds = TimeSpan.seconds(of: lasting) ?? 0
        let answer = try daemon.calls().call(.inviteVaultHost, body: ["lasting": .integer(seconds)])
        guard !json.isWanted else { return Output.json(answer) }
        VaultInvite.show(answer, to: "the new host", lasting: answer["expires_in"]?.integer ?? seconds)
    }

    static func show(_ invitation: JSON, to host: String, lasting seconds: Int) {
        Output.line(
            """
            For the configuration of \(host):

            [vault]
            store = "\(invitation.shown("store"))"

            The invitation's password, for \(TimeText.span(seconds)): \(invitation.shown("password"))
            """)
        Output.note(
            "It is not shown again. When the daemon of that host was started anew, run there: ringback vault join")
    }
}

struct VaultJoin: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "join", abstract: "Join the hosts that share the vault.",
        discussion: """
            For a daemon whose [vault] has a store. The invitation's password is asked for on the terminal, or is a line of \
            standard input; it is needed once. A host that joins others shows a code for one that has their key, and waits \
            until it has been given the key. The same command again shows the same code.
            """)

    @Option(help: "This host's name among the others; the machine's if nothing is said.") var name: String?
    @Flag(help: "Do not wait for the key.") var noWait = false
    @OptionGroup var options: CallOptions

    func run() throws {
        let interruption = try Signals.interruption()
        let calls = try daemon.interruptibleCalls()
        let answer = try join(calls)
        let code = answer["code"]?.string.map { Sanitizer.line($0) }
        if json.isWanted { Output.json(answer) } else { show(answer, code) }
        guard code != nil, !noWait else { return }
        while try calls.call(.getStatus)["vault"]?["locked"]?.bool == true {
            guard !interruption.wait(atMost: .seconds(1)) else {
                throw RingbackError(.cancelled, "This host has not been given the key yet.")
            }
        }
        if !json.isWanted { Output.line("The vault is open.") }
    }

    private func join(_ calls: BrokerCalls) throws(RingbackError) -> JSON {
        var body: JSONObject = ["name": name]
        while true {
            do throws(RingbackError) {
                return try calls.call(.joinVault, body: .object(body), timeout: .seconds(90))
            } catch {
                let isMissing = error.kind == .validationFailed && error["field"] == "password"
                guard isMissing, body["password"] == nil else { throw error }
            }
            body["password"] = .string(
                try SecretInput.read(
                    "password of the invitation", from: nil, otherwise: "Nothing was changed."))
        }
    }

    private func show(_ answer: JSON, _ code: String?) {
        let name = Sanitizer.line(answer.text("host"))
        let owner = Sanitizer.line(answer.text("owner"))
        guard let code else { return Output.line("This host is \(name), of \(owner)'s hosts. The vault is open.") }
        Output.note(
            "This host is \(name), of \(owner)'s hosts. On a host that has their key, run ringback vault share, and type this "
                + "code there:")
        Output.line(code)
        guard !noWait else { return }
        Output.note("Waiting until that was done. The code stays the same if you end this.")
    }
}

struct VaultRemoveHost: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "remove-host", abstract: "Remove another host from those that share the vault.",
        discussion: """
            Its connections to the database end, and its role is dropped. Then every session is refreshed once, so that \
            what it had read is stale. Exit status 1: not every session could be refreshed.
            """)

    @Argument(help: "The host's name or role.") var host: String
    @OptionGroup var options: CallOptions

    func run() throws {
        let answer = try advising(
            "See: ringback vault hosts", on: .notFound,
            call: daemon.calls().call(.removeVaultHost, [host], timeout: .seconds(600)))
        let failed = answer.texts("failed")
        if json.isWanted { Output.json(answer) } else { show(answer, failed) }
        if !failed.isEmpty { throw ExitCode(ExitStatus.failed) }
    }

    private func show(_ answer: JSON, _ failed: [String]) {
        let count = answer.list("refreshed").count
        Output.line("\(Sanitizer.line(answer["host"]?.string ?? host)) was removed. Sessions refreshed: \(count).")
        for name in failed where RequestTarget.isAccountName(name) {
            Output.note(
                "\(name) was not refreshed: what that host had read may still be good. It is tried again by itself, or "
                    + "run: \(shown: "ringback refresh \(name) --force")")
        }
        VaultHosts.showLeft(answer)
    }
}

struct VaultShare: DaemonVerb {
    static let configuration = CommandConfiguration(
        commandName: "share", abstract: "Give the hosts' key to the host that has shown a code.",
        discussion: """
            The code is what ringback vault join has shown on that host. It is asked for, or is a line of standard input: \
            other users can read the arguments of a command. Type what you see there yourself: the host that gets the key can \
            read every session of the vault. A code that has failed is not accepted again.
            """)

    @Argument(help: .hidden) var code: [String] = []
    @OptionGroup var options: CallOptions

    func validate() throws {
        try require(
            code.isEmpty,
            "The code is no argument: other users can read the arguments of a command. Run ringback vault share, and "
                + "type the code when it is asked for.")
    }

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        let text = try SecretInput.read("code", from: nil)
        let answer = try advising(
            "See that the code is typed as it is shown there. To show it again, run there: ringback vault join. "
                + "If it was right, it is not accepted again: remove that host with ringback vault remove-host, "
                + "and invite it anew.", on: .notFound, call: calls.call(.shareVault, body: ["code": .string(text)]))
        json.print(answer, or: "\(Sanitizer.line(answer["host"]?.string ?? "The host")) has got the key.")
    }
}
