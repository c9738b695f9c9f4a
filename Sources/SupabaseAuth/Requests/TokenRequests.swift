public import HTTPMessages
public import Secrets
internal import StrictJSON

/// Requests that end in a session: the grants of the token endpoint. The grant is named in the query, the rest is JSON.
extension SupabaseProject {
    /// Trades an e-mail address or phone number and a password. Throws for `password`.
    public func passwordGrant(
        _ contact: Contact, password: Secret, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        try PasswordRule.check(password, isNew: false)
        var body = JSONObject()
        body.set(contact)
        body["password"] = .secret(password)
        body.set(captcha: captcha)
        return grant("password", body)
    }

    /// Trades a callback's code. A wrong verifier does not consume it.
    public func codeGrant(code: Secret, verifier: Secret) -> HTTPRequest {
        grant(
            "pkce",
            JSONObject(["auth_code": .secret(code), "code_verifier": .secret(verifier)]))
    }

    /// Trades a refresh token. The answer may hold the only one that lives from then on, so that even a part of it is
    /// wanted, see ``SessionResponse/refreshToken``.
    public func refreshGrant(token: Secret) -> HTTPRequest {
        var request = grant("refresh_token", JSONObject(["refresh_token": .secret(token)]))
        request.keepsPartialBody = true
        return request
    }

    /// Trades an ID token of the provider's (`apple`, `google`, `azure`, `custom:…`).
    ///
    /// `nonce` is the raw one: the token must carry its SHA-256 in lower-case hexadecimal, and both must be there or
    /// neither. `accessToken` is the provider's, compared with the token's `at_hash`. With `linkingTo`, a user's access
    /// token, the identity is added to that user.
    public func idTokenGrant(
        provider: String, idToken: Secret, accessToken: Secret? = nil, nonce: Secret? = nil, captcha: Secret? = nil,
        linkingTo bearer: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        var body = JSONObject([
            "provider": .string(try SupabaseProject.checkedProvider(provider)), "id_token": .secret(idToken),
            "access_token": accessToken.map { .secret($0) }, "nonce": nonce.map { .secret($0) },
        ])
        if bearer != nil { body["link_identity"] = true }
        body.set(captcha: captcha)
        var request = grant("id_token", body, bearer: bearer)
        request.keepsPartialBody = bearer != nil
        return request
    }

    /// Trades a wallet's signature of a message (EIP-4361 and its like). `chain` is `ethereum` or `solana`.
    public func web3Grant(
        chain: String, message: String, signature: Secret, captcha: Secret? = nil
    ) throws(FieldError) -> HTTPRequest {
        guard ["ethereum", "solana"].contains(chain) else {
            throw FieldError(field: "chain", reason: "ethereum or solana")
        }
        guard (64...20_480).contains(message.utf8.count) else {
            throw FieldError(field: "message", reason: "not 64 to 20480 bytes")
        }
        var body = JSONObject([
            "chain": .string(chain), "message": .string(message), "signature": .secret(signature),
        ])
        body.set(captcha: captcha)
        return grant("web3", body)
    }

    private func grant(_ type: String, _ body: JSONObject, bearer: Secret? = nil) -> HTTPRequest {
        request("POST", "/token", query: [("grant_type", type)], body: body, bearer: bearer)
    }

    /// A provider's name as the server knows them: `google`, `linkedin_oidc`, `custom:acme`.
    static func checkedProvider(_ name: String) throws(FieldError) -> String {
        let isName =
            (1...100).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: ":"):
                    true
                default: false
                }
            }
        guard isName else { throw FieldError(field: "oauth_provider", reason: "not a provider's name") }
        return name
    }
}
