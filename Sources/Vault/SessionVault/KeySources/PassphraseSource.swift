internal import Cryptography
internal import Encodings
public import Secrets
public import StrictJSON

/// Derives the key from a passphrase with scrypt; it is not stored. Salt and cost are in the header of `vault.key`.
public struct PassphraseSource: KeySource {
    private static let saltLength = 32

    private let cost: Scrypt.Cost

    public init() { self.init(cost: .standard) }

    /// For tests: with a lower cost.
    init(cost: Scrypt.Cost) { self.cost = cost }

    public var choice: KeySourceChoice { .passphrase }
    public var protection: VaultProtection { .passphrase }

    /// Always false, because the user would have to be asked for a passphrase.
    public func canHoldNewKey() async -> Bool { false }

    public func create(
        _ id: String, passphrase: Secret?
    ) async throws(KeySourceError) -> (key: Secret, parameters: JSONObject) {
        guard let passphrase, !passphrase.isEmpty else { throw .needsPassphrase }
        let salt = RandomToken.bytes(PassphraseSource.saltLength)
        let parameters = JSONObject([
            JSONObject.Member("kdf", "scrypt"), JSONObject.Member("salt", .string(Base64URL.encode(salt))),
            JSONObject.Member("n", .integer(cost.n)), JSONObject.Member("r", .integer(cost.r)),
            JSONObject.Member("p", .integer(cost.p)),
        ])
        return (try PassphraseSource.derive(passphrase, salt, cost), parameters)
    }

    public func fetch(
        _ id: String, parameters: JSONObject, passphrase: Secret?
    ) async throws(KeySourceError) -> Secret {
        guard let passphrase, !passphrase.isEmpty else { throw .needsPassphrase }
        // The header cannot be authenticated before the key is known. The type `Scrypt.Cost` limits the cost.
        guard parameters["kdf"]?.string == "scrypt", let n = parameters["n"]?.integer,
            let r = parameters["r"]?.integer, let p = parameters["p"]?.integer,
            let cost = Scrypt.Cost(validN: n, r: r, p: p),
            let salt = parameters["salt"]?.string.flatMap({ Base64URL.decode($0) }), (16...64).contains(salt.count)
        else { throw .failed(.invalidParameters) }
        return try PassphraseSource.derive(passphrase, salt, cost)
    }

    /// Nothing is stored, so nothing has to be removed.
    public func remove(_ id: String, parameters: JSONObject) async -> Bool { true }

    private static func derive(
        _ passphrase: Secret, _ salt: [UInt8], _ cost: Scrypt.Cost
    ) throws(KeySourceError) -> Secret {
        do throws(CryptographyError) {
            return try Scrypt.derive(passphrase, salt: salt, cost: cost)
        } catch {
            throw .failed(.outOfMemory)
        }
    }
}
