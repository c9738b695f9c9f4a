import ArgumentParser

/// The parser's message about a mistake in the options, corrected where it would mislead. It begins as every other message
/// of `ringback`.
enum UsageMistake {
    /// - Parameter message: the parser's whole message.
    static func mended(_ message: String, _ arguments: [String]) -> String {
        let text = corrected(message, arguments)
        return text.hasPrefix("Error: ") ? "ringback: \(text.dropFirst(7))" : text
    }

    private static func corrected(_ message: String, _ arguments: [String]) -> String {
        guard let name = unknownOption(in: message) else { return message }
        // The parser looks for the nearest name, which for `--browser` is the opposite: `--no-browser`.
        if message.contains("Did you mean '--no-\(name)'?") {
            return message.replacing(
                "Unknown option '--\(name)'. Did you mean '--no-\(name)'?",
                with: "Unknown option '--\(name)'. It is the default; --no-\(name) turns it off.")
        }
        if name.hasPrefix("no-"), message.contains("Did you mean '--\(name.dropFirst(3))'?") {
            return message.replacing(
                ". Did you mean '--\(name.dropFirst(3))'?",
                with: ". It needs none: leave --\(name.dropFirst(3)) out.")
        }
        if let verb = arguments.first(where: { !$0.hasPrefix("-") }), arguments.first?.hasPrefix("-") == true {
            return message.replacing(
                "Unknown option '--\(name)'",
                with: "Unknown option '--\(name)' before the verb: options follow “\(verb)”")
        }
        guard let meant = arguments.first.flatMap({ synonyms[$0]?[name] }) else { return message }
        let line = message.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false).first ?? ""
        return message.replacing(line, with: "Error: Unknown option '--\(name)'. Did you mean '\(meant)'?")
    }

    private static func unknownOption(in message: String) -> String? {
        let start = "Error: Unknown option '--"
        guard message.hasPrefix(start) else { return nil }
        return String(message.dropFirst(start.count).prefix { $0 != "'" })
    }

    /// Names that other programs have for an option of a verb.
    private static let synonyms: [String: [String: String]] = [
        "login": [
            "provider": "--with", "idp": "--with", "user": "--email", "username": "--email", "mail": "--email",
            "headless": "--no-browser", "device": "--method device", "device-code": "--method device",
            "use-device-code": "--method device", "password": "--method password", "otp": "--method otp",
            "force": "--switch", "scope": "--scopes",
        ],
        "token": ["scopes": "--scope", "login": "--sign-in", "output": "--format"],
        "logout": ["no-hint": "--no-browser", "everywhere": "--scope global", "global": "--scope global"],
    ]
}
