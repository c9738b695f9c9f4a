internal import Cryptography
public import Secrets

/// What a person copies from a host that joins to a host that has the data key: 100 bits, which the database never gets.
/// With them both hosts recognize each other, although all else between them goes through the database:
///
/// - The code is a digest of the new host's public key and of a nonce. The host publishes both, the nonce masked by the
///   code. So the key is given to no other host, whatever public key the database shows: another public key has another
///   code, also for somebody who has seen this one.
/// - The key is sealed with a context that is derived from the code. So the new host takes no other key, whatever the
///   database gives it: with a key of its choice it could read what that host stores.
public struct HostCode: Hashable, Sendable {
    /// Crockford's base 32: no I, L, O and U.
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let length = 20
    private static let group = 5
    static let nonceLength = 32

    /// 20 characters of the alphabet.
    private let characters: Secret

    /// The code that the host of a role shows for its public key.
    init(nonce: Secret, publicKey: [UInt8], role: String) throws(CryptographyError) {
        let purpose = "ringback: code of a host's key 2 " + role
        self.init(try KeyDerivation.derive(from: nonce, salt: publicKey, purpose: purpose).revealedBytes())
    }

    /// The code of the first 100 bits.
    init(_ random: [UInt8]) {
        let characters = (0..<HostCode.length).map { index in
            // 5 bits from bit 5 × index on; they may lie in two bytes.
            let bit = index * 5
            let next = bit / 8 + 1 < random.count ? random[bit / 8 + 1] : 0
            let pair = UInt16(random[bit / 8]) << 8 | UInt16(next)
            return HostCode.alphabet[Int(pair >> (11 - UInt16(bit % 8)) & 31)]
        }
        self.characters = Secret(bytes: characters)
    }

    /// A code as a person types it: in either case, with spaces and hyphens anywhere, O for 0, and I and L for 1. Nil if it
    /// is none.
    public init?(_ text: Secret) {
        var found: [UInt8] = []
        for byte in text.revealedBytes() where byte != UInt8(ascii: " ") && byte != UInt8(ascii: "-") {
            let upper = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") ? byte - 32 : byte
            let character: UInt8 =
                switch upper {
                case UInt8(ascii: "O"): UInt8(ascii: "0")
                case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
                default: upper
                }
            guard HostCode.alphabet.contains(character), found.count < HostCode.length else { return nil }
            found.append(character)
        }
        guard found.count == HostCode.length else { return nil }
        characters = Secret(bytes: found)
    }

    /// Four groups of five characters: `7K2QX-…`. For the person who joins the host.
    public func revealed() -> String {
        let characters = characters.revealedBytes()
        return stride(from: 0, to: HostCode.length, by: HostCode.group)
            .map { String(decoding: characters[$0..<$0 + HostCode.group], as: UTF8.self) }
            .joined(separator: "-")
    }

    // MARK: The public key

    /// What the host publishes for the hosts that have the data key: its public key and the masked nonce.
    func published(_ publicKey: [UInt8], nonce: Secret) throws(CryptographyError) -> [UInt8] {
        publicKey + (try masked(nonce.revealedBytes(), publicKey))
    }

    /// The public key in what the host of a role has published; nil if this is not its code.
    func publicKey(in published: [UInt8], of role: String) throws(CryptographyError) -> [UInt8]? {
        guard published.count == AgreementKey.length + HostCode.nonceLength else { return nil }
        let publicKey = Array(published.prefix(AgreementKey.length))
        let nonce = Secret(bytes: try masked(Array(published.dropFirst(AgreementKey.length)), publicKey))
        return try HostCode(nonce: nonce, publicKey: publicKey, role: role) == self ? publicKey : nil
    }

    private func masked(_ nonce: [UInt8], _ publicKey: [UInt8]) throws(CryptographyError) -> [UInt8] {
        let mask = try KeyDerivation.derive(
            from: characters, salt: publicKey, purpose: "ringback: mask of a host's nonce 2",
            length: HostCode.nonceLength)
        return zip(nonce, mask.revealedBytes()).map { $0 ^ $1 }
    }

    /// What is kept of a code that has failed: it does not reveal the code.
    func digest() throws(CryptographyError) -> String {
        Hex.text(try KeyDerivation.derive(from: characters, purpose: "ringback: a code that failed 1").revealedBytes())
    }

    // MARK: The data key

    /// Seals the hosts' data key for the host of a role.
    func seal(
        _ dataKey: Secret, for publicKey: [UInt8], of role: String, owner: String
    ) throws(CryptographyError) -> [UInt8] {
        try SealedForKey.seal(dataKey, for: publicKey, context: try context(role, owner))
    }

    /// Nil if it was not sealed for this key, role and owner by a host that knows this code.
    func open(
        _ wrapped: [UInt8], with key: AgreementKey, of role: String, owner: String
    ) throws(CryptographyError) -> Secret? {
        let found = try SealedForKey.open(wrapped, with: key, context: try context(role, owner))
        return found?.count == SealedBox.keyLength ? found : nil
    }

    private func context(_ role: String, _ owner: String) throws(CryptographyError) -> [UInt8] {
        let purpose = "ringback: the hosts' key for a host 1 \(owner.utf8.count):\(owner)\(role)"
        return try KeyDerivation.derive(from: characters, purpose: purpose).revealedBytes()
    }
}
