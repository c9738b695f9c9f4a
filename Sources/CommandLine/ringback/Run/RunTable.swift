import Glibc
import RingbackBase
import RingbackClient
import Terminal

/// `[run.NAME]` of the user's own configuration, as the daemon's check of it reports it.
struct RunTable {
    private let entry: JSON

    init(named name: String) throws {
        let shown = "[run.\(Sanitizer.line(name, limit: 64))]"
        guard Programs.path("ringbackd").hasPrefix("/") else {
            // What PATH begins with may be a folder that a confined program may change.
            throw Run.Failed("ringbackd, which reads the configuration, is not beside ringback.")
        }
        let report = try ConfigurationCheck.report(nil)
        guard report["valid"] == true else {
            for mistake in Failure.mistakes(report["errors"]) { Output.note(mistake) }
            throw Run.Failed("The configuration has mistakes, so \(shown) cannot be used.")
        }
        guard let entry = report.list("runs").first(where: { $0["name"]?.string == name }) else {
            let near = NearestWord.find(for: name, among: report.names("runs"))
            throw Run.Failed(
                "The configuration has no table \(shown)\(near.map { ": did you mean \($0)?" } ?? ".") "
                    + "For a program of this name: \(shown: "ringback run -- \(name)")")
        }
        self.entry = entry
    }

    /// What was typed is added to the table; of two values of which only one can be, it is the typed one.
    func fill(_ run: inout Run) {
        run.account = entry.texts("accounts") + run.account
        run.scope = run.scope ?? entry["scope"]?.string
        run.mcp = entry.texts("mcp") + run.mcp
        run.tool = entry.texts("tool") + run.tool
        run.relay = entry.texts("relay") + run.relay
        run.read = entry.texts("read") + run.read
        run.write = entry.texts("write") + run.write
        run.home = run.home ?? entry["home"]?.string
        run.network = run.network ?? entry["network"]?.string.flatMap(Run.Network.init)
        run.nested = run.nested || entry.isTrue("nested")
        run.display = run.display || entry.isTrue("display")
        run.variables = entry.texts("env") + run.variables
        if run.command.isEmpty { run.command = entry.texts("command") }
    }
}
