import ArgumentParser
import HTTPMessages
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct OriginRemove: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Let tools have no token for a server any more.",
        discussion: "Removes the [[origin]] table with this URL from the configuration file. Everything else stays.")

    @Argument(help: "The origin's URL, as `ringback origin list` shows it.", completion: Completions.origins)
    var url: String

    @Option(help: "The one with this user name.")
    var matchUsername: String?

    @OptionGroup var config: ConfigurationOption
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let pattern = try OriginEntry.pattern(url)
            let file = try config.file()
            let entries = OriginEntry.all(in: try file.report())
            let entry = try chosen(among: entries.filter { $0.rule.pattern == pattern }, pattern)
            var lines = ConfigurationLines(try file.text() ?? [])
            guard entry.source.file == file.path, let line = entry.source.line,
                lines.removeTable(OriginEntry.header, atLine: line)
            else {
                throw RingbackError(
                    "origin_elsewhere",
                    "This origin is in \(entry.source.text), in a form that this command does not change. Nothing was "
                        + "removed. Edit the file.")
            }
            let others = entries.map(\.rule).filter { $0 != entry.rule }
            try file.replace(with: lines.text) { report in
                OriginEntry.all(in: report).map(\.rule) == others
            }
            if json.isWanted {
                Output.json(entry.json)
            } else {
                Output.line("Removed from \(Sanitizer.line(file.path, limit: 600)): \(pattern.text)")
            }
            try daemon.calls().reloadIfRunning()
        }
    }

    private func chosen(among entries: [OriginEntry], _ pattern: OriginPattern) throws(RingbackError) -> OriginEntry {
        let fitting = matchUsername == nil ? entries : entries.filter { $0.rule.username == matchUsername }
        guard let entry = fitting.first else {
            throw RingbackError(.notFound, "There is no origin \(pattern.text). To see all: ringback origin list")
        }
        // Without --match-username the one without a user name is meant, if there are several.
        guard fitting.count > 1 else { return entry }
        guard let general = fitting.first(where: { $0.rule.username == nil }) else {
            let users = fitting.compactMap(\.rule.username).joined(separator: ", ")
            throw RingbackError(ExitStatus.usageKind, "There are several: say which with --match-username (\(users)).")
        }
        return general
    }
}
