import Cryptography
import Foundation
import RingbackBase
import Testing

@testable import Sandbox

/// A file of `Tests/Vectors/supabase/ceremonies` (see the folder's page).
private struct Ceremony: Sendable, CustomTestStringConvertible {
    let name: String
    let document: JSON

    var testDescription: String { name }

    static let all: [Ceremony] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Vectors/supabase/ceremonies")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
        return names.filter { $0.hasSuffix(".json") }.sorted().compactMap { name in
            guard let data = try? Data(contentsOf: folder.appending(path: name)),
                let document = try? JSON(parsing: Array(data))
            else { return nil }
            return Ceremony(name: name, document: document)
        }
    }()

    func bytes(_ value: JSON?) throws -> [UInt8] {
        try #require(value?.string.flatMap { Base64URL.decode($0) }, "\(name)")
    }

    func ceremony() throws -> PasskeyCeremony {
        let party = PasskeyCeremony.Party(
            id: document["party"]?["id"]?.string ?? "",
            origins: document["party"]?["origins"]?.array?.compactMap(\.string) ?? [])
        return PasskeyCeremony(party: party, challenge: try bytes(document["challenge"]))
    }
}

@Suite struct `The answers of authenticators` {
    @Test func `are there, of both kinds`() {
        #expect(Ceremony.all.count >= 50)
        #expect(Ceremony.all.contains { $0.document["passkey"] != nil })
        #expect(Ceremony.all.allSatisfy { $0.document["rule"]?.string?.hasSuffix(".") == true })
    }

    @Test(arguments: Ceremony.all.filter { $0.document["passkey"] == nil })
    fileprivate func `make a key, or are refused`(vector: Ceremony) throws {
        let credential = try #require(vector.document["credential"]?.object)
        let creation = try vector.ceremony().creation(credential)
        guard let expected = vector.document["expect"], expected["refused"] != true else {
            #expect(creation == nil)
            return
        }
        let made = try #require(creation)
        #expect(made.id == (try vector.bytes(expected["credential_id"])))
        #expect(
            made.key.parts
                == .ellipticCurve(.p256, x: try vector.bytes(expected["x"]), y: try vector.bytes(expected["y"])))
        #expect(made.signCount == expected["sign_count"]?.integer)
        #expect(made.isBackupEligible == expected["backup_eligible"]?.bool)
    }

    @Test(arguments: Ceremony.all.filter { $0.document["passkey"] != nil })
    fileprivate func `sign somebody in, or are refused`(vector: Ceremony) throws {
        let credential = try #require(vector.document["credential"]?.object)
        let stored = vector.document["passkey"]
        let claim = try #require(PasskeyCeremony.claim(credential))
        let known = PasskeyCeremony.Credential(
            id: claim.credentialID,
            key: try PublicKey(curve: .p256, x: try vector.bytes(stored?["x"]), y: try vector.bytes(stored?["y"])),
            signCount: stored?["sign_count"]?.integer ?? 0,
            isBackupEligible: stored?["backup_eligible"]?.bool ?? false)
        #expect(claim.handle == "0b8f7b1c-2a46-4d0e-9a0f-6f1d2c3b4a59")
        let count = try vector.ceremony().assertion(credential, by: known)
        #expect(count == vector.document["expect"]?["sign_count"]?.integer)
    }

    @Test func `are read strictly`() {
        let cases: [([UInt8], PasskeyCBOR?)] = [
            ([0x17], .integer(23)), ([0x18, 0x18], .integer(24)), ([0x18, 0x17], nil), ([0x26], .integer(-7)),
            ([0x19, 0x01, 0x00], .integer(256)), ([0x19, 0x00, 0xFF], nil), ([0x1B, 0, 0, 0, 1, 0, 0, 0, 0], nil),
            ([0x42, 1, 2], .bytes([1, 2])), ([0x42, 1], nil), ([0x61, 0x61], .text("a")), ([0x61, 0xFF], nil),
            ([0x82, 1, 2], .array([.integer(1), .integer(2)])), ([0x9F, 0xFF], nil), ([0xF6], nil), ([0xC0, 0], nil),
            ([0xA1, 0x40, 0], nil), ([0xA0], .map([])), ([], nil), ([0x01, 0x02], nil),
            ([0x81, 0x81, 0x81, 0x81, 0x81, 0x01], nil), ([0x9A, 0xFF, 0xFF, 0xFF, 0xFF], nil),
        ]
        for (bytes, item) in cases { #expect(PasskeyCBOR(parsing: bytes) == item, "\(bytes)") }
    }
}
