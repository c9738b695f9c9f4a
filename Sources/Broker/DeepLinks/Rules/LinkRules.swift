public import RingbackBase

/// Decides whether a URL belongs to a sign-in or is a link for an app. Attack: an app must not receive a code or token.
/// A URL that may contain one is never an app's link, even if no sign-in is pending; in doubt it is none.
public struct LinkRules: Sendable {
    public enum Kind: Sendable, Equatable {
        /// Only the broker may have it.
        case callback
        case deepLink(scheme: String)
        /// This scheme is not configured.
        case foreign(scheme: String)
    }

    /// The configured schemes: those of redirect URIs and those with a table of their own.
    public let schemes: Set<String>
    private let places: Set<String>

    /// - Parameters:
    ///   - schemes: the schemes with a table of their own, in lower case.
    ///   - redirectURIs: those of all accounts. Their schemes are configured too.
    ///   - awaited: further addresses at which callbacks are expected.
    public init(
        schemes: some Sequence<String>, redirectURIs: some Sequence<String>, awaited: some Sequence<String> = []
    ) {
        let redirects = redirectURIs.compactMap { try? WebURL(parsing: $0) }
            .filter { !LinkRules.isWeb($0) }
        self.schemes = Set(schemes).union(redirects.map(\.scheme))
        places = Set((redirects + awaited.compactMap { try? WebURL(parsing: $0) }).map(LinkRules.place))
    }

    public func kind(of url: WebURL) -> Kind {
        if LinkRules.isWeb(url) || LinkRules.carriesSecret(url) { return .callback }
        guard schemes.contains(url.scheme) else { return .foreign(scheme: url.scheme) }
        return places.contains(LinkRules.place(of: url)) ? .callback : .deepLink(scheme: url.scheme)
    }

    /// The values in the URL that may be a flow's state or key.
    public static func keys(in url: WebURL) -> [String] {
        pairs(of: url).filter { ParameterNames.flowKeys.contains($0.name) }.map(\.value)
    }

    /// No app listens to http and https: such URLs are pasted callbacks.
    private static func isWeb(_ url: WebURL) -> Bool { url.scheme == "http" || url.scheme == "https" }

    // MARK: Places

    /// The address of a URL for comparison: percent escapes decoded, host in lower case, dot segments resolved, without
    /// empty segments, query and fragment. Programs that pass a URL on may change these.
    private static func place(of url: WebURL) -> String {
        let host = Escapes.decoded(url.host ?? "").lowercased()
        let path = Escapes.decoded(url.path).split(separator: "/").map(String.init)
        var segments: [String] = host.isEmpty ? [] : [host]
        for segment in path where segment != "." {
            if segment == ".." { _ = segments.popLast() } else { segments.append(segment) }
        }
        return "\(url.scheme):\(url.port.map(String.init) ?? "")/\(segments.joined(separator: "/"))"
    }

    // MARK: Secrets

    private static func carriesSecret(_ url: WebURL) -> Bool {
        // The scheme ends with a colon, but it is not the name of a parameter.
        var text = String(url.text.drop { $0 != ":" }.dropFirst())
        for _ in 0...mostEscapes {
            let names = ParameterNames(in: text)
            if names.hasToken || names.hasCodeAndFlowKey { return true }
            let next = Escapes.decoded(text)
            guard next != text else { break }
            text = next
        }
        // The code and the flow's key may have been escaped a different number of times.
        let names = Set(pairs(of: url).map(\.name))
        return names.contains("code") && !names.isDisjoint(with: ParameterNames.flowKeys)
    }

    /// Some servers escape a fragment twice, and so may a page that puts a URL into another.
    private static let mostEscapes = 3

    /// The parameters, also malformed ones: an app may parse them more leniently.
    private static func pairs(of url: WebURL) -> [FormEncoding.Pair] {
        [url.query, url.fragment].flatMap { part in
            (part ?? "").utf8.split { "&;".utf8.contains($0) }.map { piece in
                let equals = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
                let value = String(decoding: piece[equals...].dropFirst(), as: UTF8.self)
                return FormEncoding.Pair(
                    ParameterNames.letters(of: Escapes.decoded(String(decoding: piece[..<equals], as: UTF8.self)).utf8),
                    Escapes.decoded(value.replacing("+", with: " ")))
            }
        }
    }
}

/// Decodes percent escapes (RFC 3986 section 2.1). Malformed escapes stay unchanged.
enum Escapes {
    static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = value(bytes[index + 1]),
                let low = value(bytes[index + 2])
            {
                output.append(high << 4 | low)
                index += 3
            } else {
                output.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func value(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Finds the names of parameters anywhere in a URL: after `#/` and `#!`, with brackets, in lists, in JSON, in camel
/// case. Apps parse URLs in all these ways, even where no authorization server writes them so.
struct ParameterNames {
    private(set) var hasToken = false
    var hasCodeAndFlowKey: Bool { hasCode && hasFlowKey }

    private var hasCode = false
    private var hasFlowKey = false

    /// The parameters that identify the flow of a code: `state` (RFC 6749 section 4.1.2), and `flow` for Supabase.
    static let flowKeys: Set<String> = ["state", "flow"]

    /// The words in the names of tokens. A link for an app must not contain such a name.
    private static let tokens = [
        ["access", "token"], ["refresh", "token"], ["id", "token"], ["provider", "token"], ["token", "hash"],
    ]
    private static let joinedTokens = Set(tokens.map { $0.joined() } + ["providerrefreshtoken"])
    /// The characters that separate parameters or path segments.
    private static let separators = Set("?#&;,/!".utf8)
    /// After one of these characters a name is a parameter even without a value.
    private static let starts = Set("?#&;!".utf8)

    init(in text: String) {
        let bytes = Array(text.utf8)
        var start = 0
        while start <= bytes.count {
            let end = bytes[start...].firstIndex { ParameterNames.separators.contains($0) } ?? bytes.count
            let before = start > 0 ? bytes[start - 1] : nil
            // `/access_token/VALUE` has a value, `/docs/access_token` has none.
            let leadsOn =
                end + 1 < bytes.count && bytes[end] == UInt8(ascii: "/")
                && !ParameterNames.separators.contains(bytes[end + 1])
            read(bytes[start..<end], isName: leadsOn || before.map { ParameterNames.starts.contains($0) } ?? false)
            start = end + 1
        }
    }

    /// - Parameter isName: true if the piece counts as a name even without `=` or `:`.
    private mutating func read(_ piece: ArraySlice<UInt8>, isName: Bool) {
        let parts = piece.split(omittingEmptySubsequences: false) { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") }
        for name in parts.count == 1 && isName ? parts[...] : parts.dropLast() {
            let letters = ParameterNames.letters(of: name)
            if letters == "code" { hasCode = true }
            if ParameterNames.flowKeys.contains(letters) { hasFlowKey = true }
            if ParameterNames.isToken(name, letters: letters) { hasToken = true }
        }
    }

    /// True for `access_token`, `accessToken`, `access_token[]`, `user[access-token]`, `ACCESSTOKEN`; false for
    /// `android_token`.
    private static func isToken(_ name: ArraySlice<UInt8>, letters: String) -> Bool {
        if joinedTokens.contains(letters) { return true }
        return [true, false].contains { byCase in
            let words = words(of: name, byCase: byCase)
            return words.contains { joinedTokens.contains($0) }
                || tokens.contains { token in
                    zip(words, words.dropFirst()).contains {
                        $0 == token[0] && ($1 == token[1] || $1 == token[1] + "s")
                    }
                }
        }
    }

    static func letters(of name: some Sequence<UInt8>) -> String {
        String(decoding: name.filter(isAlphanumeric).map(lowercased), as: UTF8.self)
    }

    /// - Parameter byCase: true if a capital letter after another character begins a word too.
    private static func words(of name: ArraySlice<UInt8>, byCase: Bool) -> [String] {
        var words: [[UInt8]] = [[]]
        var last: UInt8 = 0
        for byte in name {
            if !isAlphanumeric(byte) || byCase && isCapital(byte) && !isCapital(last) { words.append([]) }
            if isAlphanumeric(byte) { words[words.count - 1].append(lowercased(byte)) }
            last = byte
        }
        return words.filter { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func isCapital(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        isCapital(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 { isCapital(byte) ? byte | 0x20 : byte }
}
