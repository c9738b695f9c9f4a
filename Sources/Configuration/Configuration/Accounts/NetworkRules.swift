internal import HTTPMessages

/// Which servers are trusted, and additional header fields.
extension AccountReader {
    mutating func readTrust() -> ServerTrust {
        let pins = table.strings("pinned_public_keys") ?? []
        for (pin, node) in pins where !Self.isPin(pin) {
            account.refuse("pinned_public_keys", node, "must be sha256// and the base64 of 32 bytes")
        }
        if table.has("pinned_public_keys"), pins.isEmpty {
            account.refuse("pinned_public_keys", "is empty: no key could match")
        }
        var certificates: [UInt8]?
        if let path = readCertificateFile() {
            switch CertificateFile.read(path, user: account.place.user) {
            case .success(let bytes): certificates = bytes
            case .failure(let mistake): account.refuse("ca_file", mistake)
            }
        }
        return ServerTrust(certificateAuthorities: certificates, pinnedPublicKeys: pins.map(\.text))
    }

    /// The path of `ca_file`.
    mutating func readCertificateFile() -> String? {
        table.string("ca_file").flatMap { account.expand("ca_file", $0) }
    }

    private static func isPin(_ text: String) -> Bool {
        let digits = Array(text.utf8.dropFirst("sha256//".utf8.count))
        guard text.hasPrefix("sha256//"), digits.count == 44, digits.last == UInt8(ascii: "=") else { return false }
        return digits.dropLast().allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): true
            default: false
            }
        }
    }

    /// Header fields that the request sets itself, that would break its framing, or that contain other secrets.
    private static let reservedFields: Set<String> = [
        "authorization", "connection", "cookie", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    mutating func readHeaders() -> [FormEncoding.Pair] {
        var headers: [FormEncoding.Pair] = []
        var names: Set<String> = []
        for member in table.table("headers")?.members ?? [] {
            guard case .string(let value) = member.node.value else { continue }
            let lowered = member.key.lowercased()
            if member.key.isEmpty || !member.key.utf8.allSatisfy(HTTPFields.isTokenByte) {
                account.refuse("headers", member.node, member.key, "is not the name of a header field")
            } else if Self.reservedFields.contains(lowered) || lowered.hasPrefix("content-") {
                account.refuse("headers", member.node, member.key, "is set by Ringback itself")
            } else if !names.insert(lowered).inserted {
                account.refuse("headers", member.node, member.key, "is listed twice")
            }
            if !AccountTable.isPrintable(value, mayBeEmpty: true) {
                account.refuse("headers", member.node, member.key, "must be printable ASCII on one line")
            }
            headers.append(FormEncoding.Pair(member.key, value))
        }
        return headers
    }
}
