public import RingbackBase

/// The response to ``TokenRequest/identityAssertion(of:type:scope:audience:resource:registration:endpoint:)``, once
/// ``TokenResponse`` has found no error in it.
public struct IdentityAssertion: Sendable, Equatable {
    /// Sent to the other authorization server unchanged. It is not verified here: that server does that.
    public let text: Secret
    /// In seconds from now, at least 1.
    public let lifetime: Int

    /// Throws `.invalid` if the response has another kind of token, or one that states no end. `now` in Unix seconds by
    /// our clock, which may be wrong.
    public init(parsing response: HTTPResponse, now: Int) throws(OAuthError) {
        let object = try ResponseReader.tokenObject(in: response)
        // It is no access token (RFC 8693 section 2.2.1).
        guard object["issued_token_type"]?.string == ExchangedTokenType.identityAssertion.uri,
            object["token_type"]?.string?.lowercased() == "n_a"
        else { throw .invalid(.token, reason: "no assertion of the requested type (id-jag, token_type N_A)") }
        guard let text = TokenText.secret(object["access_token"]?.string) else {
            throw .invalid(.token, reason: "an assertion that is not 1 to 65536 printable characters")
        }
        let claims = TokenSet.claims(of: text)
        let stated = LenientNumber.seconds(object["expires_in"])
        let starts = [now, LenientNumber.instant(claims?["iat"])].compactMap(\.self)
        let signed = LenientNumber.instant(claims?["exp"]).map { end in starts.map { end - $0 } } ?? []
        let lifetimes = [stated].compactMap(\.self) + signed
        guard let lifetime = lifetimes.filter({ $0 > 0 }).min() else {
            throw .invalid(.token, reason: "an assertion without an end")
        }
        self.text = text
        self.lifetime = min(lifetime, LenientNumber.longest)
    }
}

/// What a sign-in must fulfil before a request is granted (RFC 9470 section 3): it was too weak, or is too long ago.
public struct StepUpDemand: Sendable, Equatable {
    /// Space-separated, the preferred one first.
    public let acrValues: String?
    /// In seconds.
    public let maxAge: Int?

    /// Nil for a response without this error.
    public init?(in response: HTTPResponse) {
        guard let object = try? ResponseReader.tokenObject(in: response),
            object["error"] == "insufficient_user_authentication"
        else { return nil }
        acrValues = object["acr_values"]?.string.flatMap { values in
            let isPlain = values.utf8.allSatisfy { $0 == 0x20 || ScopeList.isCharacter($0) }
            return isPlain && (1...CheckedText.maxDescription).contains(values.utf8.count) ? values : nil
        }
        maxAge = LenientNumber.seconds(object["max_age"])
    }
}
