internal import BrokerCore
internal import LocalHTTP
internal import OAuthSignIn
internal import Records
internal import RingbackAPI
public import RingbackBase
public import SessionVault
public import SharedVault

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

/// The hosts that share the vault. None of this is served at exposed sockets.
struct HostResource: Resource {
    let api: SocketAPI
    /// How long an invitation may last, in seconds.
    private static let lifetimes = 60...604_800
    private static let usualLifetime = 3_600
    /// Names need no escapes in a path.
    private static let namePattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

    static let routes: [Route] = [
        Route(
            .joinVault, "Join the hosts that share the vault; the same call again changes nothing",
            body: .members(
                .secret("password", text: "The invitation's; only needed until it is accepted"),
                .optional("name", as: .pattern(namePattern), text: "This host's name; the machine's if nothing is said")
            ),
            .json(
                "JoinedHost", .required("host", "owner"),
                .optional("code", text: "What a host that has the key needs to give it to this one")),
            errors: .ofHosts.and([.invalidCredentials, .validationFailed]), HostResource.join),
        Route(.listVaultHosts, "The hosts that share the vault", .json(.hosts), errors: .ofHosts, HostResource.list),
        Route(
            .inviteVaultHost, "Invite one more host to share the vault",
            body: .members(.optional("lasting", as: .range(lifetimes), text: "Seconds")), statuses: [201],
            .json(
                "HostInvitation", .required("role", "password"),
                .required("store", text: "The value of store in [vault] of the host's configuration"),
                .required("expires_at", "expires_in", as: .integer)),
            errors: .ofHosts.and([.validationFailed]), HostResource.invite),
        Route(
            .removeVaultHost, "Remove another host, by name or role, and refresh every session once",
            .json(.removed), errors: .ofHosts.and([.notFound]), HostResource.remove),
        Route(
            .shareVault, "Give the hosts' key to the host with this code",
            body: .members(.secret("code", text: "What the host that joins has shown")),
            .json("SharedKey", .required("host")),
            errors: .ofHosts.and([.notFound, .validationFailed]), HostResource.share),
    ]

    func join(_ call: Call) async throws(Problem) -> ServerResponse {
        let hosts = try hosts()
        let (name, password) = (try call.text("name"), try call.secret("password"))
        if let name, !HostResource.isName(name) {
            throw call.invalid("name", "must be 1 to 64 letters, digits, dots, hyphens and underscores")
        }
        // The first attempt to open it may run.
        try await call.ask { () throws(BrokerError) in try await broker.vaultSettled(atMost: .seconds(30)) }
        let joined = try await ask(call) { () throws(HostFailure) in
            try await hosts.join(as: name, invitation: password)
        }
        if joined.isNew { note("vault_joined", ["host": joined.name, "owner": joined.owner]) }
        var object: JSONObject = ["host": joined.name, "owner": joined.owner]
        do throws(BrokerError) {
            try await broker.openVaultAgain()
        } catch .vaultLocked(_, obstacle: .noHostsKey) {
            object["code"] = joined.code.map { .string($0.revealed()) }
        } catch {
            throw Problem(error, language: call.language)
        }
        return ServerResponse(object)
    }

    func list(_ call: Call) async throws(Problem) -> ServerResponse {
        let hosts = try hosts()
        let found = try await ask(call) { () throws(HostFailure) in try await hosts.list() }
        return ServerResponse([
            "hosts": found.map(\.json),
            "stale": await EverySession(of: broker).names(where: hosts.isStale).map(\.rawValue),
            "left": await SealedSessions(of: broker).accounts(where: hosts.isStale),
        ])
    }

    func invite(_ call: Call) async throws(Problem) -> ServerResponse {
        let hosts = try hosts()
        let lasting = try call.number("lasting", in: HostResource.lifetimes) ?? HostResource.usualLifetime
        let (invitation, store) = try await ask(call) { () throws(HostFailure) in
            try await hosts.invite(lasting: .seconds(lasting))
        }
        note("host_invited", ["role": invitation.role], seconds: lasting)
        return ServerResponse(
            status: 201,
            [
                "role": invitation.role, "store": store, "password": invitation.password.revealed(),
                "expires_at": broker.now.seconds + lasting, "expires_in": lasting,
            ])
    }

    func share(_ call: Call) async throws(Problem) -> ServerResponse {
        let hosts = try hosts()
        guard let code = HostCode(Secret(try call.required("code"))) else {
            throw call.invalid("code", "must be the 20 letters and digits that the other host has shown")
        }
        let name = try await ask(call) { () throws(HostFailure) in try await hosts.share(with: code) }
        note("key_shared", ["host": name])
        return ServerResponse(["host": name])
    }

    func remove(_ call: Call) async throws(Problem) -> ServerResponse {
        let hosts = try hosts()
        let name = try await ask(call) { () throws(HostFailure) in try await hosts.remove(host: call["host"]) }
        note("host_removed", ["host": name])
        // What it had read is stale afterwards.
        let outcomes = await EverySession(of: broker).refresh(where: hosts.isStale)
        hosts.refreshStale()
        let names = { (isFailed: Bool) in
            outcomes.filter { ($0.error != nil) == isFailed }.map(\.account.rawValue)
        }
        return ServerResponse([
            "host": name, "refreshed": names(false), "failed": names(true),
            "left": await SealedSessions(of: broker).accounts(where: hosts.isStale),
        ])
    }

    private func note(_ event: String, _ names: KeyValuePairs<String, String>, seconds: Int? = nil) {
        let members = names.map { JSONObject.Member($0.key, .string(RecordKeeper.bounded($0.value))) }
        records?.audit.write(event, JSONObject(members + (["seconds": seconds] as JSONObject).members))
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.count <= 64 && text.utf8.first?.isLetterOrDigit == true
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
    }

    private func hosts() throws(Problem) -> any VaultHosts {
        guard let hosts = daemon.vaultHosts else {
            throw Problem(
                .vaultNotShared, "No database is configured whose rows hosts could share: store in [vault] names one.")
        }
        return hosts
    }

    private func ask<Value: Sendable>(
        _ call: Call, _ body: () async throws(HostFailure) -> Value
    ) async throws(Problem) -> Value {
        do throws(HostFailure) { return try await body() } catch { throw Problem(error, language: call.language) }
    }
}

extension Set<ErrorCode> {
    static let ofHosts: Set<ErrorCode> = [
        .vaultNotShared, .vaultLocked, .vaultUnreachable, .stateConflict, .internalError, .shuttingDown, .timeout,
    ]
}

extension Host {
    fileprivate var json: JSONObject {
        [
            "role": role, "name": name, "self": isSelf, "joined_at": joined.map { Int($0) },
            "seen_at": seen.map { Int($0) }, "has_key": hasKey,
        ]
    }
}

extension Component {
    fileprivate static let hosts = Component(
        "VaultHosts", .required("hosts", as: .array(.component(.host))),
        .required(
            "stale", as: .array(.string),
            text: "Accounts whose session a removed host may have read: they are refreshed"),
        left)
    private static let left: [Member] = .required(
        "left", as: .array(.string),
        text: "The same of accounts that are not configured here: a host that has them refreshes them")
    fileprivate static let host = Component(
        "VaultHost", .required("role"), .optional("name", text: "None until it has joined"),
        .required("self", "has_key", as: .boolean), .optional("joined_at", "seen_at", as: .integer))
    fileprivate static let removed = Component(
        "RemovedHost", .required("host"), .required("refreshed", as: .array(.string)),
        .required(
            "failed", as: .array(.string),
            text: "Accounts whose session what the host had read may still be good for; it is tried again"),
        left)
}

/// What hosts that share the vault do for each other. The daemon's main provides it, if the vault is shared.
public protocol VaultHosts: Sendable {
    /// See ``Sharing/join(as:otherwise:invitation:)``; without a name the host gets the machine's.
    func join(as name: String?, invitation: Secret?) async throws(HostFailure) -> JoinedHost
    /// `store` is the value of `store` in `[vault]`: it has no password.
    func invite(lasting: Duration) async throws(HostFailure) -> (invitation: Invitation, store: String)
    func share(with code: HostCode) async throws(HostFailure) -> String
    func list() async throws(HostFailure) -> [Host]
    func remove(host: String) async throws(HostFailure) -> String
    func isStale(_ slot: VaultSlot) async -> Bool
    /// What is stale is refreshed from now on, again and again until nothing is left.
    func refreshStale()
}
