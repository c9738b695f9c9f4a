internal import Cryptography
internal import RingbackBase

/// Checks an authenticator's response as a relying party has to (Web Authentication level 3, sections 7.1 and 7.2).
/// Keys are P-256 and not attested: that is all that the options ask for.
struct PasskeyCeremony {
    struct Party: Equatable {
        let id: String
        let origins: [String]
    }

    struct Credential {
        let id: [UInt8]
        let key: PublicKey
        var signCount: Int
        let isBackupEligible: Bool
    }

    let party: Party
    let challenge: [UInt8]
    /// The algorithm's name in COSE (RFC 9053 section 2.1).
    static let es256 = -7
    private static let maxCredentialID = 1_023

    func creation(_ credential: JSONObject) -> Credential? {
        guard let id = PasskeyCeremony.identifier(credential), let response = credential["response"]?.object,
            clientData(response, type: "webauthn.create") != nil,
            let object = PasskeyCeremony.bytes(response["attestationObject"]).flatMap({ PasskeyCBOR(parsing: $0) }),
            object[.text("fmt")] == .text("none"), object[.text("attStmt")]?.isEmptyMap == true,
            let data = object[.text("authData")]?.bytes.flatMap({ AuthenticatorData(parsing: $0) }),
            isGood(data), let attested = data.attested, attested.credentialID == id,
            let key = PasskeyCeremony.key(attested.key)
        else { return nil }
        return Credential(id: id, key: key, signCount: data.signCount, isBackupEligible: data.flags.isBackupEligible)
    }

    /// A P-256 key (RFC 9053 section 7.1).
    private static func key(_ key: PasskeyCBOR) -> PublicKey? {
        guard key[.integer(1)] == .integer(2), key[.integer(3)] == .integer(es256), key[.integer(-1)] == .integer(1),
            let x = key[.integer(-2)]?.bytes, let y = key[.integer(-3)]?.bytes
        else { return nil }
        return try? PublicKey(curve: .p256, x: x, y: y)
    }

    /// The credential and the user's handle that the response claims, before anything is proved.
    static func claim(_ credential: JSONObject) -> (credentialID: [UInt8], handle: String)? {
        guard let id = identifier(credential), let handle = bytes(credential["response"]?["userHandle"]),
            let text = String(validating: handle, as: UTF8.self)
        else { return nil }
        return (id, text)
    }

    /// The key's new counter; nil if anything is wrong. One that does not grow shows that the key was copied.
    func assertion(_ credential: JSONObject, by known: Credential) -> Int? {
        guard let response = credential["response"]?.object,
            let clientData = clientData(response, type: "webauthn.get"),
            let bytes = PasskeyCeremony.bytes(response["authenticatorData"]),
            let data = AuthenticatorData(parsing: bytes), isGood(data),
            data.flags.isBackupEligible == known.isBackupEligible,
            let signature = PasskeyCeremony.bytes(response["signature"]),
            known.key.verify(derSignature: signature, message: bytes + Digest.sha256(clientData), algorithm: .es256)
        else { return nil }
        let isCounting = data.signCount != 0 || known.signCount != 0
        return !isCounting || data.signCount > known.signCount ? data.signCount : nil
    }

    /// The client data as bytes, if they are about this challenge.
    private func clientData(_ response: JSONObject, type: String) -> [UInt8]? {
        guard let bytes = PasskeyCeremony.bytes(response["clientDataJSON"]),
            let data = try? JSON(parsing: bytes), data["type"]?.string == type,
            data["challenge"]?.string == Base64URL.encode(challenge),
            let origin = data["origin"]?.string, party.origins.contains(origin)
        else { return nil }
        return bytes
    }

    private func isGood(_ data: AuthenticatorData) -> Bool {
        data.partyHash == Digest.sha256(Array(party.id.utf8)) && data.flags.isPersonPresent
            && (data.flags.isBackupEligible || !data.flags.isBackedUp)
    }

    /// The credential's id, which the response contains twice.
    static func identifier(_ credential: JSONObject) -> [UInt8]? {
        guard credential["type"] == "public-key", let id = bytes(credential["id"]),
            (1...maxCredentialID).contains(id.count)
        else { return nil }
        if let raw = credential["rawId"], bytes(raw) != id { return nil }
        return id
    }

    private static func bytes(_ value: JSON?) -> [UInt8]? { value?.string.flatMap { Base64URL.decode($0) } }
}

/// What an authenticator states about itself and signs (Web Authentication level 3, section 6.1).
struct AuthenticatorData {
    struct Flags {
        let byte: UInt8
        var isPersonPresent: Bool { byte & 0x01 != 0 }
        var isBackupEligible: Bool { byte & 0x08 != 0 }
        var isBackedUp: Bool { byte & 0x10 != 0 }
        var hasCredential: Bool { byte & 0x40 != 0 }
        var hasExtensions: Bool { byte & 0x80 != 0 }
    }

    let partyHash: [UInt8]
    let flags: Flags
    let signCount: Int
    /// A credential that was just made, and its key in COSE's form.
    let attested: (credentialID: [UInt8], key: PasskeyCBOR)?

    /// Nil unless every byte has been used.
    init?(parsing bytes: [UInt8]) {
        var rest = bytes[...]
        func take(_ count: Int) -> [UInt8]? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        guard let partyHash = take(32), let flags = take(1).map({ Flags(byte: $0[0]) }), let count = take(4) else {
            return nil
        }
        self.partyHash = partyHash
        self.flags = flags
        signCount = count.reduce(0) { $0 << 8 | Int($1) }
        if flags.hasCredential {
            // The first 16 bytes name the model of the authenticator. Nothing depends on them.
            guard take(16) != nil, let length = take(2), let id = take(Int(length[0]) << 8 | Int(length[1])),
                let key = PasskeyCBOR.take(from: &rest)
            else { return nil }
            attested = (id, key)
        } else {
            attested = nil
        }
        if flags.hasExtensions {
            guard case .map? = PasskeyCBOR.take(from: &rest) else { return nil }
        }
        guard rest.isEmpty else { return nil }
    }
}

/// The part of CBOR (RFC 8949) that an authenticator's response uses, and strictly (CTAP 2.1 section 8): lengths are
/// stated in their shortest form and end within the data, no key occurs twice, and deeper nesting is refused.
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

    private static let maxDepth = 4
    private static let maxItems = 64

    /// The first item, which is removed from `rest`; nil for anything that is not as above.
    static func take(from rest: inout ArraySlice<UInt8>) -> PasskeyCBOR? { item(&rest, 0) }

    init?(parsing bytes: [UInt8]) {
        var rest = bytes[...]
        guard let item = PasskeyCBOR.take(from: &rest), rest.isEmpty else { return nil }
        self = item
    }

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
