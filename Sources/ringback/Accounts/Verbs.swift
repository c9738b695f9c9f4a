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

    /// Reads `FILE:LINE`, as the configuration's report writes it.
    init(parsing text: String) {
        guard let colon = text.lastIndex(of: ":"), let line = Int(text[text.index(after: colon)...]) else {
            file = text
            line = nil
            return
        }
        file = String(text[..<colon])
        self.line = line
    }

    /// The source of the account in a report; nil if the report has no such account.
    init?(of name: String, in report: JSON) {
        guard let text = ConfigurationCheck.account(name, in: report)?["source"]?.string else { return nil }
        self.init(parsing: text)
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
