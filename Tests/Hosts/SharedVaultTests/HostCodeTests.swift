import Cryptography
import RingbackBase
import Testing

@testable import SharedVault

@Suite struct `Codes of hosts that join` {
    private let code = HostCode([UInt8](0..<13))

    private func code(_ text: String) -> HostCode? { HostCode(Secret(text)) }

    @Test func `four groups of five characters, which are read as they are typed`() throws {
        let text = code.revealed()
        #expect(text == "000G4-0R40M-30E20-9185G")
        #expect(code(text) == code)
        #expect(code(text.lowercased()) == code)
        #expect(code(text.replacing("-", with: " ")) == code)
        #expect(code(text.replacing("-", with: "")) == code)
    }

    @Test func `letters that look like digits are taken for them`() {
        #expect(code("OIL00-00000-00000-00000") == code("01100-00000-00000-00000"))
        #expect(code("oil00-00000-00000-00000") == code("01100-00000-00000-00000"))
    }

    @Test(arguments: ["", "7K2QX", "U0000-00000-00000-00000", "00000-00000-00000-000000", "0000 0000 0000 0000 000é"])
    func `what is no code is refused`(text: String) { #expect(code(text) == nil) }

    @Test func `each of the first hundred bits counts`() {
        var seen: Set<HostCode> = [code]
        for bit in 0..<100 {
            var bytes = [UInt8](0..<13)
            bytes[bit / 8] ^= 128 >> (bit % 8)
            #expect(seen.insert(HostCode(bytes)).inserted)
        }
    }

    @Test func `all characters of the alphabet come up, in each place`() {
        var seen = Array(repeating: Set<Character>(), count: 23)
        for _ in 0..<2_000 {
            for (place, character) in HostCode(RandomToken.bytes(13)).revealed().enumerated() {
                seen[place].insert(character)
            }
        }
        for (place, characters) in seen.enumerated() { #expect(characters.count == (place % 6 == 5 ? 1 : 32)) }
    }

    @Test func `is not shown by accident`() {
        #expect(!"\(code)".contains("000G4"))
    }

    @Test func `a code is of one public key, for its role`() throws {
        let key = try AgreementKey.generate().publicKey
        let nonce = Secret(bytes: RandomToken.bytes(HostCode.nonceLength))
        let code = try HostCode(nonce: nonce, publicKey: key, role: "role")
        let published = try code.published(key, nonce: nonce)
        #expect(try code.publicKey(in: published, of: "role") == key)
        // Somebody who has seen the code, and the nonce, has another public key.
        let other = try AgreementKey.generate().publicKey
        #expect(try code.publicKey(in: try code.published(other, nonce: nonce), of: "role") == nil)
        #expect(try code.publicKey(in: published, of: "other") == nil)
        #expect(try HostCode([UInt8](1..<14)).publicKey(in: published, of: "role") == nil)
        for index in published.indices {
            var changed = published
            changed[index] ^= 1
            #expect(try code.publicKey(in: changed, of: "role") == nil)
        }
        #expect(try code.publicKey(in: published + [0], of: "role") == nil)
        for length in [0, 1, 31, 32, 33, 63] {
            #expect(try code.publicKey(in: Array(published.prefix(length)), of: "role") == nil)
        }
    }

    @Test func `the key is sealed for one host, owner and code`() throws {
        let key = try AgreementKey.generate()
        let dataKey = Secret(bytes: [UInt8](repeating: 3, count: 32))
        let sealed = try code.seal(dataKey, for: key.publicKey, of: "role", owner: "alice")
        #expect(try code.open(sealed, with: key, of: "role", owner: "alice") == dataKey)
        #expect(try code.open(sealed, with: key, of: "other", owner: "alice") == nil)
        #expect(try code.open(sealed, with: key, of: "role", owner: "bob") == nil)
        #expect(try code.open(sealed, with: try .generate(), of: "role", owner: "alice") == nil)
        #expect(try HostCode([UInt8](1..<14)).open(sealed, with: key, of: "role", owner: "alice") == nil)
        let short = try code.seal(Secret("short"), for: key.publicKey, of: "role", owner: "alice")
        #expect(try code.open(short, with: key, of: "role", owner: "alice") == nil)
    }

    @Test func `a record of a former version is read, without what its code was made of`() throws {
        let text = """
            {"version":1,"agreement":"\(String(repeating: "ab", count: 32))","code":"000G4-0R40M-30E20-9185G",
            "password":"p","name":"laptop","accepted":true}
            """
        let record = try #require(JoiningRecord(reading: Secret(text)))
        #expect(record.nonce.isEmpty && record.code == code && record.isAccepted)
        #expect(JoiningRecord(reading: record.encoded()) == record)
    }

    @Test func `a record of joining is read as it was written, and nothing else is`() throws {
        var record = try JoiningRecord(name: "laptop", role: "role") { RandomToken.bytes($0) }
        for isAccepted in [false, true] {
            record.isAccepted = isAccepted
            #expect(JoiningRecord(reading: record.encoded()) == record)
        }
        let text = record.encoded().revealed()
        for part in ["\"version\":2", "\"agreement\":\"", "\"code\":\"", "\"accepted\":true"] {
            #expect(text.contains(part))
            #expect(JoiningRecord(reading: Secret(text.replacing(part, with: "\"x\":\"\(part.count)"))) == nil)
        }
    }
}
