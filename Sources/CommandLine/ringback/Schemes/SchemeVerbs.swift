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

/// A scheme as a verb's argument.
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
        return
            "warning: any other app may claim the scheme \(scheme) and get the responses of your sign-ins. A scheme "
            + "made from a domain of yours, such as org.example.\(scheme), belongs to nobody else."
    }
}

/// A scheme that is in use: an account's redirect URI has it, the configuration has a table for it, or it was
/// registered.
struct SchemeUse {
    let scheme: URLScheme
    var accounts: [String] = []
    /// It has a table of its own in the configuration.
    var isConfigured = false
    /// What was registered for it.
    var file: HandlerFile?

    /// True if the daemon takes its links.
    var isUsed: Bool { isConfigured || !accounts.isEmpty }
}

extension SchemeUse {
    /// The schemes of a configuration's report and those that were registered, by name.
    static func all(_ report: JSON?, _ registered: [HandlerFile]) -> [SchemeUse] {
        var uses: [URLScheme: SchemeUse] = [:]
        for account in report?["accounts"]?.array ?? [] {
            let redirect = account["redirect_uri"]?.string ?? ""
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

    @Option(help: ArgumentHelp("The account whose redirect URI has the scheme.", valueName: "name"))
    var account: String?

    @Flag(help: "Replace a file of the same name that ringback did not write.")
    var force = false

    @OptionGroup var json: JSONOption

    func run() throws {
        let scheme = try argument.value()
        try present { () throws(RingbackError) in
            try check(scheme)
            let desktop = try SchemeDesktop()
            // If the program's file was replaced while it ran, /proc names a file that does not exist.
            guard let program = Programs.own, Tool.isInstalled(program) else {
                throw RingbackError(.systemError, "The path of ringback itself is not known. Start it again.")
            }
            let former = desktop.handler(of: scheme)?.name
            let done: SchemeRegistry.Registration
            do throws(SchemeRegistry.Failure) {
                done = try desktop.registry.register(
                    scheme, program: program, account: account, former: former, isForced: force)
            } catch {
                throw RingbackError(.systemError, error.reason)
            }
            show(done, desktop.handler(of: scheme))
        }
    }

    /// The account's redirect URI must have the scheme. Without an account, a scheme that is not used only gives a
    /// note.
    private func check(_ scheme: URLScheme) throws(RingbackError) {
        if let warning = SchemeArgument.warning(scheme) { Output.note(warning) }
        let report: JSON
        do throws(RingbackError) {
            report = try ConfigurationCheck.run(config: nil, candidate: nil)
        } catch {
            guard account == nil else { throw error }
            return
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
    }

    /// RFC 8252 section 7.1: one slash, since there is no authority; apps with short schemes write two.
    private static func example(_ scheme: URLScheme) -> String {
        scheme.isReverseDNS ? "\(scheme):/callback" : "\(scheme)://auth-callback"
    }

    private func show(_ done: SchemeRegistry.Registration, _ now: HandlerSearch.Handler?) {
        let scheme = done.file.scheme
        let isOurs = now?.name == done.file.name
        if json.isWanted {
            var object = JSONObject([
                .init("scheme", .string(scheme.name)), .init("file", .string(done.path)),
                .init("program", .string(done.file.program)),
            ])
            object["account"] = done.file.account.map { .string($0) }
            object["former_handler"] = done.file.former.map { .string($0) }
            object["handler"] = now.map { .string($0.name) }
            object["ours"] = .bool(isOurs)
            Output.json(.object(object))
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
        try present { () throws(RingbackError) in
            let desktop = try SchemeDesktop()
            let own: HandlerFile?
            do throws(SchemeRegistry.Failure) {
                own = try desktop.registry.unregister(scheme)
            } catch {
                throw RingbackError(.systemError, error.reason)
            }
            let now = desktop.handler(of: scheme)
            if json.isWanted {
                var object = JSONObject([
                    .init("scheme", .string(scheme.name)), .init("was_registered", .bool(own != nil)),
                ])
                object["handler"] = now.map { .string($0.name) }
                return Output.json(.object(object))
            }
            if own == nil { Output.note("\(scheme) was not registered.") }
            let after = now.map { "go to \(Sanitizer.line($0.name))" } ?? "have no handler"
            Output.line("\(scheme) links \(after) now")
        }
    }
}
