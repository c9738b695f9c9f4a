/// The part of CBOR (RFC 8949) that an authenticator's response uses: integers, byte strings, text strings, arrays and
/// maps. It is strict (CTAP 2.1 section 8): every length is stated, and in its shortest form, and no key occurs twice.
/// Deeper nesting is refused, and so is a length beyond the end of the data.
enum PasskeyCBOR: Equatable {
    case integer(Int)
    case bytes([UInt8])
    case text(String)
    case array([PasskeyCBOR])
    /// In the order written. Keys are whole numbers or texts.
    case map([Pair])

    struct Pair: Equatable {
        let key: PasskeyCBOR
        let value: PasskeyCBOR
    }

    /// Authenticators nest four levels at most.
    private static let maxDepth = 4
    private static let maxItems = 64

    /// The first item, which is removed from `rest`; nil for anything that is not as above.
    static func take(from rest: inout ArraySlice<UInt8>) -> PasskeyCBOR? { item(&rest, 0) }

    /// The bytes as exactly one item.
    init?(parsing bytes: [UInt8]) {
        var rest = bytes[...]
        guard let item = PasskeyCBOR.take(from: &rest), rest.isEmpty else { return nil }
        self = item
    }

    /// A map's value; nil for no map, and if it has no such key.
    subscript(key: PasskeyCBOR) -> PasskeyCBOR? {
        guard case .map(let pairs) = self else { return nil }
        return pairs.first { $0.key == key }?.value
    }

    var isEmptyMap: Bool { self == .map([]) }
    var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }

    private static func item(_ rest: inout ArraySlice<UInt8>, _ depth: Int) -> PasskeyCBOR? {
        guard depth <= maxDepth, let head = rest.popFirst(), let count = argument(head & 0x1F, &rest) else {
            return nil
        }
        switch head >> 5 {
        case 0: return .integer(count)
        case 1: return .integer(-1 - count)
        case 2: return string(count, &rest).map { .bytes($0) }
        case 3:
            guard let bytes = string(count, &rest), let text = String(validating: bytes, as: UTF8.self) else {
                return nil
            }
            return .text(text)
        case 4:
            guard count <= maxItems else { return nil }
            var items: [PasskeyCBOR] = []
            for _ in 0..<count {
                guard let next = item(&rest, depth + 1) else { return nil }
                items.append(next)
            }
            return .array(items)
        case 5: return map(count, &rest, depth)
        // Tags, floating-point numbers and simple values do not occur here.
        default: return nil
        }
    }

    private static func map(_ count: Int, _ rest: inout ArraySlice<UInt8>, _ depth: Int) -> PasskeyCBOR? {
        guard count <= maxItems else { return nil }
        var pairs: [Pair] = []
        for _ in 0..<count {
            guard let key = item(&rest, depth + 1), let value = item(&rest, depth + 1) else { return nil }
            switch key {
            case .integer, .text: break
            default: return nil
            }
            guard !pairs.contains(where: { $0.key == key }) else { return nil }
            pairs.append(Pair(key: key, value: value))
        }
        return .map(pairs)
    }

    private static func string(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// The number in an item's head, in the shortest form that holds it.
    private static func argument(_ low: UInt8, _ rest: inout ArraySlice<UInt8>) -> Int? {
        guard low >= 24 else { return Int(low) }
        // Lengths of 64 bits do not occur here; 31 means that the length is not stated.
        guard low <= 26 else { return nil }
        let width = 1 << Int(low - 24)
        guard rest.count >= width else { return nil }
        let value = rest.prefix(width).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(width)
        let least = [24, 0x100, 0x1_0000][Int(low - 24)]
        return value >= least ? value : nil
    }
}
