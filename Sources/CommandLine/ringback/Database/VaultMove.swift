import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct VaultMove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move", abstract: "Wait until what this host's vault has is in the database.",
        discussion: """
            Once store is set in [vault] and this host has joined, the daemon gives the database what its own vault had. \
            Killed at any point, nothing is lost: run it again. Ctrl-C ends the waiting, and changes nothing.
            """)

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            let calls = try daemon.calls(interruption)
            var shown: String?
            while true {
                let vault = try calls.call(.getStatus)["vault"]
                let (place, unsent, obstacle) = try VaultMove.standing(of: vault)
                if obstacle == nil, unsent == 0 {
                    guard !json.isWanted else { return Output.json(vault ?? .object(JSONObject([]))) }
                    return Output.line("Everything that this host's vault has is in \(place).")
                }
                let text = obstacle ?? "\(place) does not have \(unsent == 1 ? "1 change" : "\(unsent) changes") yet."
                if shown != text { Output.note("Waiting: \(text)") }
                shown = text
                if interruption.wait(atMost: .milliseconds(300)) {
                    throw RingbackError(.cancelled, "It is not known yet whether everything is in the database.")
                }
            }
        }
    }

    /// Where the database is, what it does not have, and why it gets nothing now.
    ///
    /// - Throws: `no_store` and `vault_locked` where waiting does not help.
    private static func standing(of vault: JSON?) throws(RingbackError) -> (String, Int, String?) {
        guard let database = vault?["database"], let place = database["place"]?.string else {
            var error = RingbackError("no_store", "The sessions of this daemon are on this host alone.")
            error.advice =
                "Put the lines into the configuration that ringback vault init or invite printed, start the daemon anew, "
                + "and run: ringback vault join"
            throw error
        }
        if vault?["locked"]?.bool == true {
            var error = RingbackError(.vaultLocked, vault?["reason"]?.string ?? "The vault is locked.")
            error.advice = "Run: ringback unlock; or, if this host has not joined: ringback vault join"
            throw error
        }
        let problem = database["reachable"]?.bool == true ? nil : database["problem"]?.string ?? "It cannot be used."
        return (
            Sanitizer.line(place, limit: 300), database["unsent"]?.integer ?? 0,
            problem.map { Sanitizer.line($0, limit: 300) }
        )
    }
}
