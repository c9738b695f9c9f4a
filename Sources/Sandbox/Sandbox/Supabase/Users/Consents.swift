internal import LocalHTTP
internal import StrictJSON

/// What users have allowed the clients of the project's own OAuth server. The sandbox has this list of that server, and
/// no authorization endpoint.
struct SupabaseConsents {
    private struct Consent {
        let userID: String
        let clientID: String
        let name: String
        let scopes: [String]
        let grantedAt = "2026-01-02T03:04:05Z"

        var json: JSON {
            [
                "client": [
                    "id": .string(clientID), "name": .string(name), "uri": "https://client.example",
                    "logo_uri": "https://client.example/logo.png",
                ],
                "scopes": .array(scopes.map(JSON.string)), "granted_at": .string(grantedAt),
            ]
        }
    }

    /// Nil while the project's OAuth server is off.
    private var consents: [Consent]?

    /// `GET` and `DELETE /user/oauth/grants`.
    mutating func answer(
        _ call: SupabaseCall, _ accounts: inout SupabaseAccounts
    ) throws(SupabaseErrorResponse) -> ServerResponse {
        guard let all = consents else {
            throw SupabaseErrorResponse(404, "feature_disabled", "OAuth server is disabled")
        }
        let user = try accounts.authenticate(call).user
        guard call.method == "DELETE" else {
            return SupabaseResponses.json(.array(all.filter { $0.userID == user.id }.map(\.json)))
        }
        guard let clientID = call.query("client_id") else { throw .validation("client_id query parameter is required") }
        guard SupabaseText.isUUID(clientID) else { throw .validation("Invalid client_id format") }
        guard let index = all.firstIndex(where: { $0.userID == user.id && $0.clientID == clientID.lowercased() }) else {
            throw SupabaseErrorResponse(404, "oauth_consent_not_found", "No active grant found for this client")
        }
        consents?.remove(at: index)
        accounts.sessions.end { $0.userID == user.id && $0.clientID == clientID.lowercased() }
        return SupabaseResponses.empty(204)
    }

    /// The control document's `consents`; false for another key.
    mutating func set(
        _ key: String, to member: JSONObject.Member, _ users: SupabaseUsers
    ) throws(ControlDocument.Mistake) -> Bool {
        guard key == "consents" else { return false }
        guard !member.isNull else {
            consents = nil
            return true
        }
        consents = try member.each { item throws(ControlDocument.Mistake) in
            try item.allow(["user", "client_id", "name", "scopes"])
            let address = try item.required("user").string()
            let clientID = try item.required("client_id").string()
            let scopes = try item.optional("scopes")?.each { scope throws(ControlDocument.Mistake) in
                try scope.string()
            }
            return Consent(
                userID: users.user(email: address)?.id ?? "", clientID: clientID,
                name: try item.optional("name")?.string() ?? "", scopes: scopes ?? ["email"])
        }
        return true
    }
}
