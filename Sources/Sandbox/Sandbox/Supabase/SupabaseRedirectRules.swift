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
        if !host.isEmpty, host.utf8.allSatisfy(SupabaseRedirectRules.isDigit) { return false }
        if let isLoopback = SupabaseRedirectRules.isLoopbackAddress(host) { return isLoopback }
        if ["http", "https"].contains(url.scheme), !SupabaseRedirectRules.isPlainName(host) { return false }
        let upToFragment = String(text.prefix { $0 != "#" })
        return allowed.contains { SupabaseGlob.matches($0, upToFragment) }
    }

    private static func isLocalName(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "::1", "0.0.0.0", "::"].contains(host) || host.hasSuffix(".localhost")
    }

    /// Nil if the host is no IP address.
    private static func isLoopbackAddress(_ host: String) -> Bool? {
        if host.contains(":") { return host == "::1" || host == "0:0:0:0:0:0:0:1" }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4, parts.allSatisfy({ (0...255).contains(Int($0) ?? -1) && $0.utf8.allSatisfy(isDigit) })
        else { return nil }
        return parts[0] == "127"
    }

    private static func isPlainName(_ host: String) -> Bool {
        let isWord = { (byte: UInt8) in isDigit(byte) || (0x61...0x7A).contains(byte | 0x20) }
        guard let first = host.utf8.first, let last = host.utf8.last, isWord(first), isWord(last) else { return false }
        return host.utf8.allSatisfy { isWord($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-") }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}

/// The globs of an allow list: `*` matches no `.` and no `/`, `**` matches everything, `?` is one character that is
/// neither, `[a-z]`, `[!a]`, `{a,b}`, and `\` takes a special character literally.
enum SupabaseGlob {
    static func matches(_ pattern: String, _ text: String) -> Bool {
        expand(Array(pattern)).contains { match($0[...], Array(text)[...]) }
    }

    /// Expands the alternatives.
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
            if pattern[index] == "\\" {
                index += 1
            } else if pattern[index] == wanted {
                return index
            }
            index += 1
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
