internal import Cryptography
public import Secrets
public import StrictJSON

/// The key is derived from a passphrase by scrypt and rests nowhere. Salt and cost are in the vault key's header.
public struct PassphraseSource: KeySource {
    private static let saltLength = 32

    private let cost: Scrypt.Cost

    public init() { self.init(cost: .standard) }

    /// For tests, which cannot wait.
    init(cost: Scrypt.Cost) { self.cost = cost }

    public var choice: KeySourceChoice { .passphrase }
    public var protects: String {
        "nobody reads the sealed sessions without the passphrase while the vault is locked; it is as strong as the "
            + "passphrase is hard to guess"
    }

    /// Without asking the person anything there is no passphrase.
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
        // The header is not authentic before the key is there: the cost is bounded by its type.
        guard parameters["kdf"]?.string == "scrypt", let n = parameters["n"]?.integer,
            let r = parameters["r"]?.integer, let p = parameters["p"]?.integer,
            let cost = Scrypt.Cost(validN: n, r: r, p: p),
            let salt = parameters["salt"]?.string.flatMap({ Base64URL.decode($0) }), (16...64).contains(salt.count)
        else {
            throw .failed(reason: "The parameters in vault.key are none that a passphrase is used with; restore it.")
        }
        return try PassphraseSource.derive(passphrase, salt, cost)
    }

    /// There is nothing to let go.
    public func remove(_ id: String, parameters: JSONObject) async -> Bool { true }

    private static func derive(
        _ passphrase: Secret, _ salt: [UInt8], _ cost: Scrypt.Cost
    ) throws(KeySourceError) -> Secret {
        do throws(CryptographyError) {
            return try Scrypt.derive(passphrase, salt: salt, cost: cost)
        } catch {
            throw .failed(
                reason: "There was not enough memory for the passphrase (128 MiB); close something, try again.")
        }
    }
}
