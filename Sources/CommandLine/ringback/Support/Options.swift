import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

struct DaemonOptions: ParsableArguments {
    @Option(help: .value("path", "The daemon's socket, if not the usual one.")) var socket: String?

    func calls() throws(RingbackError) -> BrokerCalls { try Daemon.calls(socket: socket) }

    /// Calls that the first signal interrupts.
    func interruptibleCalls() throws(RingbackError) -> BrokerCalls {
        try Daemon.calls(socket: socket, try Signals.interruption())
    }
}

extension ArgumentHelp {
    static func value(_ name: String, _ text: String) -> ArgumentHelp { ArgumentHelp(text, valueName: name) }

    static var flow: ArgumentHelp { value("account", "The account, or the flow's identifier.") }

    static func descriptor(_ what: String) -> ArgumentHelp { value("number", "Read \(what) from this descriptor.") }
}

enum Daemon {
    static func calls(socket: String?, _ interruption: Interruption? = nil) throws(RingbackError) -> BrokerCalls {
        BrokerCalls(socket: try SocketPlace.path(stated: socket), application: "ringback", interruption: interruption)
    }
}

struct JSONOption: ParsableArguments {
    @Flag(name: .customLong("json"), help: "Print JSON.") var isWanted = false
}

struct CallOptions: ParsableArguments {
    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions
}

struct AccountOptions: ParsableArguments {
    @Argument(help: "The account.", completion: Completions.accounts) var account: String
    @OptionGroup var options: CallOptions
}

/// A verb about an account, whose name is put before a failure.
protocol AccountNaming: ParsableCommand {
    /// A text that may be nil.
    associatedtype Name
    var account: Name { get }
}

extension AccountNaming {
    var subject: String? { account as? String }
}

protocol DaemonVerb: ParsableCommand {
    var options: CallOptions { get }
}

extension DaemonVerb {
    var json: JSONOption { options.json }
    var daemon: DaemonOptions { options.daemon }
}

protocol AccountVerb: DaemonVerb, AccountNaming {
    var target: AccountOptions { get }
}

extension AccountVerb {
    var account: String { target.account }
    var options: CallOptions { target.options }
}

extension BrokerCalls {
    /// For a request that is not to be interrupted: its response says what has happened.
    var patient: BrokerCalls {
        var calls = self
        calls.interruption = nil
        return calls
    }
}

/// What shells offer for an argument. No daemon is started, and standard error, where the user types, stays empty.
enum Completions {
    static let accounts = CompletionKind.custom { _, _, _ in report()?.names("accounts") ?? [] }
    static let origins = CompletionKind.custom { _, _, _ in
        (report()?.list("origins") ?? []).compactMap { $0["url"]?.string }
    }
    static let runs = CompletionKind.custom { _, _, _ in report()?.names("runs") ?? [] }
    static let schemes = CompletionKind.custom { _, _, _ in
        let registered = (try? SchemeDesktop())?.registry.registered ?? []
        return SchemeUse.all(report(), registered).map(\.scheme.name)
    }
    static let presets = CompletionKind.list(["google", "microsoft", "github", "gitlab", "supabase"])
    static let upstreams = CompletionKind.list([
        "apple", "azure", "bitbucket", "discord", "facebook", "figma", "github", "gitlab", "google", "kakao",
        "keycloak", "linkedin_oidc", "notion", "slack_oidc", "spotify", "twitch", "twitter", "workos", "zoom",
    ])
    /// After `--`: first a program, then files. Before it, the `--` itself.
    static let command = CompletionKind.custom { words, index, prefix in
        guard let end = words.prefix(index).firstIndex(of: "--") else { return ["--"] }
        return end + 1 == index && !prefix.contains("/") ? programs(prefix) : files(prefix)
    }

    /// A configuration with mistakes gives nothing.
    private static func report() -> JSON? {
        Tool.run([Programs.path("ringbackd"), "--check-config", "--json"], within: .seconds(3))
            .flatMap { try? JSON(parsing: $0.output) }
    }

    private static func programs(_ prefix: String) -> [String] {
        let found = SearchPath.own.folders.flatMap { folder in
            Directory.names(in: folder).filter { $0.hasPrefix(prefix) && Tool.isInstalled("\(folder)/\($0)") }
        }
        return Set(found).sorted()
    }

    private static func files(_ prefix: String) -> [String] {
        let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
        let start = prefix.dropFirst(folder.count)
        return Directory.names(in: folder.isEmpty ? "." : folder).filter {
            $0.hasPrefix(start) && (start.hasPrefix(".") || !$0.hasPrefix("."))
        }.map { folder + $0 }.sorted()
    }
}

/// On a terminal, notes, fields and usage are broken between words at its width. Results, which may be copied, and
/// whatever goes into a pipe are not.
enum Output {
    /// Prints a result. If it cannot be written, the process exits with status 1.
    static func line(_ text: String) {
        guard Console.write(text + "\n", to: .output) else {
            note("ringback: the output cannot be written")
            exit(1)
        }
    }

    static func json(_ json: JSON) { line(json.visibleText) }

    static func object(_ object: JSONObject) { json(.object(object)) }

    /// - Parameters:
    ///   - below: how many of the last cells are put below their row on a terminal that is too narrow.
    ///   - shrinking: the columns that are cut then, in groups.
    static func table(_ columns: [String], _ rows: [[String]], below: Int = 0, shrinking: [[Int]] = []) {
        var table = Table(columns: columns)
        for row in rows { table.add(row) }
        let lines = table.lines(columns: Console.Stream.output.columns, below: below, shrinking: shrinking)
        for (index, line) in lines.enumerated() {
            self.line(index == 0 ? Style.bold.apply(line, on: .output) : line)
        }
    }

    /// Prints text that is no result. What comes from outside must be sanitized before.
    static func note(_ text: String) {
        _ = Console.write(TextWrap.wrapped(text, columns: Console.Stream.errors.columns) + "\n", to: .errors)
    }

    static func note(_ text: String, after mark: Mark) {
        let wrapped = TextWrap.wrapped(text, columns: Console.Stream.errors.columns.map { $0 - 2 })
        _ = Console.write("\(mark.text(on: .errors)) \(wrapped.replacing("\n", with: "\n  "))\n", to: .errors)
    }

    /// - Parameters:
    ///   - indent: the number of blanks before each further line.
    ///   - margin: the number of blanks before each line.
    static func sentence(_ text: String, indent: Int = 0, margin: Int = 0) {
        let blanks = String(repeating: " ", count: margin)
        let columns = Console.Stream.output.columns.map { $0 - margin }
        let lines = TextWrap.wrapped(text, columns: columns, indent: indent).split(
            separator: "\n", omittingEmptySubsequences: false)
        line(lines.map { blanks + $0 }.joined(separator: "\n"))
    }

    static func fields(_ fields: KeyValuePairs<String, String?>) {
        for (label, text) in fields { field(label, text) }
    }

    /// Without a text, nothing is printed.
    static func field(_ label: String, _ text: String?) {
        guard let text, !text.isEmpty else { return }
        sentence(label.padded(to: 10) + " " + Sanitizer.line(text, limit: 1_000), indent: 11)
    }
}

/// How the documents of the daemon are read. A member that is missing, or of another type, counts as empty.
extension JSON {
    func list(_ member: String) -> [JSON] { self[member]?.array ?? [] }

    func text(_ member: String) -> String { self[member]?.string ?? "" }

    func texts(_ member: String) -> [String] { list(member).compactMap(\.string) }

    /// The names of a list's entries, such as those of the accounts.
    func names(_ member: String) -> [String] { list(member).compactMap { $0["name"]?.string } }

    func isTrue(_ member: String) -> Bool { self[member]?.bool == true }

    func shown(_ member: String, limit: Int = 4_000) -> String { Sanitizer.line(text(member), limit: limit) }
}

extension JSONOption {
    func print(_ answer: JSON, or line: @autoclosure () -> String) {
        if isWanted { Output.json(answer) } else { Output.line(line()) }
    }

    func printList(
        _ answer: JSON, _ member: String, _ columns: [String], none: String,
        _ cells: (JSON) throws(RingbackError) -> [String]
    ) throws(RingbackError) {
        guard !isWanted else { return Output.json(answer) }
        let list = answer.list(member)
        guard !list.isEmpty else { return Output.note(none) }
        Output.table(columns, try list.map(cells))
    }
}

extension WallInstant? {
    var cell: String { map { TimeText.dateAndTime($0.secondsSince1970) } ?? "-" }
}
