import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct AccountVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Add, edit and remove accounts.",
        subcommands: [AccountAdd.self, AccountEdit.self, AccountRemove.self])
}

/// Where an account of the configuration is defined.
struct AccountSource {
    /// The file's path.
    let file: String
    /// From 1; nil if the report gave none.
    let line: Int?

    init(file: String, line: Int? = nil) {
        self.file = file
        self.line = line
    }

    /// The `source` of an entry of the configuration's report; nil without one.
    init?(of entry: JSON?) {
        guard let source = entry?["source"], let file = source["file"]?.string else { return nil }
        self.init(file: file, line: source["line"]?.integer)
    }

    /// The source of the account in a report; nil if the report has no such account.
    init?(of name: String, in report: JSON) {
        self.init(of: ConfigurationCheck.account(name, in: report))
    }

    var text: String { Sanitizer.line(file + (line.map { ", line \($0)" } ?? ""), limit: 600) }
}

extension BrokerCalls {
    /// Makes a running daemon read the configuration. Without a daemon there is nothing to do.
    func reloadIfRunning() throws(RingbackError) {
        do throws(RingbackError) {
            _ = try call(.reload)
        } catch {
            if error.kind != .noDaemon { throw error }
        }
    }
}
