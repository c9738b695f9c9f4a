/// Lists of scopes (RFC 6749 section 3.3).
public enum ScopeList {
    /// The largest number of scopes that is taken from a document of another party.
    static let most = 200

    /// True for a character of a scope.
    public static func isCharacter(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    /// The scopes of another party's list that are used: each valid one once, in the list's order, ``most`` at most.
    static func taking(_ stated: [String]) -> [String] {
        var scopes: [String] = []
        for scope in stated where scopes.count < most && !scope.isEmpty && scope.utf8.allSatisfy(isCharacter) {
            if !scopes.contains(scope) { scopes.append(scope) }
        }
        return scopes
    }

    /// The scopes of both lists, each once: those of the first, then the others of the second.
    public static func union(_ first: [String], _ second: [String]) -> [String] {
        first + second.filter { !first.contains($0) }
    }
}
