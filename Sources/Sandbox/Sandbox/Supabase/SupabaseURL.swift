internal import HTTPMessages

/// A URL as the real server's library parses and writes it: queries come back sorted and re-encoded, an empty authority
/// disappears, a fragment that is already encoded is encoded once more.
struct SupabaseURL {
    var scheme: String
    /// What follows `scheme:` if that is no slash.
    var opaque: String?
    /// `host[:port]`; nil without `//`.
    var authority: String?
    var path = ""
    var query = ""
    var fragment: String?

    /// Nil if the text is no absolute URL, for example if its scheme has an underscore.
    init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }), let colon = text.firstIndex(of: ":") else {
            return nil
        }
        let name = text[..<colon]
        guard let first = name.first, first.isASCII, first.isLetter,
            name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) })
        else { return nil }
        scheme = name.lowercased()
        var rest = text[text.index(after: colon)...]
        if let hash = rest.firstIndex(of: "#") {
            fragment = String(rest[rest.index(after: hash)...])
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        guard rest.hasPrefix("/") else {
            opaque = String(rest)
            return
        }
        if rest.hasPrefix("//") {
            let place = rest.dropFirst(2)
            let end = place.firstIndex(of: "/") ?? place.endIndex
            authority = String(place[..<end])
            rest = place[end...]
            guard hasPlausiblePort else { return nil }
        }
        path = String(rest)
    }

    /// Without port and brackets.
    var host: String {
        guard let authority else { return "" }
        let place = authority.split(separator: "@").last.map(String.init) ?? authority
        if place.hasPrefix("["), let close = place.firstIndex(of: "]") {
            return String(place[place.index(after: place.startIndex)..<close])
        }
        return String(place.prefix { $0 != ":" })
    }

    /// As written; empty without one.
    var port: String {
        guard let authority else { return "" }
        let tail = authority.hasPrefix("[") ? authority.split(separator: "]").last ?? "" : authority[...]
        guard let colon = tail.lastIndex(of: ":") else { return "" }
        return String(tail[tail.index(after: colon)...])
    }

    private var hasPlausiblePort: Bool { port.utf8.allSatisfy { (0x30...0x39).contains($0) } }

    var pairs: [FormEncoding.Pair] { SupabaseURL.pairs(of: query) }

    /// Pairs with a `;` or a broken escape are dropped, the others stay.
    static func pairs(of query: String) -> [FormEncoding.Pair] {
        query.split(separator: "&").filter { !$0.contains(";") }.compactMap { piece in
            (try? FormEncoding.parse(piece))?.first
        }
    }

    /// Replaces values, then writes the whole query again.
    mutating func merge(_ changes: [(String, String)]) {
        let names = Set(changes.map(\.0))
        let kept = pairs.filter { !names.contains($0.name) }.map { ($0.name, $0.value) }
        query = SupabaseURL.encode(kept + changes)
    }

    /// Sorted by name; values of one name in their order.
    static func encode(_ pairs: [(String, String)]) -> String {
        let sorted = pairs.enumerated().sorted { left, right in
            let (a, b) = (Array(left.element.0.utf8), Array(right.element.0.utf8))
            return a == b ? left.offset < right.offset : a.lexicographicallyPrecedes(b)
        }
        return FormEncoding.encode(sorted.map(\.element), spaceAsPlus: true)
    }

    /// Sets a fragment that is a query itself; writing the URL escapes its escapes.
    mutating func setFragment(_ pairs: [(String, String)]) {
        fragment = SupabaseURL.encode(pairs).split(separator: "%", omittingEmptySubsequences: false)
            .joined(separator: "%25")
    }

    var text: String {
        var text = scheme + ":"
        if let opaque {
            text += opaque
        } else {
            if let authority, !(authority.isEmpty && path.isEmpty) { text += "//" + authority }
            text += path
        }
        if !query.isEmpty { text += "?" + query }
        if let fragment { text += "#" + fragment }
        return text
    }
}
