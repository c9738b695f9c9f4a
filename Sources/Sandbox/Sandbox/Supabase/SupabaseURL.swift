internal import Cryptography
internal import RingbackBase
internal import Synchronization

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

    var host: String {
        guard let authority else { return "" }
        let place = authority.split(separator: "@").last.map(String.init) ?? authority
        if place.hasPrefix("["), let close = place.firstIndex(of: "]") {
            return String(place[place.index(after: place.startIndex)..<close])
        }
        return String(place.prefix { $0 != ":" })
    }

    var port: String {
        guard let authority else { return "" }
        let tail = authority.hasPrefix("[") ? authority.split(separator: "]").last ?? "" : authority[...]
        guard let colon = tail.lastIndex(of: ":") else { return "" }
        return String(tail[tail.index(after: colon)...])
    }

    private var hasPlausiblePort: Bool { port.utf8.allSatisfy(\.isDigit) }
    var pairs: [FormEncoding.Pair] { SupabaseURL.pairs(of: query) }

    /// Pairs with a `;` or a broken escape are dropped, the others stay.
    static func pairs(of query: String) -> [FormEncoding.Pair] {
        query.split(separator: "&").filter { !$0.contains(";") }.compactMap { piece in
            (try? FormEncoding.parse(piece))?.first
        }
    }

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

/// The redirects with which a sign-in ends at the app.
enum SupabaseRedirects {
    /// A code to be exchanged. A `code` that the URL already has is replaced.
    static func with(code: String, _ target: String) -> String {
        guard var url = SupabaseURL(target) else { return target }
        url.merge([("code", code)])
        return url.text
    }

    /// Tokens in the fragment, appended to the text as it is: two fragments if it had one.
    static func with(tokens: JSONObject, extra: [(String, String)], _ target: String) -> String {
        var pairs = extra + [("sb", "")]
        for name in ["access_token", "refresh_token", "token_type"] {
            pairs.append((name, tokens[name]?.string ?? ""))
        }
        for name in ["expires_at", "expires_in"] { pairs.append((name, String(tokens[name]?.integer ?? 0))) }
        return target + "#" + SupabaseURL.encode(pairs)
    }

    /// An error in the fragment, encoded twice there, and in the query.
    static func refusal(_ refusal: SupabaseError, at target: String, inQuery: Bool, isCallback: Bool) -> String {
        var pairs: [(String, String)] = []
        if let error = refusal.redirectError(isCallback: isCallback) { pairs.append(("error", error)) }
        pairs += [("error_code", refusal.code), ("error_description", refusal.message)]
        return errors(pairs, at: target, inQuery: inQuery)
    }

    static func errors(_ pairs: [(String, String)], at target: String, inQuery: Bool) -> String {
        guard var url = SupabaseURL(target) else { return target }
        if inQuery { url.merge(pairs) }
        url.setFragment(pairs + [("sb", "")])
        return url.text
    }

    /// An error before it is known which app began the sign-in. The app is not told.
    static func siteError(_ code: String, _ message: String, at siteURL: String) -> String {
        guard var url = SupabaseURL(siteURL) else { return siteURL }
        url.merge([("error", "invalid_request"), ("error_code", code), ("error_description", message)])
        return url.text
    }
}

/// Where a sign-in may end. A URL that is not allowed causes no error: the next candidate is used, and in the end the
/// project's own site.
struct SupabaseRedirectRules {
    let siteURL: String
    /// Globs for the URL up to its fragment, the query included.
    let allowed: [String]

    func accepts(_ text: String) -> Bool {
        guard !text.isEmpty, let site = SupabaseURL(siteURL), let url = SupabaseURL(text) else { return false }
        let host = url.host
        if !host.isEmpty, host == site.host, url.scheme == site.scheme {
            if url.port == site.port || SupabaseRedirectRules.isLocalName(host) { return true }
        }
        // A host that is one number is an IPv4 address in decimal.
        if !host.isEmpty, host.utf8.allSatisfy(\.isDigit) { return false }
        if let isLoopback = SupabaseRedirectRules.isLoopbackAddress(host) { return isLoopback }
        if ["http", "https"].contains(url.scheme), !SupabaseRedirectRules.isPlainName(host) { return false }
        let upToFragment = String(text.prefix { $0 != "#" })
        return allowed.contains { SupabaseGlob.matches($0, upToFragment) }
    }

    private static func isLocalName(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "::1", "0.0.0.0", "::"].contains(host) || host.hasSuffix(".localhost")
    }

    private static func isLoopbackAddress(_ host: String) -> Bool? {
        if host.contains(":") { return host == "::1" || host == "0:0:0:0:0:0:0:1" }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts.allSatisfy({ (0...255).contains(Int($0) ?? -1) && $0.utf8.allSatisfy(\.isDigit) })
        else { return nil }
        return parts[0] == "127"
    }

    private static func isPlainName(_ host: String) -> Bool {
        guard host.utf8.first?.isLetterOrDigit == true, host.utf8.last?.isLetterOrDigit == true else { return false }
        return host.utf8.allSatisfy { $0.isLetterOrDigit || ".-".utf8.contains($0) }
    }
}

/// The globs of an allow list: `*` matches no `.` and no `/`, `**` matches everything, `?` is one character that is
/// neither, `[a-z]`, `[!a]`, `{a,b}`, and `\` takes a special character literally.
enum SupabaseGlob {
    static func matches(_ pattern: String, _ text: String) -> Bool {
        expand(Array(pattern)).contains { match($0[...], Array(text)[...]) }
    }

    private static func expand(_ pattern: [Character]) -> [[Character]] {
        guard let open = firstIndex(of: "{", in: pattern, from: 0),
            let close = firstIndex(of: "}", in: pattern, from: open)
        else { return [pattern] }
        let choices = pattern[(open + 1)..<close].split(separator: ",", omittingEmptySubsequences: false)
        return choices.flatMap { expand(Array(pattern[..<open]) + $0 + Array(pattern[(close + 1)...])) }
    }

    private static func firstIndex(of wanted: Character, in pattern: [Character], from start: Int) -> Int? {
        var index = start
        while index < pattern.count {
            if pattern[index] == wanted { return index }
            index += pattern[index] == "\\" ? 2 : 1
        }
        return nil
    }

    private static func match(_ pattern: ArraySlice<Character>, _ text: ArraySlice<Character>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch first {
        case "*":
            let crosses = rest.first == "*"
            let after = crosses ? rest.dropFirst() : rest
            var remaining = text
            while true {
                if match(after, remaining) { return true }
                guard let next = remaining.first, crosses || !isSeparator(next) else { return false }
                remaining = remaining.dropFirst()
            }
        case "?":
            guard let next = text.first, !isSeparator(next) else { return false }
            return match(rest, text.dropFirst())
        case "[":
            guard let close = rest.firstIndex(of: "]"), let next = text.first else { return false }
            return isIn(rest[..<close], next) && match(rest[(close + 1)...], text.dropFirst())
        case "\\":
            guard let literal = rest.first else { return text.isEmpty }
            return text.first == literal && match(rest.dropFirst(), text.dropFirst())
        default: return text.first == first && match(rest, text.dropFirst())
        }
    }

    private static func isIn(_ set: ArraySlice<Character>, _ character: Character) -> Bool {
        let isNegated = set.first == "!"
        let members = Array(isNegated ? set.dropFirst() : set)
        if members.count == 3, members[1] == "-" {
            return (members[0] <= character && character <= members[2]) != isNegated
        }
        return members.contains(character) != isNegated
    }

    private static func isSeparator(_ character: Character) -> Bool { character == "." || character == "/" }
}

enum SupabaseText {
    /// RFC 9562 section 5.4.
    static func uuid() -> String {
        var bytes = RandomToken.bytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return uuid(bytes)
    }

    static func uuid(_ bytes: [UInt8]) -> String {
        let hex = Array(Digest.hex(bytes))
        return [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]].map { String($0) }
            .joined(separator: "-")
    }

    static func isUUID(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.map(\.utf8.count) == [8, 4, 4, 4, 12] && parts.joined().allSatisfy { $0.isASCII && $0.isHexDigit }
    }

    static func bytes(ofUUID text: String) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// Random letters of an alphabet, all equally likely.
    static func random(_ count: Int, from alphabet: String) -> String {
        let letters = Array(alphabet)
        let fair = 256 - 256 % letters.count
        var text = ""
        while text.count < count {
            let byte = Int(RandomToken.bytes(1)[0])
            if byte < fair { text.append(letters[byte % letters.count]) }
        }
        return text
    }

    /// A number as a user types it, without `+` and spaces; nil if it is not E.164 then.
    static func phone(_ text: String) -> String? {
        var digits = text.filter { $0 != " " }
        if digits.hasPrefix("+") { digits.removeFirst() }
        guard (2...15).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit),
            !digits.hasPrefix("0")
        else { return nil }
        return digits
    }

    /// Lower-cased; nil if it is no address.
    static func email(_ text: String) -> String? {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"(),:;<>[\\]".utf8.contains($0) }
        guard text.utf8.count <= 255, isPlain, parts.count == 2, let local = parts.first, let domain = parts.last,
            !local.isEmpty, domain.split(separator: ".", omittingEmptySubsequences: false).allSatisfy({ !$0.isEmpty })
        else { return nil }
        return text.lowercased()
    }
}

/// The same for requests: what cannot be read refuses them.
extension SupabaseText {
    static func address(_ text: String, status: Int = 400) throws -> String {
        try unwrap(email(text), "Unable to validate email address: invalid format", status: status)
    }

    static func number(_ text: String) throws -> String {
        try unwrap(phone(text), "Invalid phone number format (E.164 required)")
    }

    /// `sms` unless the request names another channel.
    static func channel(_ name: String) throws -> String {
        try require(
            ["", "sms", "whatsapp"].contains(name),
            "Invalid channel, supported values are 'sms' or 'whatsapp'. 'whatsapp' is only supported if Twilio or"
                + " Twilio Verify is used as the provider.")
        return name.isEmpty ? "sms" : name
    }
}

/// A point in time as Go writes it (RFC 3339, UTC): up to nine fractional digits, without zeros at the end.
struct SupabaseInstant: Sendable, JSONConvertible {
    let seconds: Int
    let nanoseconds: Int
    private static let ticks = Atomic(0)

    /// A time that keeps the order of events: within one second, each is later than the last.
    static func next(_ now: Int) -> SupabaseInstant {
        let tick = ticks.add(1, ordering: .relaxed).newValue
        return SupabaseInstant(seconds: now, nanoseconds: tick * 1_013_370 % 1_000_000_000)
    }

    var jsonValue: JSON { .string(text) }

    var text: String {
        let digits = String(nanoseconds)
        var fraction = (String(repeating: "0", count: 9 - digits.utf8.count) + digits)[...]
        while fraction.hasSuffix("0") { fraction.removeLast() }
        return Timestamp.text(of: seconds).dropLast() + (fraction.isEmpty ? "Z" : ".\(fraction)Z")
    }
}
