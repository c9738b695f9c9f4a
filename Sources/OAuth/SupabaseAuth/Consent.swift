public import HTTPMessages
public import Secrets
public import StrictJSON

/// What a user has allowed an OAuth client of the project. The project's own OAuth server (OAuth 2.1) asks the user once
/// for each client.
public struct Consent: Sendable, Equatable {
    /// The client's UUID.
    public let clientID: String
    public let clientName: String?
    public let clientURI: String?
    /// In the order of the response.
    public let scopes: [String]
    /// As the server writes it (RFC 3339).
    public let grantedAt: String?

    /// Reads an entry of the server's list; nil without the client's id.
    init?(reading document: JSONObject) {
        guard let client = document["client"]?.object, let id = client.word("id") else { return nil }
        clientID = id
        clientName = client.word("name")
        clientURI = client.word("uri")
        scopes = (document["scopes"]?.array ?? []).compactMap(\.string)
        grantedAt = document.word("granted_at")
    }

    /// The consent in the socket API's form.
    public var json: JSONObject {
        JSONObject([
            "client_id": .string(clientID), "client_name": .optional(clientName), "client_uri": .optional(clientURI),
            "scopes": .array(scopes.map { .string($0) }), "granted_at": .optional(grantedAt),
        ])
    }
}

/// The response to ``SupabaseProject/consents(bearer:)``.
public struct ConsentList: Sendable, Equatable {
    public let consents: [Consent]

    /// Reads the response. Entries without a client's id are skipped, because they cannot be revoked. Throws
    /// ``SupabaseError``.
    public init(reading response: HTTPResponse) throws(SupabaseError) {
        guard let entries = try ErrorReading.json(response).array else { throw .invalid(reason: "no list of consents") }
        consents = entries.compactMap { $0.object.flatMap { Consent(reading: $0) } }
    }
}

/// Requests about the user's consents. A project whose OAuth server is off responds with `feature_disabled`.
extension SupabaseProject {
    private static let consentPath = "/user/oauth/grants"

    /// Requests the user's consents; the response is a ``ConsentList``.
    public func consents(bearer: Secret) -> HTTPRequest {
        request("GET", SupabaseProject.consentPath, bearer: bearer)
    }

    /// Revokes a consent; the response is a ``RemovalResponse``. The server also ends the client's sessions of this
    /// user. Throws for `id`.
    public func revokeConsent(client id: String, bearer: Secret) throws(FieldError) -> HTTPRequest {
        guard PlainText.isUUID(id) else { throw FieldError(field: "id", reason: "not a UUID") }
        return request("DELETE", SupabaseProject.consentPath, query: [("client_id", id)], bearer: bearer)
    }
}
