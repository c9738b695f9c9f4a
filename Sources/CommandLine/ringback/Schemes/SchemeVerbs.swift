import ArgumentParser
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

struct SchemeVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "scheme", abstract: "Let the desktop hand an app's links to ringback.",
        subcommands: [SchemeRegister.self, SchemeUnregister.self, SchemeList.self])
}

struct SchemeArgument: ParsableArguments {
    @Argument(help: "The scheme, without its colon: org.example.app.", completion: Completions.schemes)
    var scheme: String

    func validate() throws { _ = try value() }

    func value() throws -> URLScheme {
        do {
            return try URLScheme(parsing: scheme)
        } catch .reserved(let name) {
            throw ValidationError(
                "The scheme \(name) is not for apps: common programs use it. Choose one made from a domain of yours, "
                    + "such as org.example.app.")
        } catch {
            throw ValidationError(
                "“\(Sanitizer.line(scheme, limit: 80))” is not a scheme: a letter, then letters, digits, “+”, “-” and "
                    + "“.”, at most \(URLScheme.maxLength), without “:”.")
        }
    }

    /// A warning about a scheme that any app might choose (RFC 8252 sections 7.1 and 8.6).
    static func warning(_ scheme: URLScheme) -> String? {
        guard !scheme.isReverseDNS else { return nil }
        return "warning: any other app may claim the scheme \(scheme) and get the responses of your sign-ins. A scheme "
            + "made from a domain of yours, such as org.example.\(scheme), belongs to nobody else."
    }
}

/// A scheme that an account's redirect URI has, that the configuration has a table for, or that was registered.
struct SchemeUse {
    let scheme: URLScheme
    var accounts: [String] = []
    var isConfigured = false
    var file: HandlerFile?

    var isUsed: Bool { isConfigured || !accounts.isEmpty }

    static func all(_ report: JSON?, _ registered: [HandlerFile]) -> [SchemeUse] {
        var uses: [URLScheme: SchemeUse] = [:]
        for account in report?["accounts"]?.array ?? [] {
            let redirect = account.text("redirect_uri")
            guard let name = account["name"]?.string,
                let scheme = try? URLScheme(parsing: String(redirect.prefix { $0 != ":" }))
            else { continue }
            uses[scheme, default: SchemeUse(scheme: scheme)].accounts.append(name)
        }
        for entry in report?["schemes"]?.array ?? [] {
            guard let scheme = entry["name"]?.string.flatMap({ try? URLScheme(parsing: $0) }) else { continue }
            uses[scheme, default: SchemeUse(scheme: scheme)].isConfigured = true
        }
        for file in registered { uses[file.scheme, default: SchemeUse(scheme: file.scheme)].file = file }
        return uses.values.sorted { $0.scheme < $1.scheme }
    }
}

struct SchemeRegister: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register", abstract: "Make ringback the handler of a scheme's links.",
        discussion: """
            Writes a .desktop file below $XDG_DATA_HOME/applications and makes it the first choice of the desktop. The \
            former handler is printed; ringback scheme unregister restores it.
            """)

    @OptionGroup var argument: SchemeArgument
    @Option(help: .value("name", "The account whose redirect URI has the scheme.")) var account: String?
    @Flag(help: "Replace a file of the same name that ringback did not write.") var force = false
    @OptionGroup var json: JSONOption

    func run() throws {
        let scheme = try argument.value()
        let label = try check(scheme)
        let desktop = try SchemeDesktop()
        // If the program's file was replaced while it ran, /proc names a file that does not exist.
        guard let program = Programs.own, Tool.isInstalled(program) else {
            throw RingbackError(.systemError, "The path of ringback itself is not known. Start it again.")
        }
        let former = desktop.handler(of: scheme)?.name
        let done = try SchemeDesktop.changed(
            try desktop.registry.register(
                scheme, program: program, account: account, label: label, former: former, isForced: force))
        show(done, desktop.handler(of: scheme))
    }

    /// The account's redirect URI must have the scheme. Without an account, an unused scheme only gives a note. Returns
    /// what the account, or the only one with the scheme, is called, otherwise the scheme.
    private func check(_ scheme: URLScheme) throws(RingbackError) -> String? {
        if let warning = SchemeArgument.warning(scheme) { Output.note(warning) }
        let report: JSON
        do throws(RingbackError) {
            report = try ConfigurationCheck.run(config: nil)
        } catch {
            guard account == nil else { throw error }
            return nil
        }
        let use = SchemeUse.all(report, []).first { $0.scheme == scheme }
        if let account {
            guard ConfigurationCheck.account(account, in: report) != nil else {
                throw UnknownAccount.error(account, in: report)
            }
            guard use?.accounts.contains(account) == true else {
                throw RingbackError(
                    .stateConflict,
                    "The sign-ins of \(account) do not come back by \(scheme). Set in its configuration: "
                        + "redirect_uri = \"\(SchemeRegister.example(scheme))\"", recovery: .fixConfiguration)
            }
        } else if use == nil {
            Output.note(
                "note: no account uses the scheme \(scheme) yet. Set in one's configuration: "
                    + "redirect_uri = \"\(SchemeRegister.example(scheme))\"")
        }
        let owners = account.map { [$0] } ?? use?.accounts ?? []
        let owner = owners.count == 1 ? ConfigurationCheck.account(owners[0], in: report) : nil
        let own = report.list("schemes").first { $0["name"]?.string == scheme.name }
        // That of the account has the provider's host with it.
        return (owner?["label"] ?? own?["label"])?.string
    }

    /// RFC 8252 section 7.1: one slash, since there is no authority; apps with short schemes write two.
    private static func example(_ scheme: URLScheme) -> String {
        scheme.isReverseDNS ? "\(scheme):/callback" : "\(scheme)://auth-callback"
    }

    private func show(_ done: SchemeRegistry.Registration, _ now: HandlerSearch.Handler?) {
        let scheme = done.file.scheme
        let isOurs = now?.name == done.file.name
        if json.isWanted {
            Output.object([
                "scheme": scheme.name, "file": done.path, "program": done.file.program, "account": done.file.account,
                "former_handler": done.file.former, "handler": now?.name, "ours": isOurs,
            ])
        } else {
            let before = done.file.former.map { "before: \(Sanitizer.line($0))" } ?? "before: no handler"
            Output.line("\(scheme) links go to \(Sanitizer.line(done.file.program)) now (\(before))")
            Output.line("Written: \(Sanitizer.line(done.path))")
        }
        if !isOurs {
            let other = now.map { Sanitizer.line($0.name) } ?? "nothing"
            Output.note(
                "warning: the desktop would still start \(other). Choose it in the desktop's settings, or run: "
                    + "\(shown: "xdg-mime default \(done.file.name) x-scheme-handler/\(scheme.name)")")
        }
        if !HandlerFile.isPlain(done.file.program) {
            Output.note(
                "warning: the path of ringback has characters that xdg-open's own opener does not understand. Where no "
                    + "desktop helps it, links are lost: install ringback at a path without spaces and quotes.")
        }
    }
}

struct SchemeUnregister: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unregister", abstract: "Give a scheme's links back to its former handler.")

    @OptionGroup var argument: SchemeArgument
    @OptionGroup var json: JSONOption

    func run() throws {
        let scheme = try argument.value()
        let desktop = try SchemeDesktop()
        let own = try SchemeDesktop.changed(try desktop.registry.unregister(scheme))
        let now = desktop.handler(of: scheme)
        guard !json.isWanted else {
            return Output.object(["scheme": scheme.name, "handler": now?.name, "was_registered": own != nil])
        }
        if own == nil { Output.note("\(scheme) was not registered.") }
        let after = now.map { "go to \(Sanitizer.line($0.name))" } ?? "have no handler"
        Output.line("\(scheme) links \(after) now")
    }
}

struct SchemeList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the schemes of the configuration, and which program the desktop would start for them.",
        discussion: "ringback doctor tests each scheme with a real link.")

    @OptionGroup var json: JSONOption

    func run() throws {
        let desktop = try SchemeDesktop()
        var report: JSON?
        var mistakes: RingbackError?
        do throws(RingbackError) {
            report = try ConfigurationCheck.run(config: nil)
        } catch {
            // Registered schemes can be shown without the configuration. Configured ones cannot, so the verb fails.
            mistakes = error
            Output.note("note: the schemes of the configuration are not known")
        }
        let uses = SchemeUse.all(report, desktop.registry.registered)
        let rows = uses.map { ($0, desktop.handler(of: $0.scheme)) }
        if json.isWanted {
            Output.object(["schemes": rows.map { SchemeList.row($0, $1, isKnown: report != nil) }])
        } else if !rows.isEmpty {
            SchemeList.show(rows, isKnown: report != nil)
        } else if mistakes == nil {
            Output.note("No schemes. An account has one by its redirect_uri, as org.example.app:/callback.")
        }
        if let mistakes { throw mistakes }
    }

    private static func show(_ rows: [(SchemeUse, HandlerSearch.Handler?)], isKnown: Bool) {
        let cells = rows.map { use, handler -> [String] in
            let users = use.accounts + (use.isConfigured ? ["[schemes.\(use.scheme)]"] : [])
            return [
                use.scheme.name, users.isEmpty ? (isKnown ? "nobody" : "unknown") : users.joined(separator: ", "),
                handler?.name ?? "none", SchemeList.isOurs(handler, use.scheme) ? "yes" : "no",
            ]
        }
        Output.table(["SCHEME", "USED BY", "HANDLER", "OURS"], cells)
        for (use, handler) in rows {
            if use.isUsed, !SchemeList.isOurs(handler, use.scheme) {
                let command = ShownCommand("ringback scheme register \(use.scheme.name)")
                Output.note("note: \(use.scheme) links do not come to ringback. Run: \(shown: command)")
            }
        }
    }

    static func isOurs(_ handler: HandlerSearch.Handler?, _ scheme: URLScheme) -> Bool {
        guard let file = handler?.ours else { return false }
        return file.scheme == scheme && Programs.isSelf(file.program)
    }

    private static func row(_ use: SchemeUse, _ handler: HandlerSearch.Handler?, isKnown: Bool) -> JSONObject {
        [
            "scheme": use.scheme.name, "accounts": isKnown ? use.accounts : nil,
            "configured": isKnown ? use.isUsed : nil, "registered": use.file != nil,
            "ours": isOurs(handler, use.scheme), "reverse_dns": use.scheme.isReverseDNS, "handler": handler?.name,
            "program": handler?.program, "former_handler": use.file?.former,
        ]
    }
}

struct Links: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print an app's links, one per line, until Ctrl-C.",
        discussion: """
            Prints links of the scheme that end no sign-in; first those that no app has acknowledged. Printing a link \
            acknowledges it. Exit status 2: the daemon ended; 4: another program listens now.
            """)

    @Argument(help: "The scheme, without its colon.", completion: Completions.schemes) var scheme: String
    @Flag(help: "Print one JSON object per line.") var json = false
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        let calls = try daemon.interruptibleCalls()
        do throws(RingbackError) {
            try follow(calls)
        } catch {
            if !Signals.isInterrupted { throw error }
        }
    }

    private func follow(_ calls: BrokerCalls) throws(RingbackError) {
        let events = try calls.openDeepLinks(scheme: scheme)
        while let event = try events.next() {
            switch event.name {
            case "deep_link": try take(event, calls)
            case "listener_replaced":
                throw RingbackError(.cancelled, "Another program listens for the links of \(scheme) now.")
            case "dropped":
                throw RingbackError(
                    .notFound, "The scheme \(scheme) is not configured any more.", recovery: .fixConfiguration)
            default: break
            }
        }
        throw RingbackError(.noDaemon, "The daemon ended the stream of links.", recovery: .retry)
    }

    private func take(_ event: ServerSentEvents.Event, _ calls: BrokerCalls) throws(RingbackError) {
        guard let data = try? JSON(parsing: event.data.utf8) else {
            throw RingbackError(.badResponse, "A link's data is not valid JSON.")
        }
        let link = try DeepLink(reading: data)
        if json { Output.json(data) } else { Output.line(Sanitizer.line(link.url, limit: Callback.maxLength)) }
        try calls.acknowledge(link)
    }
}

struct SchemeDesktop {
    let places: DesktopPlaces

    init() throws(RingbackError) {
        guard let places = DesktopPlaces(environment: SocketPlace.variable) else {
            throw RingbackError(
                .systemError, "There is no place for the desktop's files: HOME is not set.",
                recovery: .fixConfiguration)
        }
        self.places = places
    }

    var registry: SchemeRegistry { SchemeRegistry(places: places) { Tool.run($0)?.status } }

    /// A failure of the registry becomes one of this program.
    static func changed<Value>(
        _ change: @autoclosure () throws(SchemeRegistry.Failure) -> Value
    ) throws(RingbackError) -> Value {
        do throws(SchemeRegistry.Failure) {
            return try change()
        } catch {
            throw RingbackError(.systemError, error.reason)
        }
    }

    /// The handler that the desktop would start. `xdg-mime` is asked, if it is installed.
    func handler(of scheme: URLScheme) -> HandlerSearch.Handler? {
        let search = registry.search
        guard let answer = Tool.run(["xdg-mime", "query", "default", "x-scheme-handler/\(scheme)"]) else {
            return search.handler(of: scheme)
        }
        return answer.line.flatMap { search.handler(named: $0) }
    }

    /// True in a desktop session. Without one, an opener does something else.
    static var hasSession: Bool {
        ["DISPLAY", "WAYLAND_DISPLAY", "XDG_CURRENT_DESKTOP"].contains { SocketPlace.variable($0)?.isEmpty == false }
    }

    /// A warning before a sign-in whose callback would not come back. Nil for a redirect URI of another kind.
    static func warning(_ redirectURI: String?) -> String? {
        let word = redirectURI.map { String($0.prefix { $0 != ":" }) } ?? ""
        guard hasSession, let scheme = try? URLScheme(parsing: word), let desktop = try? SchemeDesktop() else {
            return nil
        }
        let handler = desktop.handler(of: scheme)
        guard handler?.ours == nil else { return nil }
        let who = handler.map { "go to \(Sanitizer.line($0.name))" } ?? "have no handler"
        return "warning: \(scheme) links \(who), so the response may not come back. "
            + "Run: \(shown: "ringback scheme register \(scheme.name)")"
    }
}
