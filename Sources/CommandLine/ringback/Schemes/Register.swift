import ArgumentParser
import HTTPMessages
import RingbackClient
import SchemeRegistration
import StrictJSON
import Terminal

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
