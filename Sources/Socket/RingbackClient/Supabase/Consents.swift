internal import RingbackAPI
package import StrictJSON

/// What a user has allowed an OAuth client of a Supabase project.
public struct Consent: Sendable, Equatable {
    /// What ``BrokerClient/revokeConsent(_:client:)`` takes.
    public var clientID: String
    public var clientName: String?
    /// The client's web page.
    public var clientURI: String?
    public var scopes: [String]
    public var grantedAt: WallInstant?

    package init(reading json: JSON) throws(RingbackError) {
        guard let id = json["client_id"]?.string else { throw .missing("client_id", in: "consent") }
        clientID = id
        clientName = json["client_name"]?.string
        clientURI = json["client_uri"]?.string
        scopes = (json["scopes"]?.array ?? []).compactMap(\.string)
        grantedAt = WallInstant(text: json["granted_at"])
    }
}

extension BrokerClient {
    /// The OAuth clients that the user has allowed at the project's own OAuth server. If that server is off, this throws
    /// `method_unsupported`.
    public func consents(_ account: String) async throws(RingbackError) -> [Consent] {
        try await run { calls throws(RingbackError) in
            try BrokerClient.list(try calls.project(.listConsents, account), "consents", Consent.init(reading:))
        }
    }

    /// Revokes the consent for a client. The project ends that client's sessions of the user.
    ///
    /// - Throws: `not_found` for a client that the user has not allowed.
    public func revokeConsent(_ account: String, client: String) async throws(RingbackError) {
        try await run { calls throws(RingbackError) in _ = try calls.project(.revokeConsent, account, client) }
    }
}
