public import BrokerCore
public import SupabaseAuth

/// What the signed-in user has allowed OAuth clients of the project.
extension SupabaseOperations {
    /// Lists the user's consents.
    public func consents(_ name: AccountName) async throws(BrokerError) -> [Consent] {
        let response = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in project.consents(bearer: token) },
                borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try ConsentList(reading: response) }))
        return try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try ConsentList(reading: response).consents
        }
    }

    /// Revokes the user's consent for a client. The project ends that client's sessions; this session stays.
    public func revokeConsent(_ name: AccountName, client: String) async throws(BrokerError) {
        _ = try await sessions.change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.revokeConsent(client: client, bearer: token)
                }, borrowsToken: true))
    }
}
