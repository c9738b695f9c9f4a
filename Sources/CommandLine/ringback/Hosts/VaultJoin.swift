import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

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
