public import HTTPMessages

/// A configuration of lines that stand for themselves: Bazel's `.bazelrc`, the `.terraformrc` of Terraform and OpenTofu,
/// pnpm's `.npmrc`. Ringback is one line for each server, in Terraform's file one line for all.
///
/// A change adds or removes whole lines. Everything else stays as it is.
public struct LineConfiguration: Sendable, Equatable {
    /// A line that says who has the credentials of a place.
    public struct Setting: Sendable, Equatable {
        /// What the line is about; empty for every server.
        public let place: String
        /// The program, or the setting that is used in its place. It is no secret.
        public let helper: String
        /// The line without the space around it.
        public let line: String
    }

    public let format: LineFormat
    public private(set) var bytes: [UInt8]

    /// - Parameter bytes: the file's; nil if there is no file.
    /// - Returns: nil for a text whose lines do not stand for themselves.
    public init?(reading bytes: [UInt8]?, as format: LineFormat) {
        self.format = format
        self.bytes = bytes ?? []
        guard String(validating: self.bytes, as: UTF8.self) != nil, self.bytes.last != UInt8(ascii: "\r"),
            format.canRead(lines.map(\.text))
        else { return nil }
    }

    /// The lines that say who has credentials, in the file's order.
    public var settings: [Setting] { found.map(\.setting) }

    /// Adds a line at the end.
    public mutating func add(_ line: String) {
        let ending = hasCarriageReturns ? "\r\n" : "\n"
        let endsLine = bytes.isEmpty || bytes.last == UInt8(ascii: "\n")
        // The last line has an end afterwards if it had one before, so that removing the line restores the file.
        bytes += Array((endsLine ? line + ending : ending + line).utf8)
    }

    /// Removes a line that says who has credentials; of several that are the same, the last one.
    public mutating func remove(_ line: String) {
        guard var range = found.last(where: { $0.setting.line == line })?.range else { return }
        // Without an end of its own, the line goes with the end of the one before.
        if range.upperBound == bytes.count, bytes.last != UInt8(ascii: "\n"), range.lowerBound > 0 {
            let hasReturn = range.lowerBound > 1 && bytes[range.lowerBound - 2] == UInt8(ascii: "\r")
            range = range.lowerBound - (hasReturn ? 2 : 1)..<range.upperBound
        }
        bytes.removeSubrange(range)
    }

    private var found: [(setting: Setting, range: Range<Int>)] {
        var isComment = false
        return lines.compactMap { line in
            let text = format.withoutComments(line.text, &isComment)
            return format.setting(text).map {
                (Setting(place: $0.place, helper: $0.helper, line: line.text), line.range)
            }
        }
    }

    private var hasCarriageReturns: Bool {
        bytes.firstIndex(of: UInt8(ascii: "\n")).map { $0 > 0 && bytes[$0 - 1] == UInt8(ascii: "\r") } ?? false
    }

    /// Each line without the space around it, and where it is with its end.
    private var lines: [(text: String, range: Range<Int>)] {
        var found: [(String, Range<Int>)] = []
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.count
            let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
            var line = bytes[start..<end].drop(while: isSpace)
            while let last = line.last, isSpace(last) { line.removeLast() }
            found.append((String(decoding: line, as: UTF8.self), start..<end))
            start = end
        }
        return found
    }
}

/// How the lines of a tool's configuration are written.
public enum LineFormat: Sendable, Equatable {
    case bazel, terraform, pnpm

    /// What an origin is called in the file; nil if the tool cannot ask for it, or only together with others.
    public func place(of rule: OriginRule) -> String? {
        let pattern = rule.pattern
        guard pattern.scheme == "https", rule.username == nil else { return nil }
        switch self {
        // Bazel names hosts only, whatever the port. For other paths of the host Bazel would fail.
        case .bazel: return pattern.segments.isEmpty && !pattern.host.contains(":") ? pattern.host : nil
        case .terraform: return pattern.segments.isEmpty ? pattern.place : nil
        case .pnpm:
            let place = ([pattern.place] + pattern.segments).joined(separator: "/")
            return place.utf8.allSatisfy(LineFormat.isPlain) && !pattern.host.contains(":") ? place : nil
        }
    }

    /// The name by which the tool runs Ringback for a place.
    public func program(for place: String) -> String {
        switch self {
        case .bazel: "bazel-credential-ringback"
        case .terraform: "terraform-credentials-ringback"
        case .pnpm: PnpmToken.prefix + place.replacing("/", with: "%2F")
        }
    }

    /// The line that makes the tool run a program for a place; nil for a path that the tool would read as something else.
    public func line(for place: String, running path: String) -> String? {
        guard path.utf8.allSatisfy(LineFormat.isPlain) else { return nil }
        return switch self {
        case .bazel: "common --credential_helper=\(place)=\(path)"
        case .terraform: "credentials_helper \"ringback\" {}"
        case .pnpm: "//\(place)/:tokenHelper=\(path)"
        }
    }

    /// True if one line is for every server.
    public var isForAll: Bool { self == .terraform }

    /// True for a setting that makes the tool run Ringback for its place.
    public func isOurs(_ setting: LineConfiguration.Setting) -> Bool {
        let name = setting.helper.split(separator: "/").last.map(String.init)
        switch self {
        case .terraform: return setting.place.isEmpty && setting.helper == "ringback"
        case .bazel, .pnpm: return !setting.place.isEmpty && name == program(for: setting.place)
        }
    }

    /// Bytes that no format takes for anything else.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "/._+@~%:-".utf8.contains(byte)
        }
    }

    /// False for lines that cannot be read one by one, and for an end that a further line would be part of.
    fileprivate func canRead(_ lines: [String]) -> Bool {
        switch self {
        case .bazel: return lines.last { !$0.isEmpty }?.hasSuffix("\\") != true
        // A further line would be part of the section.
        case .pnpm: return !lines.contains { $0.hasPrefix("[") }
        case .terraform:
            // Terraform also takes JSON.
            guard lines.first(where: { !$0.isEmpty })?.hasPrefix("{") != true else { return false }
            var isComment = false
            for line in lines { _ = withoutComments(line, &isComment) }
            return !isComment && !lines.contains { $0.contains("<<") }
        }
    }

    /// A line without its comments.
    ///
    /// - Parameter isComment: a comment of several lines is open.
    fileprivate func withoutComments(_ line: String, _ isComment: inout Bool) -> String {
        guard self == .terraform else {
            return line.hasPrefix("#") || (self == .pnpm && line.hasPrefix(";")) ? "" : line
        }
        var (text, rest, isQuoted) = ("", Substring(line), false)
        while let character = rest.first {
            if isComment {
                guard rest.hasPrefix("*/") else {
                    rest.removeFirst()
                    continue
                }
                isComment = false
                rest = rest.dropFirst(2)
                continue
            }
            if !isQuoted, character == "#" || rest.hasPrefix("//") { break }
            if !isQuoted, rest.hasPrefix("/*") {
                isComment = true
                rest = rest.dropFirst(2)
                continue
            }
            if isQuoted, character == "\\" {
                text.append(rest.removeFirst())
                if let next = rest.popFirst() { text.append(next) }
                continue
            }
            if character == "\"" { isQuoted.toggle() }
            text.append(rest.removeFirst())
        }
        return text
    }

    /// What a line without comments says about credentials.
    fileprivate func setting(_ line: String) -> (place: String, helper: String)? {
        switch self {
        case .bazel: return LineFormat.bazelHelper(line)
        case .terraform:
            let words = line.split { $0 == " " || $0 == "\t" || $0 == "{" }
            guard let first = words.first, words.count > 1, words[1].hasPrefix("\"") else { return nil }
            let label = String(words[1].split(separator: "\"").first ?? "")
            switch first {
            case "credentials_helper": return ("", label)
            case "credentials": return (label, "credentials")
            default: return nil
            }
        case .pnpm:
            guard line.hasPrefix("//"), let end = line.firstIndex(of: "="),
                let colon = line[..<end].firstRange(of: "/:")
            else { return nil }
            let place = String(line[line.index(line.startIndex, offsetBy: 2)..<colon.lowerBound])
            let name = line[colon.upperBound..<end].trimmed
            switch name {
            case "tokenHelper": return (place, line[line.index(after: end)...].trimmed)
            // What follows is a secret.
            case "_authToken", "_auth", "username", "_password": return (place, name)
            default: return nil
            }
        }
    }

    private static func bazelHelper(_ line: String) -> (place: String, helper: String)? {
        let option = "--credential_helper"
        let words = line.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" }
        guard let index = words.firstIndex(where: { $0 == option || $0.hasPrefix(option + "=") }) else { return nil }
        let value =
            words[index] == option
            ? words.dropFirst(index + 1).first ?? "" : words[index].dropFirst(option.utf8.count + 1)
        guard let sign = value.firstIndex(of: "=") else { return ("", String(value)) }
        return (String(value[..<sign]), String(value[value.index(after: sign)...]))
    }
}

extension Substring {
    fileprivate var trimmed: String {
        let start = drop { $0 == " " || $0 == "\t" }
        guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return String(start[...last])
    }
}
