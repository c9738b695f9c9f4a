public import RingbackBase

/// Decides whether a URL belongs to a sign-in or is a link for an app. Attack: an app must not receive a code or token
/// of a sign-in. A URL that may contain one is therefore never an app's link, even if no sign-in is pending; in doubt
/// it is none.
public struct LinkRules: Sendable {
    /// What a URL is.
    public enum Kind: Sendable, Equatable {
        /// Only the broker may have it.
        case callback
        /// A link for the app of this scheme.
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

    /// Classifies the URL.
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

    /// How often percent escapes are decoded. Some servers escape a fragment twice, and so may a page that puts a URL
    /// into another.
    private static let mostEscapes = 3

    /// The parameters of query and fragment. Malformed ones are split too, because an app may parse them more
    /// leniently.
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
