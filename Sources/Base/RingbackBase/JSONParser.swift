/// Why a JSON text is rejected, and at which byte.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Reason: String, Sendable {
        case empty = "empty text"
        case unexpectedCharacter = "unexpected character"
        case unexpectedEnd = "the text ends too early"
        case trailingText = "text after the value"
        case duplicateMember = "the same member twice"
        case invalidUTF8 = "not UTF-8"
        case invalidEscape = "invalid escape"
        case loneSurrogate = "half a surrogate pair"
        case controlCharacter = "control character in a string"
        case invalidNumber = "invalid number"
        case tooDeep = "nested too deeply"
        case tooManyMembers = "too many values"
    }

    public let reason: Reason
    /// Bytes from the start of the text.
    public let offset: Int
    public var description: String { "\(reason.rawValue) at byte \(offset)" }
}

extension JSON {
    /// Reads one JSON text of UTF-8 bytes. Throws ``JSONError``. Duplicate members are rejected: parsers read them
    /// differently, so an attacker could show each reader another value. A byte order mark, UTF-16, lone surrogates,
    /// more than `maxDepth` levels and more than `maxValues` values are rejected too.
    public init(parsing bytes: some Collection<UInt8>, maxDepth: Int = 32, maxValues: Int = 20_000) throws(JSONError) {
        var parser = JSONParser(bytes: Array(bytes), maxDepth: maxDepth, remainingValues: maxValues)
        self = try parser.parseDocument()
    }
}

private struct JSONParser {
    let bytes: [UInt8]
    let maxDepth: Int
    var remainingValues: Int
    var position = 0

    mutating func parseDocument() throws(JSONError) -> JSON {
        skipSpace()
        guard position < bytes.count else { throw failure(.empty) }
        let value = try parseValue(depth: 0)
        skipSpace()
        guard position == bytes.count else { throw failure(.trailingText) }
        return value
    }

    func failure(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: position) }
    var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipSpace() {
        while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard let found = current else { throw failure(.unexpectedEnd) }
        guard found == byte else { throw failure(.unexpectedCharacter) }
        position += 1
    }

    mutating func parseValue(depth: Int) throws(JSONError) -> JSON {
        remainingValues -= 1
        guard remainingValues >= 0 else { throw failure(.tooManyMembers) }
        guard let byte = current else { throw failure(.unexpectedEnd) }
        switch byte {
        case UInt8(ascii: "{"): return .object(try parseObject(depth: depth + 1))
        case UInt8(ascii: "["): return .array(try parseArray(depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"): return try parseWord("true", as: .bool(true))
        case UInt8(ascii: "f"): return try parseWord("false", as: .bool(false))
        case UInt8(ascii: "n"): return try parseWord("null", as: .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try parseNumber()
        default: throw failure(.unexpectedCharacter)
        }
    }

    mutating func parseWord(_ word: StaticString, as value: JSON) throws(JSONError) -> JSON {
        for byte in "\(word)".utf8 { try expect(byte) }
        return value
    }

    mutating func parseObject(depth: Int) throws(JSONError) -> JSONObject {
        guard depth <= maxDepth else { throw failure(.tooDeep) }
        try expect(UInt8(ascii: "{"))
        var object = JSONObject()
        var names = MemberNames()
        skipSpace()
        if take(UInt8(ascii: "}")) { return object }
        while true {
            skipSpace()
            guard current == UInt8(ascii: "\"") else {
                throw failure(current == nil ? .unexpectedEnd : .unexpectedCharacter)
            }
            let start = position
            let name = try parseString()
            guard names.insert(name) else { throw JSONError(reason: .duplicateMember, offset: start) }
            skipSpace()
            try expect(UInt8(ascii: ":"))
            skipSpace()
            object.members.append(.init(name, try parseValue(depth: depth)))
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            try expect(UInt8(ascii: "}"))
            return object
        }
    }

    mutating func parseArray(depth: Int) throws(JSONError) -> [JSON] {
        guard depth <= maxDepth else { throw failure(.tooDeep) }
        try expect(UInt8(ascii: "["))
        var elements: [JSON] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return elements }
        while true {
            skipSpace()
            elements.append(try parseValue(depth: depth))
            skipSpace()
            if take(UInt8(ascii: ",")) { continue }
            try expect(UInt8(ascii: "]"))
            return elements
        }
    }

    mutating func parseNumber() throws(JSONError) -> JSON {
        let start = position
        _ = take(UInt8(ascii: "-"))
        let firstDigit = position
        skipDigits()
        let digits = position - firstDigit
        guard digits > 0, digits == 1 || bytes[firstDigit] != UInt8(ascii: "0") else { throw failure(.invalidNumber) }
        var isInteger = true
        if take(UInt8(ascii: ".")) {
            isInteger = false
            let fraction = position
            skipDigits()
            guard position > fraction else { throw failure(.invalidNumber) }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isInteger = false
            _ = take(UInt8(ascii: "+")) || take(UInt8(ascii: "-"))
            let exponent = position
            skipDigits()
            guard position > exponent else { throw failure(.invalidNumber) }
        }
        // Limits the time of the conversion.
        guard position - start <= 400 else { throw failure(.invalidNumber) }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, let integer = Int(text) { return .integer(integer) }
        guard let double = Double(text) else { throw failure(.invalidNumber) }
        return .double(double)
    }

    mutating func skipDigits() {
        while let byte = current, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
    }

    mutating func parseString() throws(JSONError) -> String {
        try expect(UInt8(ascii: "\""))
        let start = position
        while let byte = current, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
        if take(UInt8(ascii: "\"")) {
            return try text(of: bytes[start..<(position - 1)], at: start)
        }
        var unescaped = Array(bytes[start..<position])
        while let byte = current {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return try text(of: unescaped[...], at: start)
            case UInt8(ascii: "\\"): try appendEscape(to: &unescaped)
            case 0..<0x20:
                position -= 1
                throw failure(.controlCharacter)
            default: unescaped.append(byte)
            }
        }
        throw failure(.unexpectedEnd)
    }

    func text(of slice: ArraySlice<UInt8>, at start: Int) throws(JSONError) -> String {
        guard let text = String(validating: slice, as: UTF8.self) else {
            throw JSONError(reason: .invalidUTF8, offset: start)
        }
        return text
    }

    mutating func appendEscape(to unescaped: inout [UInt8]) throws(JSONError) {
        guard let byte = current else { throw failure(.unexpectedEnd) }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): unescaped.append(byte)
        case UInt8(ascii: "b"): unescaped.append(0x08)
        case UInt8(ascii: "f"): unescaped.append(0x0C)
        case UInt8(ascii: "n"): unescaped.append(0x0A)
        case UInt8(ascii: "r"): unescaped.append(0x0D)
        case UInt8(ascii: "t"): unescaped.append(0x09)
        case UInt8(ascii: "u"): unescaped.append(contentsOf: String(try parseUnicodeEscape()).utf8)
        default:
            position -= 1
            throw failure(.invalidEscape)
        }
    }

    mutating func parseUnicodeEscape() throws(JSONError) -> Character {
        var value = try parseFourHexDigits()
        if (0xD800...0xDBFF).contains(value) {
            guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw failure(.loneSurrogate) }
            let low = try parseFourHexDigits()
            guard (0xDC00...0xDFFF).contains(low) else { throw failure(.loneSurrogate) }
            value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(value) else { throw failure(.loneSurrogate) }
        return Character(scalar)
    }

    mutating func parseFourHexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = current else { throw failure(.unexpectedEnd) }
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw failure(.invalidEscape)
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }
}

/// Most objects have few members, and comparing a few names takes less time than a hash table.
private struct MemberNames {
    private var few: [String] = []
    private var many: Set<String> = []

    /// False if the name was already there.
    mutating func insert(_ name: String) -> Bool {
        guard many.isEmpty else { return many.insert(name).inserted }
        guard !few.contains(name) else { return false }
        few.append(name)
        if few.count == 16 { many = Set(few) }
        return true
    }
}
