import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct Use: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Choose the default account, or show it.",
        discussion: """
            With a name, writes default = "NAME" into the configuration file and lets a running daemon read it; comments \
            stay. Without one, prints the default account. It is the account of `login`, `token`, `session` and \
            `refresh` without ACCOUNT, if there are several. Exit status 1: there is no default account.
            """)

    @Argument(help: "The account.", completion: Completions.accounts)
    var name: String?

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let file = try config.file()
            if let name { try choose(name, file) } else { try show(file) }
        }
    }

    private func choose(_ name: String, _ file: ConfigurationFile) throws(RingbackError) {
        // A configuration whose only mistake is its default is corrected by this.
        let former = try? file.report()
        if let known = former.map(Use.names), !known.isEmpty, !known.contains(name) {
            throw RingbackError(.accountNotFound, UnknownAccount.text(name, known: known))
        }
        var lines = ConfigurationLines(try file.text() ?? [])
        lines.setDefault(name)
        try file.replace(with: lines.text) { report in
            let isSame = former?["accounts"] == nil || former.map(Use.names) == Use.names(report)
            return isSame && report["default"]?["account"]?.string == name
        }
        if json.isWanted {
            Output.json(["default": .string(name), "file": .string(file.path)])
        } else {
            Output.line("The default account is \(name): \(Sanitizer.line(file.path, limit: 600))")
        }
        try daemon.calls().reloadIfRunning()
    }

    private func show(_ file: ConfigurationFile) throws(RingbackError) {
        let report = try file.report()
        guard let entry = report["default"], let name = entry["account"]?.string else {
            guard !Use.names(report).isEmpty else {
                throw RingbackError(.notFound, "No account is configured. Run: \(shown: AccountAdd.command)")
            }
            throw RingbackError(.notFound, "There is no default account. To choose one: ringback use NAME")
        }
        guard json.isWanted else { return Output.line(name) }
        let file = AccountSource(of: entry)?.file ?? file.path
        Output.json(["default": .string(name), "file": .string(file)])
    }

    private static func names(_ report: JSON) -> [String] {
        (report["accounts"]?.array ?? []).compactMap { $0["name"]?.string }
    }
}
