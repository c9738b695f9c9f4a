internal import Cryptography
internal import Secrets
internal import SessionVault
internal import StrictJSON

/// What a host keeps of its joining, in the local vault: written before the invitation is accepted, since the password of
/// the role is this one afterwards and nobody else knows it.
struct JoiningRecord: Sendable, Equatable {
    /// The private part of the host's X25519 key.
    let agreement: Secret
    let code: HostCode
    /// The password of the role once the invitation is accepted.
    let password: Secret
    var name: String
    /// The database is known to have accepted it.
    var isAccepted = false

    init(name: String, random: (Int) -> [UInt8]) {
        agreement = Secret(bytes: random(AgreementKey.length))
        code = HostCode(random(HostCode.randomLength))
        password = Invitation.newPassword()
        self.name = name
    }

    func encoded() -> Secret {
        let object = JSONObject([
            .init("version", .integer(1)), .init("agreement", .string(Hex.text(agreement.revealedBytes()))),
            .init("code", .string(code.revealed())), .init("password", .string(password.revealed())),
            .init("name", .string(name)), .init("accepted", .bool(isAccepted)),
        ])
        return Secret(bytes: JSON.object(object).serialized())
    }

    /// Nil if the text is no such record.
    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object, object["version"]?.integer == 1,
            let agreement = object["agreement"]?.string.flatMap(Hex.bytes), agreement.count == AgreementKey.length,
            let code = object["code"]?.string.flatMap({ HostCode(Secret($0)) }),
            let password = object["password"]?.string, !password.isEmpty, let name = object["name"]?.string,
            case .bool(let isAccepted)? = object["accepted"]
        else { return nil }
        self.agreement = Secret(bytes: agreement)
        self.code = code
        self.password = Secret(password)
        self.name = name
        self.isAccepted = isAccepted
    }

    /// What the database gets for the other hosts.
    func published(of role: String) throws(CryptographyError) -> [UInt8] {
        try code.published(try AgreementKey(secret: agreement).publicKey, of: role)
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
