import ArgumentParser
import HTTPMessages
import RingbackClient
import SchemeRegistration
import StrictJSON
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
