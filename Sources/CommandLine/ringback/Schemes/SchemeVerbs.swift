import ArgumentParser
import HTTPMessages
import RingbackClient
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
