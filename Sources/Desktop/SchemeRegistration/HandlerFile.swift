public import HTTPMessages

/// The `.desktop` file that makes this program a scheme's handler. The URL is passed as one argument, unchanged: `%u`
/// is not quoted, the program's path is absolute, and no shell is involved.
public struct HandlerFile: Equatable, Sendable {
    /// The scheme whose links it handles.
    public let scheme: URLScheme
    /// The absolute path of `ringback`.
    public let program: String
    /// The account that it was registered for; nil for none in particular.
    public let account: String?
    /// The handler before the registration, if there was one.
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

    /// Keys that mark a file as ours, so that it may be replaced and removed.
    private enum Key {
        static let scheme = "X-Ringback-Scheme"
        static let account = "X-Ringback-Account"
        static let former = "X-Ringback-Former-Handler"
    }

    /// The file's text.
    public var text: String {
        var lines = [
            "# Written by Ringback's command line, which also removes it (scheme unregister \(scheme)).",
            "[Desktop Entry]", "Type=Application", "Name=\(name(inMenus: account))",
            "Comment=Completes a sign-in that was started in the browser",
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

    /// Reads a file; nil if it was not written by us.
    public init?(reading text: String) {
        let file = DesktopFile(reading: text)
        guard let scheme = file[Key.scheme].flatMap({ try? URLScheme(parsing: $0) }),
            let program = file.arguments?.first.map(HandlerFile.path), program.utf8.first == UInt8(ascii: "/")
        else { return nil }
        self.init(
            scheme: scheme, program: program, account: file[Key.account],
            former: file[Key.former])
    }

    /// True if the path needs no quotes. Some openers, for example that of xdg-utils, do not support the
    /// specification's quotes.
    public static func isPlain(_ path: String) -> Bool { quoted(path) == path }

    /// The program's path in the syntax of `Exec`: in quotes if it contains a reserved character, with `\` before
    /// characters that are special inside quotes, and `%` doubled; then escaped like every value.
    static func quoted(_ path: String) -> String {
        let reserved = " \t\n\r\"'\\><~|&;$*?#()`".unicodeScalars
        var inner = String.UnicodeScalarView()
        var isPlain = true
        // By Unicode scalars, see DesktopFile.
        for scalar in path.unicodeScalars {
            if "\"`$\\".unicodeScalars.contains(scalar) { inner.append("\\") }
            if scalar == "%" { inner.append("%") }
            inner.append(scalar)
            if reserved.contains(scalar) { isPlain = false }
        }
        return escaped(isPlain ? String(inner) : "\"\(String(inner))\"")
    }

    /// The text with the escapes of a value.
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

    /// A word of `Exec` as a path: `%%` is a percent sign.
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
