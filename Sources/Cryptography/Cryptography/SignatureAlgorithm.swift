/// The supported signature algorithms of JOSE (RFC 7518 section 3.1, RFC 8037 section 3.1). Raw values are their JOSE
/// names. `none` and the HS family have no case, so no code can accept them. Attack: a verifier that
/// accepts HS256 can be made to use a published public key as the MAC key, and then anyone can sign.
public enum SignatureAlgorithm: String, Sendable, CaseIterable {
    case rs256 = "RS256"
    case rs384 = "RS384"
    case rs512 = "RS512"
    case ps256 = "PS256"
    case ps384 = "PS384"
    case ps512 = "PS512"
    case es256 = "ES256"
    case es384 = "ES384"
    case es512 = "ES512"
    /// With Ed25519 only. Ed448 is left out: no provider that we know signs with it, and implementations disagree about
    /// its `at_hash`.
    case edDSA = "EdDSA"

    /// The algorithm with this name, compared byte for byte. `Ed25519` (RFC 9864 section 2.2) is the newer name of what
    /// `EdDSA` means with an Ed25519 key, so both give the same case.
    public init?(rawValue: String) {
        let name = rawValue == "Ed25519" ? "EdDSA" : rawValue
        guard let algorithm = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name.utf8) }) else {
            return nil
        }
        self = algorithm
    }

    enum Scheme: Equatable {
        case rsaPKCS1, rsaPSS, ecdsa(EllipticCurve), ed25519
    }

    var scheme: Scheme {
        switch self {
        case .rs256, .rs384, .rs512: .rsaPKCS1
        case .ps256, .ps384, .ps512: .rsaPSS
        case .es256: .ecdsa(.p256)
        case .es384: .ecdsa(.p384)
        case .es512: .ecdsa(.p521)
        case .edDSA: .ed25519
        }
    }

    /// libcrypto's name of the digest; nil if the scheme includes the hashing (Ed25519).
    var digestName: String? {
        switch self {
        case .rs256, .ps256, .es256: "SHA256"
        case .rs384, .ps384, .es384: "SHA384"
        case .rs512, .ps512, .es512: "SHA512"
        case .edDSA: nil
        }
    }
}

/// The NIST curves that JOSE uses for signatures (RFC 7518 section 6.2.1.1). Raw values are their JOSE names.
public enum EllipticCurve: String, Sendable, CaseIterable {
    case p256 = "P-256"
    case p384 = "P-384"
    case p521 = "P-521"

    /// The length in bytes of one coordinate, and of each half of a signature.
    public var coordinateLength: Int {
        switch self {
        case .p256: 32
        case .p384: 48
        case .p521: 66
        }
    }
}
