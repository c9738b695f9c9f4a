internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import Records
internal import RingbackAPI
internal import RingbackBase
internal import SessionVault

struct VaultResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .lockVault, "Forget the vault's key: no session is served until it is unlocked", .json(.vault),
            errors: .ofVault
        ) { (broker, call) throws(Problem) in
            try await call.ask { () throws(BrokerError) in try await broker.lockVault() }
            return broker.vault.status.json
        },
        Route(
            .unlockVault, "Open the vault; its sessions can be used again",
            body: .members(.secret("passphrase", text: "Where the key's source asks for one")), .json(.vault),
            errors: .ofVault.and([.invalidCredentials, .rateLimited, .validationFailed])
        ) { (broker, call) throws(Problem) in
            let passphrase = try call.secret("passphrase")
            try await forUser(call) { () throws(BrokerError) in
                let pid = call.process ?? 0
                let caller = UnlockCaller(
                    process: pid, groups: ProcessFacts.groups(of: pid), sessionStart: ProcessFacts.sessionStart(of: pid)
                )
                try await broker.unlockVault(passphrase: passphrase, by: caller)
            }
            return broker.vault.status.json
        },
        Route(
            .rekeyVault, "Move the vault's key to another source",
            body: .members(
                .required("key_source", as: .oneOf(KeySourceChoice.self)),
                .secret("passphrase", text: "The new one, for the source passphrase")), .json(.vault),
            errors: .ofVault.and([.invalidCredentials, .rateLimited, .validationFailed])
        ) { (broker, call) throws(Problem) in
            guard let choice = KeySourceChoice(rawValue: try call.required("key_source")) else {
                let words = KeySourceChoice.allCases.map(\.rawValue).joined(separator: ", ")
                throw call.invalid("key_source", "must be one of: \(words)")
            }
            let passphrase = try call.secret("passphrase")
            if choice == .passphrase, passphrase == nil {
                throw call.invalid("passphrase", "it is required for key_source passphrase")
            }
            try await forUser(call) { () throws(BrokerError) in
                try await broker.rekeyVault(to: choice, passphrase: passphrase)
            }
            return broker.vault.status.json
        },
    ]

    /// A user has requested this, so a locked keyring may show its prompt.
    private static func forUser(
        _ call: Call, _ body: @Sendable () async throws(BrokerError) -> Void
    ) async throws(Problem) {
        let outcome: Result<Void, Problem> = await KeyRequest.$isInteractive.withValue(true) {
            do throws(Problem) { return .success(try await call.ask(body)) } catch { return .failure(error) }
        }
        try outcome.get()
    }
}

extension KeySourceChoice? {
    /// As the socket API and the audit log name it; `undecided` before the vault's first opening.
    var word: String { self?.rawValue ?? "undecided" }
}

extension VaultStatus {
    var json: JSONObject {
        let database: JSONObject? = database.map { database in
            [
                "place": database.place, "reachable": database.problem == nil, "unsent": database.unsent,
                "problem": database.problem?.sentence, "notifications": database.listens,
                "synchronous_standby": database.hasSynchronousStandby,
                "away_seconds": database.away.map { Int($0.components.seconds) },
            ]
        }
        var object: JSONObject = [
            "kind": kind.rawValue, "locked": isLocked, "reason": reason?.sentence, "key_source": keySource.word,
            "protects": protection.sentence, "needs_new_passphrase": needsNewPassphrase ? true : nil,
            "database": database, "other_key_source": otherKeySource?.rawValue,
        ]
        for member in obstacle?.members.members ?? [] { object[member.name] = member.value }
        return object
    }
}

extension Component {
    static let vault = Component(
        "Vault", .required("kind", "key_source", "protects"), .required("locked", as: .boolean),
        .optional("reason", "other_key_source", "cause", "path"), .optional("needs_new_passphrase", as: .boolean),
        .optional("database", as: .component(.vaultDatabase), text: "Of a vault that several hosts share"))

    static let vaultDatabase = Component(
        "VaultDatabase", .required("place"), .required("reachable", as: .boolean), .optional("problem"),
        .optional("away_seconds", as: .integer, text: "For how long it could not be used"),
        .optional("notifications", as: .boolean, text: "Whether it tells of changes at once, or they are looked for"),
        .optional("synchronous_standby", as: .boolean, text: "Whether its commits wait for a standby"),
        .required("unsent", as: .integer, text: "How many changes of this host the database does not have yet"))
}

/// Sessions in the vault whose account is not configured any more. `GET /v1/status` lists them.
struct SealedSessionResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .removeSealedSessions, "Remove an account's sessions that belong to no configured account",
            query: .optional("skip_revocation", as: .boolean, text: "Do not revoke the sessions at the provider"),
            .json(
                "RemovedSessions", .required("account"),
                .required("sessions", as: .array(.component(.removedSession)))),
            errors: .ofProvider.and([.accountNotFound, .notFound, .stateConflict, .validationFailed])
        ) { (broker, call) throws(Problem) in
            let revokes = try !call.flag("skip_revocation")
            let removed = try await call.ask { name throws(BrokerError) in
                try await SealedSessions(of: broker).remove(of: name, revokes: revokes)
            }
            let sessions = removed.map { removed in
                var object = removed.session.members
                object["revocation"] = .string(removed.revocation.rawValue)
                object["error"] = removed.error.map { Problem($0, language: call.language).json }
                return object
            }
            return ["account": call["account"], "sessions": sessions]
        }
    ]
}

extension SealedSession {
    var members: JSONObject {
        [
            "account": account, "provider": provider, "client_id": clientID, "subject": subject,
            "display_name": displayName ?? unnamedUser, "signed_in_at": signedInAt.seconds,
            "signed_out": isSignedOut, "revocable": isRevocable,
        ]
    }
}

extension Component {
    private static let ofSealedSession: [Member] = .members(
        .required("account", "client_id", "display_name"),
        .required("provider", text: "The issuer, or the origin of the token endpoint"), .optional("subject"),
        .required("signed_in_at", as: .integer),
        .required("signed_out", as: .boolean, text: "Signed out here; not revoked at the provider yet"),
        .required("revocable", as: .boolean, text: "The session can be revoked at the provider"))

    static let sealedSession = Component("SealedSession", ofSealedSession)

    fileprivate static let removedSession = Component(
        "RemovedSession", ofSealedSession, .required("revocation", as: .oneOf(RemovedSession.Revocation.self)),
        .optional("error", as: .component(.problem)))
}
