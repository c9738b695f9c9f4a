import ArgumentParser
import HTTPMessages
import RingbackClient
import SchemeRegistration
import StrictJSON
import Terminal

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
