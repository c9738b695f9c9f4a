// The part of DER (X.690) that is needed to pass public keys and signatures to libcrypto. Only output of libcrypto is
// parsed here, never bytes from outside.

enum DER {
    static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(0x30, elements.flatMap { $0 }) }

    /// A non-negative integer from big-endian bytes, in its shortest form.
    static func integer(_ magnitude: some Collection<UInt8>) -> [UInt8] {
        let digits = magnitude.drop { $0 == 0 }
        let needsSign = (digits.first ?? 0) >= 0x80 || digits.isEmpty
        return element(0x02, (needsSign ? [0] : []) + digits)
    }

    static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }

    /// An object identifier from its encoded content.
    static func identifier(_ content: [UInt8]) -> [UInt8] { element(0x06, content) }

    static func octetString(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }

    static let null: [UInt8] = [0x05, 0x00]

    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        if count < 0x80 { return [tag, UInt8(count)] + content }
        if count < 0x100 { return [tag, 0x81, UInt8(count)] + content }
        precondition(count < 0x10000, "no key or signature is so long")
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + content
    }

    /// The two numbers r and s of an ECDSA signature (RFC 3279 section 2.2.3), each padded to `length` bytes. Nil if
    /// the DER is malformed.
    static func signatureHalves(_ signature: [UInt8], length: Int) -> [UInt8]? {
        var rest = signature[...]
        guard var body = take(0x30, from: &rest), rest.isEmpty, let first = take(0x02, from: &body),
            let second = take(0x02, from: &body), body.isEmpty
        else { return nil }
        var output: [UInt8] = []
        for number in [first, second] {
            let digits = number.drop { $0 == 0 }
            guard digits.count <= length else { return nil }
            output += [UInt8](repeating: 0, count: length - digits.count) + digits
        }
        return output
    }

    private static func take(_ tag: UInt8, from rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard rest.popFirst() == tag, let head = rest.popFirst() else { return nil }
        var count = Int(head)
        if head == 0x81 {
            guard let long = rest.popFirst() else { return nil }
            count = Int(long)
        } else if head >= 0x80 {
            return nil
        }
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
