internal import Glibc
internal import RingbackBase

/// `[schemes.NAME]`: a custom URL scheme of an app. A link that belongs to no sign-in is delivered to the app that
/// listens for it. If no app listens, the command is started. Only this file names the program; a link is only ever an
/// argument.
public struct SchemeConfiguration: Sendable, Equatable {
    /// In lower case (RFC 3986 section 3.1).
    public let name: String
    /// The program, as an absolute path, and its arguments; nil if no program is started.
    public let command: [String]?
    /// The app's name for the user.
    public let displayName: String?
    public let source: ConfigurationSource

    /// True if the link is an argument of the command.
    public var takesURL: Bool { command?.contains { $0.contains(PageSettings.placeholder) } == true }

    /// What the handler is called. An app may have any name, so the scheme stands beside it.
    var label: String? { displayName.map { "\($0) (\(name):)" } }

    /// Hints for the user, one sentence each.
    var notes: [String] {
        var notes = [
            "The desktop must open \(name): links with Ringback.",
            command?.first.map { "If no app listens for its links, \($0) is started." }
                ?? "Its links are kept for a minute for an app that listens.",
        ]
        if let program = command?.first, unsafe access(program, X_OK) != 0 {
            notes.append("[schemes.\(name)] starts \(program), which does not exist or is not executable.")
        }
        if let note = SchemeConfiguration.note(onClaimsOf: name) { notes.append(note) }
        return notes
    }

    /// RFC 8252 sections 7.1 and 8.6.
    static func note(onClaimsOf scheme: String) -> String? {
        guard (try? URLScheme(parsing: scheme))?.isReverseDNS == false else { return nil }
        return "Another app may claim the scheme \(scheme). Use a reversed domain name of yours, such as "
            + "org.example.\(scheme)."
    }
}

extension SchemeConfiguration {
    static func read(_ table: SettingTable) -> SchemeConfiguration {
        let name = table.name
        if let mistake = mistake(inName: name) { table.refuse(nil, mistake) }
        return SchemeConfiguration(
            name: name, command: table.command("command", begins: "an absolute path", table.place.path),
            displayName: table.displayName, source: table.source)
    }

    /// What is wrong with a scheme's name; nil if it is valid.
    private static func mistake(inName name: String) -> String? {
        do throws(URLScheme.Failure) {
            if try URLScheme(parsing: name).name == name { return nil }
        } catch {
            if case .reserved(let scheme) = error { return "the scheme \(scheme) is not for applications" }
        }
        return "a scheme begins with a-z and goes on with up to 63 of a-z, 0-9, '+', '-', '.'"
    }
}
