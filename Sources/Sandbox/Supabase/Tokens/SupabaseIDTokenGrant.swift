internal import Cryptography
internal import LocalHTTP
internal import StrictJSON

/// `POST /token?grant_type=id_token`: an ID token that the app got from the provider itself. Every provider's tokens
/// are those of the issuer of which the project is a part, for any of its clients. An error of the token has the third
/// form.
extension ProviderState {
    private static let withIDTokens = [
        "apple", "azure", "facebook", "google", "kakao", "keycloak", "snapchat", "vercel_marketplace",
    ]

    mutating func supabaseIDTokenGrant(_ call: SupabaseCall) throws(SupabaseErrorResponse) -> ServerResponse {
        let body = try call.body()
        let token = try body.text("id_token")
        guard !token.isEmpty else { throw .oauth("invalid request", "id_token required") }
        let provider = try providerName(body)
        guard supabase.settings.providers.contains(provider) else {
            throw SupabaseErrorResponse(
                400, "provider_disabled", "Provider (issuer \"\(issuer)\") is not enabled")
        }
        let claims = try verifiedClaims(token, at: call.now)
        try checkNonce(claims, body.text("nonce"))
        let accessToken = try body.text("access_token")
        if !accessToken.isEmpty, let hash = claims["at_hash"]?.string {
            let isRight = SandboxAlgorithm.allCases.contains { IDTokenWriter.hash(accessToken, $0) == hash }
            guard isRight else { throw .oauth("invalid request", "Bad ID token") }
        }
        let subject = claims["sub"]?.string ?? ""
        guard let person = users.first(where: { $0.subject == subject }) else {
            throw .oauth("server_error", "Error getting user email from external provider")
        }
        let identity = supabase.claims(
            of: person, provider: provider, issuer: issuer, showsName: provider != "apple")
        let userID: String
        if try body.flag("link_identity") ?? false {
            try supabase.checkLinking()
            userID = try supabase.authenticate(call).user.id
            try supabase.link(identity, to: userID, at: call.now)
        } else {
            userID = try supabase.user(for: identity, at: call.now)
        }
        return try supabase.tokenResponse(
            supabase.open(userID, by: "oauth", at: call.now), at: call.now)
    }

    private func providerName(_ body: SupabaseBody) throws(SupabaseErrorResponse) -> String {
        let provider = try body.text("provider").lowercased()
        if provider.isEmpty {
            guard try !body.text("client_id").isEmpty, try body.text("issuer") == issuer else {
                throw .oauth("invalid request", "provider or client_id and issuer required")
            }
            return "google"
        }
        guard ProviderState.withIDTokens.contains(provider) else {
            throw .validation("Custom OIDC provider \"\(provider)\" not allowed")
        }
        return provider
    }

    private mutating func verifiedClaims(_ token: String, at now: Int) throws(SupabaseErrorResponse) -> JSONObject {
        let bad = SupabaseErrorResponse.oauth("invalid request", "Bad ID token")
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = ProviderState.members(parts[0]),
            let claims = ProviderState.members(parts[1]), let signature = Base64URL.decode(parts[2]),
            let algorithm = header["alg"]?.string.flatMap(SignatureAlgorithm.init(rawValue:)),
            let set = try? keys.published(for: settings.algorithm, omitsIDs: settings.omitsKeyIDs)
        else { throw bad }
        let message = Array("\(parts[0]).\(parts[1])".utf8)
        let published = (set["keys"]?.array ?? []).filter { $0["use"] == "sig" }
        let isSigned = published.compactMap { SandboxClient.keys(in: ["keys": [$0]])?.first }.contains { key in
            key.fits(algorithm) && key.verify(signature: signature, message: message, algorithm: algorithm)
        }
        guard isSigned, claims["iss"]?.string == issuer, let expiry = claims["exp"]?.integer, now < expiry else {
            throw bad
        }
        let audiences = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
        guard audiences.contains(where: { client($0) != nil }) else {
            throw .oauth("invalid request", "Unacceptable audience in id_token: \(audiences)")
        }
        return claims
    }

    /// The token contains the SHA-256 of the nonce that the app sends: whoever has only the token cannot use it.
    private func checkNonce(_ claims: JSONObject, _ nonce: String) throws(SupabaseErrorResponse) {
        let claimed = claims["nonce"]?.string ?? ""
        guard claimed.isEmpty == nonce.isEmpty else {
            throw .oauth(
                "invalid request", "Passed nonce and nonce in id_token should either both exist or not.")
        }
        guard nonce.isEmpty || Digest.hex(Digest.sha256(nonce)) == claimed else {
            throw .oauth("invalid nonce", "Nonces mismatch")
        }
    }

    private static func members(_ part: Substring) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0) }?.object
    }
}
