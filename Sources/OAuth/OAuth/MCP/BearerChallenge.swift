public import RingbackBase

/// The challenge for a bearer token in a response (RFC 6750 section 3, RFC 9110 section 11.6.1), or for a token that is
/// bound to a key (RFC 9449 section 7.1).
public struct BearerChallenge: Sendable, Equatable {
    /// Where the protected-resource metadata are (RFC 9728 section 5.1), as stated.
    public let resourceMetadata: String?
    /// In the order of the challenge, without repetitions; empty if it names none.
    public let scopes: [String]
    /// `invalid_token`, `insufficient_scope`, ...
    public let error: String?

    /// The first challenge of the scheme, `bearer` or `dpop`; nil if there is none. A field that breaks the grammar, or
    /// states a parameter twice, is no challenge.
    public init?(in fields: HTTPFields, of scheme: String = "bearer") {
        for value in fields[all: "WWW-Authenticate"] {
            guard let parameters = ChallengeReader.parameters(of: scheme, in: value) else { continue }
            resourceMetadata = parameters["resource_metadata"]
            error = parameters["error"].map(CheckedText.code)
            scopes = ScopeList.taking((parameters["scope"] ?? "").split(separator: " ").map(String.init))
            return
        }
        return nil
    }

    /// True if the token lacks scopes (RFC 6750 section 3.1).
    public var demandsScopes: Bool { error == "insufficient_scope" }
}

/// Reads the grammar of a field with challenges: schemes with a token68 or with parameters, in one list with commas.
private struct ChallengeReader {
    private let bytes: [UInt8]
    private var place = 0

    private init(_ text: String) { bytes = Array(text.utf8) }

    /// The parameters of the first challenge of the scheme, with names in lower case; nil if there is none.
    static func parameters(of scheme: String, in text: String) -> [String: String]? {
        var reader = ChallengeReader(text)
        var found: [String: String]?
        var isWanted = false
        var hasScheme = false
        while true {
            reader.skip { $0 == 0x2C || ChallengeReader.isSpace($0) }
            if reader.isAtEnd { return found }
            let word = reader.token()
            guard !word.isEmpty else { return nil }
            let isParameter = reader.startsValue
            if isParameter {
                guard hasScheme, let value = reader.value() else { return nil }
                guard isWanted else { continue }
                guard found?.updateValue(value, forKey: word.lowercased()) == nil else { return nil }
            } else {
                // Only the first challenge of the scheme counts.
                isWanted = found == nil && word.lowercased() == scheme
                hasScheme = true
                if isWanted { found = [:] }
                guard reader.skipCredentials() else { return nil }
            }
        }
    }

    private var isAtEnd: Bool { place == bytes.count }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
        while place < bytes.count, isSkipped(bytes[place]) { place += 1 }
    }

    private mutating func token() -> String {
        let start = place
        skip(HTTPFields.isTokenByte)
        return String(decoding: bytes[start..<place], as: UTF8.self)
    }

    /// True if an equals sign follows, perhaps after spaces. It is skipped then.
    private var startsValue: Bool {
        mutating get {
            let start = place
            skip(ChallengeReader.isSpace)
            guard place < bytes.count, bytes[place] == UInt8(ascii: "=") else {
                place = start
                return false
            }
            place += 1
            skip(ChallengeReader.isSpace)
            return true
        }
    }

    private mutating func value() -> String? {
        guard place < bytes.count, bytes[place] == UInt8(ascii: "\"") else {
            let word = token()
            return word.isEmpty ? nil : word
        }
        place += 1
        var text: [UInt8] = []
        while place < bytes.count {
            var byte = bytes[place]
            place += 1
            if byte == UInt8(ascii: "\"") { return String(validating: text, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                guard place < bytes.count else { return nil }
                byte = bytes[place]
                place += 1
            }
            text.append(byte)
        }
        return nil
    }

    /// After a scheme: a space, a comma or the end. Skips a token68. False for anything else.
    private mutating func skipCredentials() -> Bool {
        guard place < bytes.count, bytes[place] != 0x2C else { return true }
        guard ChallengeReader.isSpace(bytes[place]) else { return false }
        skip(ChallengeReader.isSpace)
        let start = place
        skip { HTTPFields.isTokenByte($0) || $0 == UInt8(ascii: "/") }
        skip { $0 == UInt8(ascii: "=") }
        let end = place
        skip(ChallengeReader.isSpace)
        if end > start, place == bytes.count || bytes[place] == 0x2C { return true }
        place = start
        return true
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
