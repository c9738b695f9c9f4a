public import RingbackBase

/// Whether tokens are bound to a key of ours (RFC 9449). The raw values are those of the configuration.
public enum DPoPUse: String, Sendable, Equatable, CaseIterable {
    /// No proof is sent.
    case off
    /// The refresh token alone is bound: few programs can use a bound access token.
    case refreshOnly = "refresh-only"
    /// The access token is bound, too.
    case required
    /// If the servers offer it. Both types of access tokens are accepted.
    case automatic = "auto"

    /// The `token_type` of a bound access token.
    public static let boundType = "DPoP"

    /// RFC 9449 section 5: a client that relies on the binding discards a response that says Bearer.
    func check(_ tokens: TokenSet) throws(OAuthError) {
        let isBound = tokens.tokenType == DPoPUse.boundType
        switch self {
        case .off where isBound:
            throw .invalid(.token, reason: "a token bound to a key (DPoP), although the request had none")
        case .refreshOnly where isBound:
            throw .invalid(
                .token,
                reason:
                    "the access token is bound to a key (token_type DPoP), and dpop = \"refresh-only\" takes none. Let "
                    + "the provider bind refresh tokens alone; in Keycloak by the executor dpop-bind-enforcer with “Bind "
                    + "only refresh token for public client”, and without “Require DPoP bound tokens” of the client")
        case .required where !isBound:
            throw .invalid(
                .token,
                reason:
                    "the access token is bound to no key (token_type Bearer), and dpop = \"required\" takes bound ones "
                    + "alone")
        default: break
        }
    }
}

/// Why a server refuses a proof. Neither says anything about the grant or the token.
public enum DPoPRefusal: String, Sendable, Equatable {
    /// RFC 9449 sections 8 and 9.
    case nonce = "use_dpop_nonce"
    case proof = "invalid_dpop_proof"

    /// From the challenge of a resource, or the error of an authorization server; nil for another response.
    public init?(in response: HTTPResponse) {
        guard (400..<500).contains(response.status) else { return nil }
        let challenge = BearerChallenge(in: response.fields, of: "dpop")?.error.flatMap(DPoPRefusal.init(rawValue:))
        guard let refusal = challenge ?? DPoPRefusal(inBodyOf: response) else { return nil }
        self = refusal
    }

    private init?(inBodyOf response: HTTPResponse) {
        guard let object = try? ResponseReader.object(in: response, of: .token), let error = object["error"]?.string
        else { return nil }
        self.init(rawValue: error)
    }
}

/// A server's nonce for proofs (RFC 9449 section 8.1).
public enum DPoPNonce {
    /// In bytes. A proof with a longer one would not fit the fields that servers take.
    public static let maxLength = 2_048

    /// What a response states, whatever its status; nil if there is none, or more than one (RFC 9449 section 8.1), and for
    /// characters that are not allowed there.
    public static func stated(in fields: HTTPFields) -> String? {
        let stated = fields[all: "DPoP-Nonce"]
        return stated.count == 1 && isNonce(stated[0]) ? stated[0] : nil
    }

    public static func isNonce(_ text: String) -> Bool {
        (1...maxLength).contains(text.utf8.count) && text.utf8.allSatisfy { ScopeList.isCharacter($0) }
    }
}
