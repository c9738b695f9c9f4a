package import RingbackAPI
package import StrictJSON

/// What a caller may ask of a session (`GET …/session`).
package struct SessionRequest: Sendable {
    package var account: String?
    package var issuer: String?
    package var minValid: Int?
    package var timeout: Int?
    package var scope: String?
    package var audience: String?
    package var resource: String?
    /// Nil for an access token.
    package var kind: TokenKind?
    package var subject: String?
    package var include: String?
    /// If signed out, start or join a sign-in and wait for it, no longer than `timeout`.
    package var waitsForSignIn = false

    package init(account: String?) { self.account = account }
}

extension BrokerCalls {
    package func session(_ request: SessionRequest) throws(RingbackError) -> JSON {
        let endpoint: Endpoint = request.account == nil ? .getSessionByIssuer : .getSession
        var target = try RequestTarget(endpoint, request.account.map { [$0] } ?? [])
        target.add("issuer", request.issuer)
        target.add("min_valid", request.minValid.map(String.init))
        target.add("timeout", request.timeout.map(String.init))
        target.add("scope", request.scope)
        target.add("audience", request.audience)
        target.add("resource", request.resource)
        target.add("kind", request.kind?.rawValue)
        target.add("subject", request.subject)
        target.add("include", request.include)
        if request.waitsForSignIn { target.add("sign_in", "wait") }
        do throws(RingbackError) {
            // The daemon limits the wait itself (600 s at most). The seconds beyond that are for a daemon that hangs.
            return try call(
                endpoint, at: target,
                timeout: .seconds(min(max(request.timeout ?? 30, 0), 600) + 5))
        } catch {
            // A restricted socket serves the token without the user, so the user is read from the account.
            guard error.kind == .policyDenied, request.include == "user" else { throw error }
            var rest = request
            rest.include = nil
            var answer = try session(rest).object ?? JSONObject()
            if let name = answer["account"]?.string { answer["user"] = (try? account(name))?["user"] }
            return .object(answer)
        }
    }
}
