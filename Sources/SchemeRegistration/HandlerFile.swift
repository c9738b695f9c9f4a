public import HTTPMessages

/// The `.desktop` file that makes this program a scheme's handler. The URL arrives as one argument, verbatim: `%u` stands
/// without quotes, the program's path is absolute, and no shell is anywhere (threat rows SC-03, SC-09).
public struct HandlerFile: Equatable, Sendable {
    /// Whose links it takes.
    public let scheme: URLScheme
    /// The absolute path of `ringback`.
    public let program: String
    /// The account that it was made for; nil if it was made for none in particular.
    public let account: String?
    /// Who had the scheme before, as far as there was somebody.
    public let former: String?

    public init(scheme: URLScheme, program: String, account: String? = nil, former: String? = nil) {
        self.scheme = scheme
        self.program = program
        self.account = account
        self.former = former
    }

    /// The file's name, which is its desktop file id.
    public var name: String { HandlerFile.name(for: scheme) }

    /// The name of a scheme's file.
    public static func name(for scheme: URLScheme) -> String { "ringback-\(scheme).desktop" }

    /// What says that a file is ours, and what may be replaced and removed again.
    private enum Key {
        static let scheme = "X-Ringback-Scheme"
        static let account = "X-Ringback-Account"
        static let former = "X-Ringback-Former-Handler"
    }

    /// The file's text.
    public var text: String {
        var lines = [
            "# Written by `ringback scheme register`; `ringback scheme unregister \(scheme)` takes it away again.",
            "[Desktop Entry]", "Type=Application", "Name=\(name(inMenus: account))",
            "Comment=Finishes a sign-in that a browser hands back",
            "Comment[ru]=Завершает вход, начатый в браузере",
            "Exec=\(HandlerFile.quoted(program)) open %u", "TryExec=\(HandlerFile.escaped(program))",
            "Icon=dialog-password", "Terminal=false", "NoDisplay=true", "StartupNotify=false",
            "MimeType=\(DesktopFile.typePrefix)\(scheme);", "\(Key.scheme)=\(scheme)",
        ]
        if let account { lines.append("\(Key.account)=\(account)") }
        if let former { lines.append("\(Key.former)=\(former)") }
        return lines.joined(separator: "\n") + "\n"
    }

    private func name(inMenus account: String?) -> String { account.map { "Ringback (\($0))" } ?? "Ringback" }

    /// Reads a file; nil if it is not one of ours.
    public init?(reading text: String) {
        let file = DesktopFile(reading: text)
        guard let scheme = file[Key.scheme].flatMap({ try? URLScheme(parsing: $0) }),
            let program = file.arguments?.first.map(HandlerFile.path), program.utf8.first == UInt8(ascii: "/")
        else { return nil }
        self.init(
            scheme: scheme, program: program, account: file[Key.account],
            former: file[Key.former])
    }

    /// True if desktops that do not read the specification's quotes (xdg-utils' own opener) start the program too.
    public static func isPlain(_ path: String) -> Bool { quoted(path) == path }

    /// The program as the specification wants it in `Exec`: quoted where a character is reserved, `\` before those that
    /// mean something inside of quotes, `%` doubled; then escaped like any value.
    static func quoted(_ path: String) -> String {
        let reserved = " \t\n\r\"'\\><~|&;$*?#()`".unicodeScalars
        var inner = String.UnicodeScalarView()
        var isPlain = true
        // Scalar by scalar: see DesktopFile.
        for scalar in path.unicodeScalars {
            if "\"`$\\".unicodeScalars.contains(scalar) { inner.append("\\") }
            if scalar == "%" { inner.append("%") }
            inner.append(scalar)
            if reserved.contains(scalar) { isPlain = false }
        }
        return escaped(isPlain ? String(inner) : "\"\(String(inner))\"")
    }

    /// A value as any key has it.
    private static func escaped(_ text: String) -> String {
        var value = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": value.append(contentsOf: "\\\\".unicodeScalars)
            case "\n": value.append(contentsOf: "\\n".unicodeScalars)
            case "\t": value.append(contentsOf: "\\t".unicodeScalars)
            case "\r": value.append(contentsOf: "\\r".unicodeScalars)
            default: value.append(scalar)
            }
        }
        return String(value)
    }

    /// A path of `Exec`, where `%%` is a percent sign.
    private static func path(_ argument: String) -> String {
        var path = String.UnicodeScalarView()
        var rest = argument.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            path.append(scalar)
            if scalar == "%", rest.first == "%" { rest.removeFirst() }
        }
        return String(path)
    }
}
