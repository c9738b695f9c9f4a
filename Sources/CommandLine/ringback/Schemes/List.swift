import ArgumentParser
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

struct SchemeList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the schemes of the configuration, and which program the desktop would start for them.",
        discussion: "ringback doctor tests each scheme with a real link.")

    @OptionGroup var json: JSONOption

    func run() throws {
        try present { () throws(RingbackError) in
            let desktop = try SchemeDesktop()
            var report: JSON?
            var mistakes: RingbackError?
            do throws(RingbackError) {
                report = try ConfigurationCheck.run(config: nil, candidate: nil)
            } catch {
                // Registered schemes can be shown without the configuration. Configured ones cannot, so the verb fails.
                mistakes = error
                Output.note("note: the schemes of the configuration are not known")
            }
            let uses = SchemeUse.all(report, desktop.registry.registered)
            let rows = uses.map { ($0, desktop.handler(of: $0.scheme)) }
            if json.isWanted {
                Output.json(["schemes": .array(rows.map { SchemeList.row($0, $1, isKnown: report != nil) })])
            } else if !rows.isEmpty {
                SchemeList.show(rows, isKnown: report != nil)
            } else if mistakes == nil {
                Output.note("No schemes. An account has one by its redirect_uri, as org.example.app:/callback.")
            }
            if let mistakes { throw mistakes }
        }
    }

    private static func show(_ rows: [(SchemeUse, HandlerSearch.Handler?)], isKnown: Bool) {
        var table = Table(columns: ["SCHEME", "USED BY", "HANDLER", "OURS"])
        for (use, handler) in rows {
            let users = use.accounts + (use.isConfigured ? ["[schemes.\(use.scheme)]"] : [])
            table.add([
                use.scheme.name, users.isEmpty ? (isKnown ? "nobody" : "unknown") : users.joined(separator: ", "),
                handler?.name ?? "none",
                SchemeList.isOurs(handler, use.scheme) ? "yes" : "no",
            ])
        }
        Output.table(table)
        for (use, handler) in rows {
            if let warning = SchemeArgument.warning(use.scheme) { Output.note(warning) }
            if use.isUsed, !SchemeList.isOurs(handler, use.scheme) {
                Output.note(
                    "note: \(use.scheme) links do not come to ringback. Run: "
                        + "\(shown: "ringback scheme register \(use.scheme.name)")"
                )
            }
        }
    }

    /// True for the file that `register` writes, with this program in it.
    static func isOurs(_ handler: HandlerSearch.Handler?, _ scheme: URLScheme) -> Bool {
        guard let file = handler?.ours else { return false }
        return file.scheme == scheme && Programs.isSelf(file.program)
    }

    /// - Parameter isKnown: the configuration could be read. If not, nothing is said about its schemes.
    private static func row(_ use: SchemeUse, _ handler: HandlerSearch.Handler?, isKnown: Bool) -> JSON {
        var object = JSONObject([.init("scheme", .string(use.scheme.name))])
        if isKnown {
            object["accounts"] = .array(use.accounts.map { .string($0) })
            object["configured"] = .bool(use.isUsed)
        }
        object["registered"] = .bool(use.file != nil)
        object["ours"] = .bool(isOurs(handler, use.scheme))
        object["reverse_dns"] = .bool(use.scheme.isReverseDNS)
        object["handler"] = handler.map { .string($0.name) }
        object["program"] = (handler?.program).map { .string($0) }
        object["former_handler"] = (use.file?.former).map { .string($0) }
        return .object(object)
    }
}

struct Links: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print an app's links, one per line, until Ctrl-C.",
        discussion: """
            Prints links of the scheme that end no sign-in; first those that no app has acknowledged. Printing a link \
            acknowledges it. Exit status 2: the daemon ended; 4: another program listens now.
            """)

    @Argument(help: "The scheme, without its colon.", completion: Completions.schemes)
    var scheme: String

    @Flag(name: .customLong("json"), help: "Print one JSON object per line.")
    var isJSON = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            do throws(RingbackError) {
                try follow(try daemon.calls(interruption))
            } catch {
                if interruption.isInterrupted { return }
                throw error
            }
        }
    }

    /// Prints links until the stream ends.
    ///
    /// - Throws: always, with the reason why the stream ended.
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
        if isJSON { Output.json(data) } else { Output.line(Sanitizer.line(link.url, limit: Callback.maxLength)) }
        try calls.acknowledge(link)
    }
}

/// The user's desktop, as far as schemes are concerned: where its files are, and which handler a scheme has.
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

    /// A warning before a sign-in whose callback would not come back, since another program is the scheme's handler.
    /// Nil for a redirect URI of another kind, and without a desktop session.
    static func warning(_ redirectURI: String?) -> String? {
        let word = redirectURI.map { String($0.prefix { $0 != ":" }) } ?? ""
        guard hasSession, let scheme = try? URLScheme(parsing: word), let desktop = try? SchemeDesktop() else {
            return nil
        }
        let handler = desktop.handler(of: scheme)
        guard handler?.ours == nil else { return nil }
        let who = handler.map { "go to \(Sanitizer.line($0.name))" } ?? "have no handler"
        return
            "warning: \(scheme) links \(who), so the response may not come back. "
            + "Run: \(shown: "ringback scheme register \(scheme.name)")"
    }
}
