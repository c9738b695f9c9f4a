internal import Cryptography
internal import LocalHTTP
internal import StrictJSON

/// `POST /token?grant_type=id_token`: an ID token that the app got from the provider itself. Every provider's tokens
/// are those of the issuer of which the project is a part, for any of its clients. An error of the token has the third
/// form.
extension SupabaseAccounts {
    private static let withIDTokens = [
        "apple", "azure", "facebook", "google", "kakao", "keycloak", "snapchat", "vercel_marketplace",
    ]

    mutating func idTokenGrant(
        _ call: SupabaseCall, _ upstream: inout AuthorizationServer
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        let issuer = upstream.issuer.name
        let body = try call.body()
        let token = try body.text("id_token")
        guard !token.isEmpty else { throw .oauth("invalid request", "id_token required") }
        let provider = try SupabaseAccounts.providerName(body, issuer)
        guard call.settings.providers.contains(provider) else {
            throw SupabaseErrorResponse(
                400, "provider_disabled", "Provider (issuer \"\(issuer)\") is not enabled")
        }
        let claims = try SupabaseAccounts.verifiedClaims(token, &upstream, at: call.now)
        try SupabaseAccounts.checkNonce(claims, body.text("nonce"))
        let accessToken = try body.text("access_token")
        if !accessToken.isEmpty, let hash = claims["at_hash"]?.string {
            let isRight = SandboxAlgorithm.allCases.contains { IDTokenWriter.hash(accessToken, $0) == hash }
            guard isRight else { throw .oauth("invalid request", "Bad ID token") }
        }
        let subject = claims["sub"]?.string ?? ""
        guard let person = upstream.issuer.users.first(where: { $0.subject == subject }) else {
            throw .oauth("server_error", "Error getting user email from external provider")
        }
        let identity = SupabaseClaims(person, at: provider, issuer: issuer, showsName: provider != "apple")
        var target: String?
        if try body.flag("link_identity") ?? false {
            try call.checkLinking()
            target = try authenticate(call).user.id
        }
        return try signIn(users.user(for: identity, linkingTo: target, call), by: "oauth", call)
    }

    private static func providerName(
        _ body: SupabaseBody, _ issuer: String
    ) throws(SupabaseErrorResponse) -> String {
        let provider = try body.text("provider").lowercased()
        if provider.isEmpty {
            guard try !body.text("client_id").isEmpty, try body.text("issuer") == issuer else {
                throw .oauth("invalid request", "provider or client_id and issuer required")
            }
            return "google"
        }
        guard SupabaseAccounts.withIDTokens.contains(provider) else {
            throw .validation("Custom OIDC provider \"\(provider)\" not allowed")
        }
        return provider
    }

    private static func verifiedClaims(
        _ token: String, _ upstream: inout AuthorizationServer, at now: Int
    ) throws(SupabaseErrorResponse) -> JSONObject {
        guard let claims = upstream.claims(ofIDToken: token, at: now) else {
            throw .oauth("invalid request", "Bad ID token")
        }
        let audiences = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
        guard audiences.contains(where: { upstream.clients[$0] != nil }) else {
            throw .oauth("invalid request", "Unacceptable audience in id_token: \(audiences)")
        }
        return claims
    }

    /// The token contains the SHA-256 of the nonce that the app sends: whoever has only the token cannot use it.
    private static func checkNonce(_ claims: JSONObject, _ nonce: String) throws(SupabaseErrorResponse) {
        let claimed = claims["nonce"]?.string ?? ""
        guard claimed.isEmpty == nonce.isEmpty else {
            throw .oauth(
                "invalid request", "Passed nonce and nonce in id_token should either both exist or not.")
        }
        guard nonce.isEmpty || Digest.hex(Digest.sha256(nonce)) == claimed else {
            throw .oauth("invalid nonce", "Nonces mismatch")
        }
    }
}
