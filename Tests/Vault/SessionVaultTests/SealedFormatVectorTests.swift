import Glibc
import RingbackBase
import Testing

@testable import SessionVault

/// Files of every version that was ever written, and ones that nobody should have written: see the README beside them.
/// They were made by another implementation of the format.
@Suite struct `Sealed files that were kept`: Sendable {
    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        var fields: [String: String] = [:]
        var bytes: [UInt8] = []
        var testDescription: String { name }
        var expectation: String { fields["expect"] ?? "" }

        init(name: String, text: String) {
            self.name = name
            var isBody = false
            for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
                if line.isEmpty {
                    isBody = true
                } else if isBody {
                    let digits = line.compactMap(\.hexDigitValue)
                    for index in stride(from: 0, to: digits.count - 1, by: 2) {
                        bytes.append(UInt8(digits[index] << 4 | digits[index + 1]))
                    }
                } else if let space = line.firstIndex(of: " ") {
                    fields[String(line[..<space])] = String(line[line.index(after: space)...])
                }
            }
        }
    }

    private static func all(_ folder: String) -> [Vector] {
        let here = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let directory = "/\(here)/Vectors/\(folder)"
        guard let place = try? SyncedDirectory(opening: directory, followsLink: true), let names = try? place.names()
        else { return [] }
        return names.filter { $0.hasSuffix(".txt") }.sorted().map { name in
            let bytes = (try? place.read(name, atMost: 1 << 20)) ?? []
            return Vector(name: name, text: String(decoding: bytes, as: UTF8.self))
        }
    }

    static let sessions = all("sealed-files")
    static let vaultKeys = all("vault-keys")

    @Test func `there are some`() {
        #expect(Self.sessions.count >= 20)
        #expect(Self.vaultKeys.count >= 12)
    }

    @Test(arguments: sessions) func `DU-07: hold what their heads say`(vector: Vector) throws {
        let key = try SealingKey(Secret(bytes: Array(0..<32)))
        do throws(SealedFile.Failure) {
            let file = try SealedFile.read(vector.bytes, .session, key: key)
            #expect(vector.expectation == "file")
            let slot = SlotFiles.slot(file.header)
            #expect(slot?.account == vector.fields["account"])
            #expect(slot?.binding == vector.fields["binding"])
            #expect(file.text.revealed() == vector.fields["text"] ?? "")
        } catch {
            expect(error, vector, foreign: "foreign")
        }
    }

    @Test(arguments: vaultKeys) func `hold the vault's key as their heads say`(vector: Vector) {
        do throws(SealedFile.Failure) {
            let file = try VaultKeyFile(parsing: vector.bytes)
            let dataKey = try VaultKeyFile.open(vector.bytes, with: Secret(bytes: Array(64..<96)))
            #expect(vector.expectation == "key")
            #expect(dataKey.secret == Secret(bytes: Array(0..<32)))
            #expect(file.source.rawValue == vector.fields["source"])
            #expect(file.keyID == vector.fields["id"])
            #expect(JSON.object(file.parameters).text == vector.fields["parameters"])
        } catch {
            expect(error, vector, foreign: "other key")
        }
    }

    private func expect(_ failure: SealedFile.Failure, _ vector: Vector, foreign: String) {
        switch failure {
        case .newer(let version): #expect(vector.expectation == "newer \(version)")
        case .foreign: #expect(vector.expectation == foreign)
        case .damaged(let damage): #expect(vector.expectation == "damaged \(damage.rawValue)")
        case .cryptography: Issue.record("the cryptography library failed")
        }
    }
}
