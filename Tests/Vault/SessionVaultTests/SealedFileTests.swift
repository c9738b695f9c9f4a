import RingbackBase
import Testing

@testable import SessionVault

@Suite struct `A sealed file` {
    private let key: SealingKey
    private let file = SealedFile(header: SlotFiles.header(slot), text: Secret("a session with a refresh token"))

    init() throws {
        key = try SealingKey(Secret(bytes: Array(0..<32)))
    }

    private func failure(_ bytes: [UInt8]) -> SealedFile.Failure? {
        do throws(SealedFile.Failure) { _ = try SealedFile.read(bytes, .session, key: key) } catch { return error }
        return nil
    }

    @Test func `gives back what was put in`() throws {
        for kind in [SealedFile.Kind.session, .vaultKey] {
            #expect(try SealedFile.read(file.sealed(kind, with: key), kind, key: key) == file)
        }
    }

    /// A bit of the version makes it one that is yet to be written; a bit of the check value changes nothing.
    @Test func `with any bit flipped is never another text`() throws {
        let bytes = try file.sealed(.session, with: key)
        var kept = 0
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            do throws(SealedFile.Failure) {
                #expect(try SealedFile.read(changed, .session, key: key) == file)
                kept += 1
            } catch {
                switch error {
                case .newer: #expect(bit / 8 == 9)
                case .foreign, .cryptography: Issue.record("bit \(bit) makes it \(error)")
                case .damaged: break
                }
            }
        }
        #expect(kept == SealingKey.checkLength * 8)
        print("figure: bits flipped in a sealed file = \(bytes.count * 8)")
    }

    @Test func `of any other length is damaged`() throws {
        let bytes = try file.sealed(.session, with: key)
        for count in 0..<bytes.count {
            guard case .damaged = failure(Array(bytes[..<count])) else { throw Unexpected(count) }
        }
        guard case .damaged = failure(bytes + [0]) else { throw Unexpected("a byte more is taken for a file") }
    }

    @Test func `of a newer version is not looked into`() throws {
        var bytes = try file.sealed(.session, with: key)
        bytes[9] = 2
        #expect(failure(bytes) == .newer(version: 2))
        #expect(failure(Array(bytes[..<10])) == .newer(version: 2))
        bytes[9] = 0
        #expect(failure(bytes) == .damaged(.invalidVersion))
    }

    @Test func `larger than any is damaged`() throws {
        let bytes = [UInt8]("ringbackS\u{1}".utf8) + [UInt8](repeating: 0, count: SealedFile.maximumSize)
        #expect(failure(bytes) == .damaged(.invalidLengths))
    }

    @Test func `no two are alike, and none shows its text`() throws {
        let files = try (0..<20).map { _ in try file.sealed(.session, with: key) }
        #expect(Set(files).count == 20)
        let needle = Array("refresh token".utf8)
        for bytes in files { #expect(!bytes.indices.contains { bytes[$0...].starts(with: needle) }) }
    }

    @Test func `a key's check value is the same for the same key, and no part of it`() throws {
        #expect(try SealingKey(key.secret).check == key.check)
        #expect(try SealingKey.random().check != key.check)
        #expect(key.check.count == SealingKey.checkLength)
        #expect(!key.secret.revealedBytes().starts(with: key.check))
    }
}
