import ArgumentParser
import HTTPMessages
import RingbackClient
import SchemeRegistration
import StrictJSON
import Terminal

struct SchemeList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Show the schemes of the configuration, and who the desktop would start for them.",
        discussion: "A link that really is sent shows more: ringback doctor.")

    @OptionGroup var json: JSONOption

    func run() throws {
        try present { () throws(RingbackError) in
            let desktop = try SchemeDesktop()
            var report: JSON?
            do throws(RingbackError) {
                report = try ConfigurationCheck.run(config: nil, candidate: nil)
            } catch {
                // What is registered can be shown without it.
                Output.note("note: the schemes of the configuration are not known: \(Sanitizer.line(error.detail))")
            }
            let uses = SchemeUse.all(report, desktop.registry.registered)
            let rows = uses.map { ($0, desktop.handler(of: $0.scheme)) }
            if json.isWanted { return Output.json(["schemes": .array(rows.map { SchemeList.row($0, $1) })]) }
            guard !rows.isEmpty else {
                return Output.note("No schemes. An account has one by its redirect_uri, as org.example.app:/callback.")
            }
            var table = Table(columns: ["SCHEME", "USED BY", "HANDLER", "OURS"])
            for (use, handler) in rows {
                let users = use.accounts + (use.isConfigured ? ["[schemes.\(use.scheme)]"] : [])
                table.add([
                    use.scheme.name, users.isEmpty ? "nobody" : users.joined(separator: ", "), handler?.name ?? "none",
                    SchemeList.isOurs(handler, use.scheme) ? "yes" : "no",
                ])
            }
            for line in table.lines { Output.line(line) }
            for (use, handler) in rows {
                if let warning = SchemeArgument.warning(use.scheme) { Output.note(warning) }
                if use.isUsed, !SchemeList.isOurs(handler, use.scheme) {
                    Output.note(
                        "note: \(use.scheme) links do not come to ringback. Run: ringback scheme register \(use.scheme)"
                    )
                }
            }
        }
    }

    /// True for the file that `register` writes, with this program in it.
    static func isOurs(_ handler: HandlerSearch.Handler?, _ scheme: URLScheme) -> Bool {
        guard let file = handler?.ours else { return false }
        return file.scheme == scheme && Programs.isSelf(file.program)
    }

    private static func row(_ use: SchemeUse, _ handler: HandlerSearch.Handler?) -> JSON {
        var object = JSONObject([
            .init("scheme", .string(use.scheme.name)), .init("accounts", .array(use.accounts.map { .string($0) })),
            .init("configured", .bool(use.isUsed)), .init("registered", .bool(use.file != nil)),
            .init("ours", .bool(isOurs(handler, use.scheme))), .init("reverse_dns", .bool(use.scheme.isReverseDNS)),
        ])
        object["handler"] = handler.map { .string($0.name) }
        object["program"] = (handler?.program).map { .string($0) }
        object["former_handler"] = (use.file?.former).map { .string($0) }
        return .object(object)
    }
}
