// libpq answers whatever a server asks for: with the password in clear or as an MD5 digest, which tells it to whoever
// listens in the server's place, and with as many rounds of a digest as the server names, which nothing can end. What
// the server sends is therefore read here before libpq gets it.

/// What a server may send before a connection is ready.
struct StartCheck: Sendable {
    /// The server has proved its name by a certificate. Then it may ask for any proof of the role.
    let isVerified: Bool

    private static let longestMessage = 8_192
    /// A round takes about a microsecond. PostgreSQL's default is 4,096.
    static let mostIterations = 1_000_000

    /// The beginning of a message that is not complete.
    private var message: [UInt8] = []

    init(isVerified: Bool) { self.isVerified = isVerified }

    /// Reads what follows. Returns why libpq must not get it; nil if it may.
    ///
    /// - Parameter isKnown: it is known who the server is. If not, it may only send an error.
    mutating func refusal(of bytes: some Sequence<UInt8>, isKnown: Bool = true) -> PostgresFailure? {
        for byte in bytes {
            message.append(byte)
            guard isKnown || message[0] == UInt8(ascii: "E") else { return .foreignServer(uid: nil) }
            guard message.count >= 5 else { continue }
            let length = Int(message[1...4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            // An error without a length is of a server that could not start a process.
            if message[0] == UInt8(ascii: "E"), !(8...30_000).contains(length) { return nil }
            guard (4...StartCheck.longestMessage).contains(length) else { return .tooMuch }
            guard message.count == length + 1 else { continue }
            if message[0] == UInt8(ascii: "R"), let refusal = refusal(ofRequest: message[5...]) { return refusal }
            message.removeAll(keepingCapacity: true)
        }
        return nil
    }

    /// Checks a request for a proof of the role: a number, and what belongs to it.
    private func refusal(ofRequest body: ArraySlice<UInt8>) -> PostgresFailure? {
        guard body.count >= 4 else { return .malformed }
        switch body.prefix(4).reduce(UInt32(0), { $0 << 8 | UInt32($1) }) {
        // Let in; the names of mechanisms, which are SCRAM's; its last message.
        case 0, 10, 12: return nil
        case 11:
            guard let count = StartCheck.iterations(in: body.dropFirst(4)) else { return .malformed }
            return count <= StartCheck.mostIterations ? nil : .tooMuch
        default: return isVerified ? nil : .weakAuthentication
        }
    }

    /// The number in the server's first message of SCRAM (RFC 5802, section 7): `r=…,s=…,i=NUMBER`.
    private static func iterations(in text: ArraySlice<UInt8>) -> Int? {
        let parts = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[2].starts(with: "i=".utf8) else { return nil }
        let digits = parts[2].dropFirst(2)
        guard (1...10).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
