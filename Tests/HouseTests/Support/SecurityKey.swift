import Cryptography
import RingbackBase
import Testing

/// An authenticator and the page that asks it, in one: what `navigator.credentials` gives an app (Web Authentication
/// level 3), with a key that is made here.
final class SecurityKey {
    private static let origin = "https://app.example.org"

    private let key: PrivateKey
    private let id = RandomToken.bytes(20)
    private var count = 0
    /// The user's handle, which it keeps from when it was made.
    var handle: String?

    init() throws { key = try PrivateKey.generate(.p256) }

    /// `navigator.credentials.create()`, and `toJSON()` of what it gives.
    func create(_ options: JSON) throws -> JSON {
        handle = try #require(options["user"]?["id"]?.string)
        #expect(options["pubKeyCredParams"]?.array?.contains { $0["alg"] == -7 } == true)
        guard case .ellipticCurve(.p256, let x, let y) = key.publicKey.parts else { throw Late(what: "a P-256 key") }
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let cose: [UInt8] = [0xA5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32] + x + [0x22, 0x58, 32] + y
        let data =
            try head(options["rp"]?["id"], flags: 0x45) + [UInt8](repeating: 0, count: 16) + [0, UInt8(id.count)] + id
            + cose
        // {"fmt": "none", "attStmt": {}, "authData": data}
        let object: [UInt8] =
            [0xA3, 0x63] + Array("fmt".utf8) + [0x64] + Array("none".utf8) + [0x67] + Array("attStmt".utf8)
            + [0xA0, 0x68] + Array("authData".utf8) + [0x58, UInt8(data.count)] + data
        return try credential([
            .init("clientDataJSON", .string(Base64URL.encode(try clientData("webauthn.create", options)))),
            .init("attestationObject", .string(Base64URL.encode(object))), .init("transports", ["internal"]),
        ])
    }

    /// `navigator.credentials.get()`, and `toJSON()` of what it gives.
    func get(_ options: JSON) throws -> JSON {
        count += 1
        let data = try head(options["rpId"], flags: 0x05)
        let client = try clientData("webauthn.get", options)
        let halves = try key.sign(message: data + Digest.sha256(client), algorithm: .es256)
        let (r, s) = (SecurityKey.integer(halves.prefix(32)), SecurityKey.integer(halves.suffix(32)))
        let signature = [0x30, UInt8(r.count + s.count)] + r + s
        return try credential([
            .init("clientDataJSON", .string(Base64URL.encode(client))),
            .init("authenticatorData", .string(Base64URL.encode(data))),
            .init("signature", .string(Base64URL.encode(signature))),
            .init("userHandle", .string(try #require(handle))),
        ])
    }

    private func clientData(_ type: String, _ options: JSON) throws -> [UInt8] {
        let document: JSON = [
            "type": .string(type), "challenge": .string(try #require(options["challenge"]?.string)),
            "origin": .string(SecurityKey.origin), "crossOrigin": false,
        ]
        return document.serialized()
    }

    private func head(_ party: JSON?, flags: UInt8) throws -> [UInt8] {
        let party = try #require(party?.string)
        return Digest.sha256(Array(party.utf8)) + [flags]
            + (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) }
    }

    private func credential(_ response: [JSONObject.Member]) throws -> JSON {
        [
            "id": .string(Base64URL.encode(id)), "rawId": .string(Base64URL.encode(id)), "type": "public-key",
            "response": .object(JSONObject(response)), "authenticatorAttachment": "platform",
            "clientExtensionResults": [:],
        ]
    }

    /// A DER integer.
    private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var digits = Array(bytes.drop { $0 == 0 })
        if digits.first ?? 0x80 >= 0x80 { digits.insert(0, at: 0) }
        return [0x02, UInt8(digits.count)] + digits
    }
}

extension Stage {
    /// A program whose descriptor 3 is a pipe, which ``answer(_:with:)`` writes to.
    func startWithPipe(_ name: String, _ arguments: [String]) async throws -> Program {
        let pipe = "\(directory)/credential"
        let made = try await run("/bin/bash", ["-c", "[ -p \"$1\" ] || mkfifo \"$1\"", "bash", pipe])
        #expect(made.status == 0, "\(made)")
        return try start(
            "/bin/bash",
            ["-c", "pipe=$1; shift; exec \"$@\" 3<>\"$pipe\"", "bash", pipe, Programs.path(name)] + arguments)
    }

    func answer(with text: String) async throws {
        let wrote = try await run("/bin/bash", ["-c", "cat >\"$1\"", "bash", "\(directory)/credential"], stdin: text)
        #expect(wrote.status == 0, "\(wrote)")
    }
}
