// Attack: a server, or a page of it, sends back what it was sent, and the token with it.

/// Hides secrets in bytes that come in pieces: asterisks take its place, so that lengths stay as they are. The secret itself
/// is not in memory, since a stream may last for days: only its hash, the set of its bytes, and its first ones.
public struct SecretMask: Sendable {
    /// A shorter one is not looked for: every text could have it.
    public static let shortest = 8

    private struct Form: Sendable {
        let hash: TextHash
        /// Eight bytes at most, and no more than a quarter.
        let beginning: [UInt8]
        /// By byte.
        let isUsed: [Bool]

        init(_ bytes: [UInt8]) {
            hash = TextHash(bytes[...])
            beginning = Array(bytes.prefix(min(8, bytes.count / 4)))
            isUsed = bytes.reduce(into: [Bool](repeating: false, count: 256)) { $0[Int($1)] = true }
        }

        enum Match { case none, whole, begun }

        /// What stands at a place: the secret, perhaps its beginning, or something else.
        func match(_ bytes: [UInt8], at place: Int) -> Match {
            let rest = bytes[place...].prefix(hash.count)
            guard zip(rest, beginning).allSatisfy({ $0 == $1 }) else { return .none }
            if rest.count == hash.count { return hash.isEqual(to: rest) ? .whole : .none }
            return rest.allSatisfy { isUsed[Int($0)] } ? .begun : .none
        }
    }

    private let forms: [Form]
    /// By byte: whether a form begins with it.
    private let isFirst: [Bool]
    /// What may be the beginning of the secret.
    private var held: [UInt8] = []

    public init(_ secret: Secret) { self.init([secret]) }

    /// As they are, and as they are written in a URL and in JSON with escaped slashes, where that differs.
    public init(_ secrets: [Secret]) {
        let texts = secrets.map { $0.revealedBytes() }.filter { $0.count >= SecretMask.shortest }
        let written = texts.flatMap { bytes in
            let escaped = bytes.flatMap { $0.isUnreserved ? [$0] : $0.percentEscape }
            let slashed = bytes.flatMap { $0 == UInt8(ascii: "/") ? Array("\\/".utf8) : [$0] }
            return [bytes, escaped, slashed]
        }
        forms = Set(written).map { Form($0) }
        isFirst = forms.reduce(into: [Bool](repeating: false, count: 256)) { $0[Int($1.beginning[0])] = true }
    }

    /// Takes a piece, and gives what can be passed on. What ends with the beginning of the secret waits for the next piece.
    public mutating func pass(_ piece: [UInt8]) -> [UInt8] {
        var bytes = held.isEmpty ? piece : held + piece
        let end = hide(in: &bytes)
        held = Array(bytes[end...])
        bytes.removeLast(held.count)
        return bytes
    }

    /// What is held at the end of the bytes, where the secret did not become whole.
    public mutating func finish() -> [UInt8] {
        defer { held = [] }
        return held
    }

    public func masked(_ text: String) -> String {
        var bytes = Array(text.utf8)
        _ = hide(in: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns where the bytes begin that may be the beginning of the secret.
    private func hide(in bytes: inout [UInt8]) -> Int {
        var (place, begun) = (0, bytes.count)
        while place < bytes.count {
            guard isFirst[Int(bytes[place])] else {
                place += 1
                continue
            }
            // A whole one is hidden even if it may also be the beginning of a longer form.
            var (length, isBegun) = (0, false)
            for form in forms {
                switch form.match(bytes, at: place) {
                case .whole: length = form.hash.count
                case .begun: isBegun = true
                case .none: break
                }
            }
            if length == 0, isBegun { begun = min(begun, place) }
            for hidden in place..<place + length { bytes[hidden] = UInt8(ascii: "*") }
            place += max(1, length)
        }
        return begun
    }
}

/// Finds a text in others by its hash alone (Karp and Rabin), so that a token is not in memory for as long as the response
/// lasts. The hash is a polynomial modulo 2^61 - 1 at a random place, so that no other text with the same hash can be made
/// on purpose.
package struct TextHash: Sendable {
    private static let prime: UInt64 = 1 << 61 - 1
    private static let place = UInt64.random(in: 1 << 32..<prime)

    package let count: Int
    private let hash: UInt64
    /// What a byte counts when it leaves the window.
    private let weight: UInt64

    package init(_ text: ArraySlice<UInt8>) {
        count = text.count
        hash = text.reduce(0) { TextHash.next($0, $1) }
        weight = text.reduce(1) { weight, _ in TextHash.product(weight, TextHash.place) }
    }

    package func isFound(in bytes: [UInt8]) -> Bool {
        guard bytes.count >= count else { return false }
        var window: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            window = TextHash.next(window, byte)
            if index >= count {
                let left = TextHash.product(weight, UInt64(bytes[index - count]) + 1)
                window = window >= left ? window - left : window + TextHash.prime - left
            }
            if index >= count - 1, window == hash { return true }
        }
        return false
    }

    /// True for these bytes alone.
    package func isEqual(to bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count == count && bytes.reduce(0) { TextHash.next($0, $1) } == hash
    }

    private static func next(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        let sum = product(hash, place) + UInt64(byte) + 1
        return sum >= prime ? sum - prime : sum
    }

    private static func product(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (high, low) = left.multipliedFullWidth(by: right)
        let sum = (low & prime) + (high << 3 | low >> 61)
        return sum >= prime ? sum - prime : sum
    }
}
