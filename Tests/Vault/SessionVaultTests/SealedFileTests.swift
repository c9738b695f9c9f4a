import RingbackBase
import Testing

@testable import SessionVault

@Suite struct `A sealed file` {
    private let key: SealingKey
    private let file = SealedFile(header: SlotFiles.header(slot), text: Secret("a session with a refresh token"))

    init() throws {
        key = try SealingKey(Secret(bytes: Array(0..<32)))
    }

    @Test func `gives back what was put in`() throws {
        for kind in [SealedFile.Kind.session, .vaultKey] {
            #expect(try SealedFile.read(file.sealed(kind, with: key), kind, key: key) == .file(file))
        }
    }

    /// A bit of the version makes it one that is yet to be written; a bit of the check value changes nothing.
    @Test func `with any bit flipped is never another text`() throws {
        let bytes = try file.sealed(.session, with: key)
        var kept = 0
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            switch try SealedFile.read(changed, .session, key: key) {
            case .file(let read):
                #expect(read == file)
                kept += 1
            case .newer: #expect(bit / 8 == 9)
            case .foreign: Issue.record("bit \(bit) makes it foreign")
            case .damaged: break
            }
        }
        #expect(kept == SealingKey.checkLength * 8)
        print("figure: bits flipped in a sealed file = \(bytes.count * 8)")
    }

    @Test func `of any other length is damaged`() throws {
        let bytes = try file.sealed(.session, with: key)
        for count in 0..<bytes.count {
            guard case .damaged = try SealedFile.read(Array(bytes[..<count]), .session, key: key)
            else { throw Unexpected(count) }
        }
        guard case .damaged = try SealedFile.read(bytes + [0], .session, key: key)
        else { throw Unexpected("a byte more is taken for a file") }
    }

    @Test func `of a newer version is not looked into`() throws {
        var bytes = try file.sealed(.session, with: key)
        bytes[9] = 2
        #expect(try SealedFile.read(bytes, .session, key: key) == .newer(version: 2))
        #expect(try SealedFile.read(Array(bytes[..<10]), .session, key: key) == .newer(version: 2))
        bytes[9] = 0
        #expect(try SealedFile.read(bytes, .session, key: key) == .damaged(.invalidVersion))
    }

    @Test func `larger than any is damaged`() throws {
        let bytes = [UInt8]("ringbackS\u{1}".utf8) + [UInt8](repeating: 0, count: SealedFile.maximumSize)
        #expect(try SealedFile.read(bytes, .session, key: key) == .damaged(.invalidLengths))
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
