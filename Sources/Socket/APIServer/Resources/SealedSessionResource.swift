internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import RingbackAPI
internal import StrictJSON

/// Sessions in the vault whose account is not configured any more. `GET /v1/status` lists them.
struct SealedSessionResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .removeSealedSessions, "Remove an account's sessions that belong to no configured account",
            query: [.optional("skip_revocation", .boolean, "Do not revoke the sessions at the provider")],
            .json(.removedSessions),
            errors: .ofProvider.and([.accountNotFound, .notFound, .stateConflict, .validationFailed]),
            SealedSessionResource.remove)
    ]

    func remove(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let revokes = try !call.flag("skip_revocation")
        let removed = try await call.ask { () throws(BrokerError) in
            try await SealedSessions(of: broker).remove(of: name, revokes: revokes)
        }
        let sessions = removed.map { removed -> JSON in
            var object = removed.session.members
            object["revocation"] = .string(removed.revocation.rawValue)
            object["error"] = removed.error.map { Problem($0, language: call.language).json }
            return .object(object)
        }
        return ServerResponse(json: ["account": .string(name.rawValue), "sessions": .array(sessions)])
    }
}

extension SealedSession {
    /// The session for callers, without secrets.
    var members: JSONObject {
        var object = JSONObject([
            .init("account", .string(account)), .init("provider", .string(provider)),
            .init("client_id", .string(clientID)),
        ])
        object["subject"] = subject.map { .string($0) }
        object["display_name"] = .string(displayName ?? unnamedUser)
        object["signed_in_at"] = .integer(signedInAt.seconds)
        object["signed_out"] = .bool(isSignedOut)
        object["revocable"] = .bool(isRevocable)
        return object
    }
}

extension Component {
    private static let ofSealedSession: [Member] = [
        .required("account", .string),
        .required("provider", .string, "The issuer, or the origin of the token endpoint"),
        .required("client_id", .string), .optional("subject", .string), .required("display_name", .string),
        .required("signed_in_at", .integer),
        .required("signed_out", .boolean, "Signed out here; not revoked at the provider yet"),
        .required("revocable", .boolean, "The session can be revoked at the provider"),
    ]

    static let sealedSession = Component("SealedSession", ofSealedSession)

    private static let removedSession = Component(
        "RemovedSession",
        ofSealedSession + [
            .required("revocation", .oneOf(RemovedSession.Revocation.self)),
            .optional("error", .component(.problem)),
        ])

    fileprivate static let removedSessions = Component(
        "RemovedSessions",
        [.required("account", .string), .required("sessions", .array(.component(.removedSession)))])
}
