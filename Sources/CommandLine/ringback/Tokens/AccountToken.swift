import RingbackClient

/// Reads an initial access token from a descriptor, or from a terminal without echo, as every secret.
enum AccountToken {
    private static let maxLength = 8_192

    static func read(from descriptor: Int32) throws(RingbackError) -> String {
        let input = SecretInput(interruption: try Signals.interruption())
        guard let token = try input.readOptional("initial access token", from: descriptor) else {
            throw RingbackError(.cancelled, "No initial access token was read. Nothing was registered.")
        }
        guard token.utf8.count <= maxLength, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw RingbackError(.systemError, "The initial access token is too long, or has characters that none has.")
        }
        return token
    }
}
