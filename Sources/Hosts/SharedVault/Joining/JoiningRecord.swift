internal import Cryptography
internal import Secrets
internal import SessionVault
internal import StrictJSON

/// What a host keeps of its joining, in the local vault: written before the invitation is accepted, since the password of
/// the role is this one afterwards and nobody else knows it.
struct JoiningRecord: Sendable, Equatable {
    /// The private part of the host's X25519 key.
    let agreement: Secret
    /// What the code is made of besides the key; empty in a record of a former version, whose code nobody accepts any
    /// more.
    let nonce: Secret
    let code: HostCode
    /// The password of the role once the invitation is accepted.
    let password: Secret
    var name: String
    /// The database is known to have accepted it.
    var isAccepted = false

    init(name: String, role: String, random: (Int) -> [UInt8]) throws(CryptographyError) {
        agreement = Secret(bytes: random(AgreementKey.length))
        nonce = Secret(bytes: random(HostCode.nonceLength))
        code = try HostCode(nonce: nonce, publicKey: try AgreementKey(secret: agreement).publicKey, role: role)
        password = Invitation.newPassword()
        self.name = name
    }

    func encoded() -> Secret {
        let object = JSONObject([
            .init("version", .integer(2)), .init("agreement", .string(Hex.text(agreement.revealedBytes()))),
            .init("nonce", .string(Hex.text(nonce.revealedBytes()))), .init("code", .string(code.revealed())),
            .init("password", .string(password.revealed())), .init("name", .string(name)),
            .init("accepted", .bool(isAccepted)),
        ])
        return Secret(bytes: JSON.object(object).serialized())
    }

    /// Nil if the text is no such record.
    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object,
            let nonce = object["version"]?.integer == 1 ? [] : object["nonce"]?.string.flatMap(Hex.bytes),
            object["version"]?.integer == 1 || object["version"]?.integer == 2,
            nonce.isEmpty || nonce.count == HostCode.nonceLength,
            let agreement = object["agreement"]?.string.flatMap(Hex.bytes), agreement.count == AgreementKey.length,
            let code = object["code"]?.string.flatMap({ HostCode(Secret($0)) }),
            let password = object["password"]?.string, !password.isEmpty, let name = object["name"]?.string,
            case .bool(let isAccepted)? = object["accepted"]
        else { return nil }
        self.agreement = Secret(bytes: agreement)
        self.nonce = Secret(bytes: nonce)
        self.code = code
        self.password = Secret(password)
        self.name = name
        self.isAccepted = isAccepted
    }

    /// What the database gets for the other hosts.
    func published() throws(CryptographyError) -> [UInt8] {
        try code.published(try AgreementKey(secret: agreement).publicKey, nonce: nonce)
    }

    /// The hosts' data key, if this is what another host has sealed for this one.
    func open(_ wrapped: [UInt8], of role: String, owner: String) throws(CryptographyError) -> Secret? {
        try code.open(wrapped, with: try AgreementKey(secret: agreement), of: role, owner: owner)
    }

    /// The data key, sealed for this host itself.
    func seal(_ dataKey: Secret, of role: String, owner: String) throws(CryptographyError) -> [UInt8] {
        try code.seal(dataKey, for: try AgreementKey(secret: agreement).publicKey, of: role, owner: owner)
    }
}
