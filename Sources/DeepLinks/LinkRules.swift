public import HTTPMessages

/// What a URL is that some program was started with: something of a sign-in, or a link for an app. A link that may hold
/// a secret of a sign-in is never an app's, whatever is pending; where there is a doubt, it is none.
public struct LinkRules: Sendable {
    /// What a URL is.
    public enum Kind: Sendable, Equatable {
        /// It is for the broker alone.
        case callback
        /// It is for the app of this scheme.
        case deepLink(scheme: String)
        /// Nobody has configured this scheme.
        case foreign(scheme: String)
    }

    /// Those that are configured, be it by a redirect URI or by a table of their own.
    public let schemes: Set<String>
    private let places: Set<String>

    /// - Parameters:
    ///   - schemes: those with a table of their own, in small letters.
    ///   - redirectURIs: of every account. Their schemes are configured too.
    ///   - awaited: addresses where callbacks are awaited beside these.
    public init(
        schemes: some Sequence<String>, redirectURIs: some Sequence<String>, awaited: some Sequence<String> = []
    ) {
        let redirects = redirectURIs.compactMap { try? WebURL(parsing: $0) }
            .filter { !LinkRules.isWeb($0) }
        self.schemes = Set(schemes).union(redirects.map(\.scheme))
        places = Set((redirects + awaited.compactMap { try? WebURL(parsing: $0) }).map(LinkRules.place))
    }

    /// What the URL is.
    public func kind(of url: WebURL) -> Kind {
        if LinkRules.isWeb(url) || LinkRules.carriesSecret(url) { return .callback }
        guard schemes.contains(url.scheme) else { return .foreign(scheme: url.scheme) }
        return places.contains(LinkRules.place(of: url)) ? .callback : .deepLink(scheme: url.scheme)
    }

    /// What may be the state or the key of a flow in the URL.
    public static func keys(in url: WebURL) -> [String] {
        pairs(of: url).filter { ParameterNames.flowKeys.contains($0.name) }.map(\.value)
    }

    /// Web pages have no app: they come by paste, as callbacks.
    private static func isWeb(_ url: WebURL) -> Bool { url.scheme == "http" || url.scheme == "https" }

    // MARK: Places

    /// Where a URL leads, without query, fragment, the letter case of its host, slashes at its end, and what programs on
    /// the way may have written in another form.
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
        // The scheme is a name with a colon, but no parameter.
        var text = String(url.text.drop { $0 != ":" }.dropFirst())
        for _ in 0...mostEscapes {
            let names = ParameterNames(in: text)
            if names.hasToken || names.hasCodeAndFlowKey { return true }
            let next = Escapes.decoded(text)
            guard next != text else { break }
            text = next
        }
        // A code and a flow's key may have been escaped a different number of times.
        let names = Set(pairs(of: url).map(\.name))
        return names.contains("code") && !names.isDisjoint(with: ParameterNames.flowKeys)
    }

    /// Servers escape what they put into a fragment twice, and so may a page that hands a URL on inside another.
    private static let mostEscapes = 3

    /// The parameters of query and fragment. A part that is not a well-formed form is split all the same: an app may read
    /// it more leniently than this program does.
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

/// Percent escapes (RFC 3986 section 2.1), undone where they are whole; anything else stays as it is.
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
