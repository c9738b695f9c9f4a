/// Finds the names of parameters anywhere in a URL: in query, fragment and path, after `#/` and `#!`, with brackets, in
/// lists, in JSON, in camel case. Apps and their libraries parse URLs in all these ways, so a secret's name counts in
/// each of them, even where no authorization server writes it so.
struct ParameterNames {
    /// True if a token's name has a value.
    private(set) var hasToken = false
    /// True if there is a code, and also a state or a flow's key.
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

    /// - Parameter text: a URL without its scheme.
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

    /// The ASCII letters and digits of a name, in lower case.
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
