public import RingbackBase

/// The `.desktop` file that makes this program a scheme's handler. The URL is passed as one argument, unchanged: `%u`
/// is not quoted, the program's path is absolute, and no shell is involved.
public struct HandlerFile: Equatable, Sendable {
    public let scheme: URLScheme
    /// The absolute path of `ringback`.
    public let program: String
    /// The account that it was registered for; nil for none in particular.
    public let account: String?
    /// The handler before the registration, if there was one.
    public let former: String?
    /// What the account is called in the browser's prompt; nil for its name. Not read back: each registration writes it
    /// anew.
    public var label: String?

    public init(scheme: URLScheme, program: String, account: String? = nil, former: String? = nil) {
        self.scheme = scheme
        self.program = program
        self.account = account
        self.former = former
    }

    /// The file's name, which is its desktop file id.
    public var name: String { HandlerFile.name(for: scheme) }
    public static func name(for scheme: URLScheme) -> String { "ringback-\(scheme).desktop" }

    /// Keys that mark a file as ours, so that it may be replaced and removed.
    private enum Key {
        static let scheme = "X-Ringback-Scheme"
        static let account = "X-Ringback-Account"
        static let former = "X-Ringback-Former-Handler"
    }

    public var text: String {
        let shown = label.map(HandlerFile.escaped) ?? account
        var lines = [
            "# Written by Ringback's command line, which also removes it (scheme unregister \(scheme)).",
            "[Desktop Entry]", "Type=Application", "Name=\(shown.map { "Ringback (\($0))" } ?? "Ringback")",
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

    /// Reads a file; nil if it was not written by us.
    public init?(reading text: String) {
        let file = DesktopFile(reading: text)
        guard let scheme = file[Key.scheme].flatMap({ try? URLScheme(parsing: $0) }),
            let program = file.arguments?.first.map(HandlerFile.path), program.utf8.first == UInt8(ascii: "/")
        else { return nil }
        self.init(scheme: scheme, program: program, account: file[Key.account], former: file[Key.former])
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

    private static func escaped(_ text: String) -> String {
        let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"]
        return text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
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

/// Finds the handler of a scheme in the files, in the order of the specification, as `xdg-mime query default` does. A
/// desktop may behave differently; only opening a link shows that.
public struct HandlerSearch: Sendable {
    /// A handler whose file exists.
    public struct Handler: Equatable, Sendable {
        /// The desktop file id.
        public let name: String
        public let path: String
        /// The program that it starts; nil if its `Exec` cannot be parsed.
        public let program: String?
        /// Its content if it is a handler file of Ringback.
        public let ours: HandlerFile?
    }

    private let places: DesktopPlaces
    private let read: @Sendable (String) -> String?

    /// - Parameter read: returns a file's text; nil if it cannot be read.
    public init(places: DesktopPlaces, read: @escaping @Sendable (String) -> String?) {
        self.places = places
        self.read = read
    }

    public func handler(of scheme: URLScheme) -> Handler? {
        func first(_ names: [String]?) -> Handler? { names?.lazy.compactMap { handler(named: $0) }.first }
        for list in places.allLists {
            if let found = first(read(list).flatMap { MimeAppsList($0).defaults(for: scheme) }) { return found }
        }
        // Without a default, the first handler in the desktop database that declares the scheme.
        for cache in places.allApplications.map({ "\($0)/mimeinfo.cache" }) {
            if let found = first(read(cache).flatMap { HandlerSearch.cached(scheme, in: $0) }) { return found }
        }
        return nil
    }

    /// The handler with a desktop file id. In an id, a directory's `/` is written as `-`.
    public func handler(named name: String) -> Handler? {
        guard !name.contains("/"), name.hasSuffix(".desktop") else { return nil }
        var spellings = [name]
        for (index, character) in zip(name.indices, name) where character == "-" {
            spellings.append(name[..<index].replacing("-", with: "/") + "/" + name[name.index(after: index)...])
        }
        for directory in places.allApplications {
            for spelling in spellings {
                guard let text = read("\(directory)/\(spelling)") else { continue }
                let file = DesktopFile(reading: text)
                return Handler(
                    name: name, path: "\(directory)/\(spelling)", program: file.arguments?.first,
                    ours: HandlerFile(reading: text))
            }
        }
        return nil
    }

    private static func cached(_ scheme: URLScheme, in text: String) -> [String]? {
        let beginning = "\(DesktopFile.typePrefix)\(scheme)="
        let line = DesktopFile.lines(of: text).first { $0.hasPrefix(beginning) }
        return line?.dropFirst(beginning.count).split(separator: ";").map(String.init)
    }
}

/// A parsed `.desktop` file (Desktop Entry Specification 1.5): the keys of its first group, and the program that its
/// `Exec` starts. The parser is lenient, as desktops are.
public struct DesktopFile: Sendable {
    private let values: [String: String]

    /// Reads the group `[Desktop Entry]`. Without it there are no keys.
    public init(reading text: String) {
        var values: [String: String] = [:]
        var isEntry = false
        for line in DesktopFile.lines(of: text) {
            if line.hasPrefix("[") {
                isEntry = DesktopFile.trimmed(line) == "[Desktop Entry]"
            } else if isEntry, !line.hasPrefix("#"), let equals = line.firstIndex(of: "=") {
                let key = String(DesktopFile.trimmed(line[..<equals]))
                if values[key] == nil { values[key] = String(DesktopFile.trimmed(line[line.index(after: equals)...])) }
            }
        }
        self.values = values
    }

    public subscript(key: String) -> String? { values[key] }

    /// The words of `Exec`, with field codes unchanged; nil if it is missing or a quote is not closed.
    public var arguments: [String]? { values["Exec"].flatMap { DesktopFile.arguments(of: DesktopFile.unescaped($0)) } }

    /// The schemes that the file declares to handle.
    public var schemes: [String] {
        (values["MimeType"] ?? "").split(separator: ";").compactMap { type in
            type.hasPrefix(DesktopFile.typePrefix) ? String(type.dropFirst(DesktopFile.typePrefix.count)) : nil
        }
    }

    /// The prefix of the MIME type for a scheme's links.
    static let typePrefix = "x-scheme-handler/"

    /// Splits bytes, because Swift treats a carriage return and a line feed as one character.
    static func lines(of text: String) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { Substring($0) }
    }

    // The functions below go through Unicode scalars: Swift treats a quote and a combining accent as one character, but
    // for a desktop it is a quote.

    /// Replaces the escapes `\s`, `\n`, `\t`, `\r` and `\\`, which are allowed in every value.
    private static func unescaped(_ value: String) -> String.UnicodeScalarView {
        let escapes: [Unicode.Scalar: Unicode.Scalar] = ["s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"]
        var text = String.UnicodeScalarView()
        var rest = value.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard scalar == "\\", let next = rest.popFirst() else {
                text.append(scalar)
                continue
            }
            text.append(contentsOf: escapes[next].map { [$0] } ?? [scalar, next])
        }
        return text
    }

    /// Splits at spaces. Inside double quotes a backslash makes the next character literal.
    private static func arguments(of text: String.UnicodeScalarView) -> [String]? {
        var words: [String] = []
        var word: String.UnicodeScalarView?
        var isQuoted = false
        var rest = text[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\"":
                isQuoted.toggle()
                word = word ?? String.UnicodeScalarView()
            case "\\" where isQuoted:
                guard let next = rest.popFirst() else { return nil }
                word = (word ?? String.UnicodeScalarView()) + [next]
            case " " where !isQuoted, "\t" where !isQuoted:
                if let whole = word { words.append(String(whole)) }
                word = nil
            default: word = (word ?? String.UnicodeScalarView()) + [scalar]
            }
        }
        guard !isQuoted else { return nil }
        if let word { words.append(String(word)) }
        return words.isEmpty ? nil : words
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" || scalar == "\r" }
        let start = text.unicodeScalars.drop(while: isSpace)
        guard let last = start.lastIndex(where: { !isSpace($0) }) else { return "" }
        return Substring(start[...last])
    }
}
