public import HTTPMessages
public import Secrets
internal import StrictJSON

/// Token requests, which give a session. The grant type is in the query, the other parameters are in a JSON body.
extension SupabaseProject {
    /// The password grant with an e-mail address or a phone number. Throws for `password`.
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

    /// Redeems the code of a callback. A wrong verifier does not use up the code.
    public func codeGrant(code: Secret, verifier: Secret) -> HTTPRequest {
        grant(
            "pkce",
            JSONObject(["auth_code": .secret(code), "code_verifier": .secret(verifier)]))
    }

    /// The refresh request. The response may contain the only valid refresh token, so a partial one is kept, see
    /// ``SessionResponse/refreshToken``.
    public func refreshGrant(token: Secret) -> HTTPRequest {
        var request = grant("refresh_token", JSONObject(["refresh_token": .secret(token)]))
        request.keepsPartialBody = true
        return request
    }

    /// Exchanges an ID token of another provider (`apple`, `google`, `azure`, `custom:…`).
    ///
    /// `nonce` is the raw nonce. The token must contain its SHA-256 in lower-case hexadecimal; either both have a nonce
    /// or neither. `accessToken` is the provider's, which the server compares with the token's `at_hash`. With
    /// `linkingTo`, a user's access token, the identity is added to that user. Throws for `oauth_provider`.
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

    /// Exchanges a wallet's signature of a message (EIP-4361 and similar). `chain` is `ethereum` or `solana`. Throws
    /// for `chain` and `message`.
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

    /// Checks the syntax of a provider's name: `google`, `linkedin_oidc`, `custom:acme`. Throws for `oauth_provider`.
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
