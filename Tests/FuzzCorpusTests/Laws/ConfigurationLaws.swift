import Glibc
import PostgresClient
import RingbackBase
import RingbackClient
import Synchronization

@testable import Configuration

/// TOML as a tree: mistakes have a line and one line of text, and a key's line shows the key.
enum TOMLLaw {
    static func check(_ bytes: [UInt8]) throws {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        switch Result(catching: { () throws(TOMLDocument.SyntaxError) in try TOMLDocument(parsing: bytes) }) {
        case .failure(let error):
            try hold("an error is in the file", (1...(lines.count + 1)).contains(error.line ?? 1))
            let isOneLine = error.message.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
            try hold("an error is one line", isOneLine && !error.message.isEmpty)
        case .success(let document):
            // An escape may write any key; without one, every key stands there as it is.
            try check(document.root, bytes.contains(UInt8(ascii: "\\")) ? nil : lines, count: lines.count)
        }
    }

    private static func check(_ members: [TOMLDocument.Member], _ lines: [ArraySlice<UInt8>]?, count: Int) throws {
        for member in members {
            try hold("a key is in the file", (1...count).contains(member.node.line))
            if let line = lines?[member.node.line - 1] {
                let name = Array(member.key.utf8)
                let shows = line.indices.contains { line[$0...].starts(with: name) } || name.isEmpty
                try hold("a key's line shows it", shows)
            }
            try check(member.node, lines, count: count)
        }
    }

    private static func check(_ node: TOMLDocument.Node, _ lines: [ArraySlice<UInt8>]?, count: Int) throws {
        try hold("a value is in the file", (1...count).contains(node.line))
        switch node.value {
        case .array(let elements): for element in elements { try check(element, lines, count: count) }
        case .table(let members): try check(members, lines, count: count)
        default: break
        }
    }
}

/// Whole configuration files: mistakes have a line and repeat no value, and what is read is read alike twice.
enum ConfigurationLaw {
    private static let marker = "hunter2"

    static func check(_ bytes: [UInt8]) throws {
        let lines = 1 + bytes.count { $0 == 0x0A }
        guard let folder, let file = write(bytes, in: folder) else { throw LawBroken(law: "a file can be written") }
        defer { unsafe unlink(file) }
        var place = ConfigurationPlace(
            userFile: file, isExplicit: true, dropInDirectories: [], home: folder, user: getuid())
        let report = ConfigurationReport(of: place)
        try hold("what is read is read alike twice", ConfigurationReport(of: place) == report)
        try hold("there is a configuration or an error", report.errors.isEmpty == (report.configuration != nil))
        let keysHoldIt = keys(in: bytes).contains { $0.contains(marker) }
        for error in report.errors {
            try hold("an error is of the file", error.file == file)
            try hold("an error is in the file", (1...(lines + 1)).contains(error.line ?? 1))
            try hold("an error is one line", isOneLine(error.description))
            try hold("an error repeats no value", keysHoldIt || !error.message.contains(marker))
        }
        for account in report.configuration?.accounts ?? [] {
            let isName = account.name.utf8.allSatisfy { byte in
                (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || "._-".utf8.contains(byte)
            }
            try hold("an account has an account's name", isName && (1...64).contains(account.name.utf8.count))
            try hold("a redirect URI is one line", account.redirectURIsToRegister.allSatisfy(isOneLine))
        }
        place.userFile = nil
        place.candidate = file
        _ = ConfigurationReport(of: place)
    }

    private static let number = Atomic(0)

    private static func keys(in bytes: [UInt8]) -> [String] {
        func keys(_ members: [TOMLDocument.Member]) -> [String] {
            members.flatMap { member in
                if case .table(let inner) = member.node.value { [member.key] + keys(inner) } else { [member.key] }
            }
        }
        return (try? TOMLDocument(parsing: bytes)).map { keys($0.root) } ?? []
    }

    private static func isOneLine(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// Of this process alone; files of a shared directory would not be trusted.
    private static let folder: String? = {
        var template = Array("/tmp/ringback-fuzz-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { return nil }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    /// Writes a file of its own for each check: checks run at the same time.
    private static func write(_ bytes: [UInt8], in folder: String) -> String? {
        let file = "\(folder)/\(number.add(1, ordering: .relaxed).oldValue).toml"
        let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count ? file : nil
    }
}

/// Redirect URIs of the configuration, and the two questions that the command line asks of a URL: all of them see the
/// same URL as ``WebURL`` does.
enum RedirectLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        switch Result(catching: { () throws(RedirectTarget.Failure) in try RedirectTarget(parsing: text) }) {
        case .success(let target): try check(target, text)
        case .failure(let failure):
            try hold("a mistake is one line", !failure.message.isEmpty && failure.message.isPrintableASCII)
        }
        let url = try? WebURL(parsing: text)
        if let loopback = LoopbackURL(text) { try check(loopback, url) }
        if LoopbackURL.isSafeToOpen(text), let url {
            let isHome = url.scheme == "http" && url.host?.hasSuffix(".localhost") == true
            try hold("a browser is sent to https or home", (url.isSecure || isHome) && url.host?.isEmpty == false)
        }
        guard let base = LoopbackURL("http://127.0.0.1:8400/a?b"), let next = base.following(text) else { return }
        let target = try WebURL(parsing: "http://\(next.authority)\(next.target)")
        try hold("no reference leads away from home", target.isLoopback && target.scheme == "http")
    }

    private static func check(_ target: RedirectTarget, _ text: String) throws {
        let again = try RedirectTarget(parsing: target.template)
        try hold("what is written is read as the same", again == target)
        let uri = try WebURL(parsing: target.uri(port: 8_400))
        try hold("an answer has no fragment", uri.fragment == nil)
        switch target {
        case .loopback(_, let port, let path):
            try hold("the listener is at home", uri.isLoopback && uri.scheme == "http" && uri.port == port ?? 8_400)
            try hold("the path is the text's end", text.hasSuffix(path) && uri.path == path && uri.query == nil)
        case .https: try hold("a page elsewhere is https", uri.scheme == "https" && uri.text == text)
        case .customScheme:
            try hold(
                "an application's scheme is no other", !["http", "https", "javascript", "file"].contains(uri.scheme))
            try hold("it is sent as it is", uri.text == text)
        }
    }

    private static func check(_ loopback: LoopbackURL, _ url: WebURL?) throws {
        guard let url else { throw LawBroken(law: "what is at home is a URL") }
        try hold("what is at home is at home", url.isLoopback && url.scheme == "http")
        try hold("the port is the URL's", Int(loopback.port) == url.port ?? 80)
        let target = url.path + (url.query.map { "?" + $0 } ?? "")
        try hold("the target is the URL's", loopback.target == (target.hasPrefix("/") ? target : "/" + target))
    }
}

/// Patterns of origins and the URLs that tools look up. The first line is the pattern, the rest the URL.
enum OriginLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, rest) = bytes.headLineAndRest
        _ = try? OriginHeader(parsing: line)
        guard let pattern = try? OriginPattern(parsing: line) else { return }
        try hold("what is written is read as the same", try OriginPattern(parsing: pattern.text) == pattern)
        try hold("a pattern is printable", pattern.text.isPrintableASCII)
        let own = OriginPlace(try WebURL(parsing: String(pattern.text.dropLast(2))))
        try hold("a pattern fits its own place", pattern.matches(own))
        guard let url = try? WebURL(parsing: String(decoding: rest, as: UTF8.self)) else { return }
        let place = OriginPlace(url)
        guard pattern.matches(place) else { return }
        try hold("a token goes to the host alone", place.host == pattern.host && place.port == pattern.port)
        try hold("a token goes nowhere in plain text", url.scheme != "http" || url.isLoopback)
        guard !pattern.segments.isEmpty else { return }
        let path = url.path.lowercased()
        for escape in ["%2f", "%5c", "%25", "%00", "/../", "/./"] {
            try hold("an ambiguous path fits no path", !path.contains(escape) && !path.hasSuffix("/.."))
        }
    }
}

enum DatabaseURLLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let url = try? PostgresURL(parsing: String(decoding: bytes, as: UTF8.self)) else { return }
        try hold("there is a user, a database and a host", !url.user.isEmpty && !url.database.isEmpty)
        try hold("there are few hosts", (1...8).contains(url.hosts.count))
        try hold("what leaves the machine is verified", url.sslMode == "verify-full" || url.hosts.allSatisfy(\.isLocal))
        var texts = [url.user, url.database, url.rootCertificates, url.passwordFile].compactMap { $0 }
        for host in url.hosts {
            switch host.place {
            case .socket(let text):
                try hold("a socket has an absolute path", text.hasPrefix("/") && text.utf8.count < 100)
                texts.append(text)
            case .address(let text), .name(let text):
                try hold("a host is printable", text.isPrintableASCII && !text.isEmpty && !text.hasPrefix("/"))
                texts.append(text)
            }
            try hold("hosts can be told apart", !(texts.last ?? "").contains(","))
        }
        try hold("libpq sees the whole text", texts.allSatisfy { !$0.utf8.contains { $0 < 0x20 || $0 == 0x7F } })
        try hold(
            "paths are absolute", [url.rootCertificates, url.passwordFile].allSatisfy { $0?.hasPrefix("/") ?? true })
    }
}
