internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI
internal import RingbackBase
internal import SupabaseSignIn
internal import Synchronization

struct SessionResource: Resource {
    let api: SocketAPI
    static let routes: [Route] = [
        Route(
            .getSession, "A token of the account's session", query: parameters, .json(.session), errors: errors,
            SessionResource.getSession),
        Route(
            .getSessionByIssuer, "A token of the account's session",
            query: issuer + parameters, .json(.session), errors: errors,
            SessionResource.getSessionByIssuer),
        Route(
            .refresh, "Refresh now",
            body: .members(
                .optional("force", as: .boolean), .optional("rejected_sha256", as: .pattern("^[0-9a-fA-F]{64}$"))),
            .json(.account),
            errors: .ofToken, SessionResource.refresh),
        Route(
            .signOut, "Sign out, and revoke the session at the provider",
            query: .members(
                .optional("scope", text: "local (the default), global or others"),
                .optional("end_session", text: "true or plain: name the page that ends it in the browser too"),
                .optional(
                    "forget", as: .boolean, text: "Forget also which users have signed in: the account is to be removed"
                )), .json(.signedOut), errors: .ofSession, SessionResource.signOut),
    ]

    func getSession(_ call: Call) async throws(Problem) -> ServerResponse {
        try await session(of: try call.account(), call)
    }

    func getSessionByIssuer(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let issuer = call.query("issuer") else { throw call.invalid("issuer", "it is required here") }
        let name = try await call.ask { () throws(BrokerError) in try await broker.account(issuer: issuer) }
        return try await session(of: name, call)
    }

    private func session(of name: AccountName, _ call: Call) async throws(Problem) -> ServerResponse {
        var query = try call.sessionQuery()
        if query.kind == .idToken, query.key != .own {
            throw call.invalid("kind", "an ID token cannot be downscoped: leave scope, audience and resource out")
        }
        let extras = try included(call)
        // An ID token proves who the user is. A program that may have an access token may not always have it.
        if query.kind == .idToken || extras.contains(.idToken) {
            try api.authorize(call.request, .idToken, name.rawValue)
        }
        let use: ConsentUse =
            extras.contains(.providerToken)
            ? .providerToken : query.kind == .idToken || extras.contains(.idToken) ? .idToken : .token
        query.timeout = try await api.consent(to: use, of: name, scope: query.key.scopes, call, within: query.timeout)
        let wanted = query
        let waitsForSignIn = try call.query("sign_in", as: SignInMode.self) == .wait
        let issuedToken = try await call.ask { () throws(BrokerError) in
            waitsForSignIn
                ? try await broker.sessionAfterSignIn(name, wanted) : try await broker.session(name, wanted)
        }
        let isIDToken = query.kind == .idToken
        api.noteIssuedToken(call.facts, issuedToken, query.key, isIDToken ? .idToken : .token)
        if extras.contains(.idToken), !isIDToken { api.noteIssuedToken(call.facts, issuedToken, query.key, .idToken) }
        var object = SocketAPI.members(of: issuedToken, isIDToken: isIDToken)
        if extras.contains(.idToken), !isIDToken {
            object["id_token"] = issuedToken.idToken.map { .string($0.revealed()) }
        }
        try include(extras, issuedToken, into: &object, call)
        if extras.contains(.profile) { object.members += try await profile(of: name, call) }
        if query.key != .own, let lost = try? await broker.account(name).lostScopes, !lost.isEmpty {
            object["lost_scope"] = .string(lost.joined(separator: " "))
        }
        if extras.contains(.user) { object["user"] = issuedToken.user.map { .object($0) } }
        api.addExpiry(of: issuedToken, to: &object)
        return ServerResponse(json: .object(object))
    }

    /// Adds members that only some accounts have. Without them the request is rejected: a missing one could be misread.
    private func include(
        _ extras: Set<Extra>, _ issuedToken: IssuedToken, into object: inout JSONObject, _ call: Call
    ) throws(Problem) {
        for extra in [Extra.providerToken, .profile]
        where extras.contains(extra) && issuedToken.supabase == nil {
            throw call.invalid("include", "this account has no \(extra.rawValue)")
        }
        guard extras.contains(.providerToken) else { return }
        try api.authorize(call.request, .providerToken, issuedToken.account.rawValue)
        guard let token = issuedToken.supabase?.providerToken else { return }
        object["provider_token"] = .string(token.revealed())
        api.noteIssuedToken(call.facts, issuedToken, .own, .providerToken)
    }

    /// If the row cannot be read now, the token is issued all the same.
    private func profile(of name: AccountName, _ call: Call) async throws(Problem) -> [JSONObject.Member] {
        let found: SupabaseProfile?
        do throws(BrokerError) { found = try await broker.supabase.profile(name) } catch {
            return [.init("profile_status", "unavailable")]
        }
        switch found {
        case nil: throw call.invalid("include", "this account has no profile; see profile = { table, key }")
        case .missing: return [.init("profile_status", "missing")]
        case .row(let row, let isActive):
            return [.init("profile", .object(row)), .init("profile_status", isActive ? "active" : "inactive")]
        }
    }

    private func included(_ call: Call) throws(Problem) -> Set<Extra> {
        var extras: Set<Extra> = []
        for word in call.query("include")?.split(separator: ",") ?? [] {
            guard let extra = Extra(rawValue: String(word)) else {
                let words = Extra.allCases.map(\.rawValue).sorted().joined(separator: ", ")
                throw call.invalid("include", "must list any of: \(words)")
            }
            extras.insert(extra)
        }
        return extras
    }

    private enum Extra: String, CaseIterable {
        case idToken = "id_token"
        case providerToken = "provider_token"
        case user, profile
    }

    private enum SignInMode: String, CaseIterable { case wait }
    private enum SignOutScope: String, CaseIterable { case local, global, others }

    func refresh(_ call: Call) async throws(Problem) -> ServerResponse {
        let isForced = try call.truth("force")
        let rejected = try call.digest("rejected_sha256")
        let account = try await call.account { name throws(BrokerError) in
            try await broker.refresh(name, isForced: isForced, rejected: rejected)
        }
        return ServerResponse(account)
    }

    func signOut(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let scope = try call.query("scope", as: SignOutScope.self) ?? .local
        let forgets = try call.flag("forget")
        let isProject = try await call.ask(broker.supabase.isProject)
        guard scope == .local || isProject else {
            throw Problem(.methodUnsupported, "The provider of \(name) ends single sessions only: use scope=local.")
        }
        if scope == .others { return ServerResponse(try await call.account(broker.supabase.signOutOthers)) }
        // Read before the session is closed. The page can be found out afterwards, when readers see no session.
        var ending: EndingSession?
        if try call.query("end_session", as: EndSessionForm.self) != nil {
            ending = try await call.ask { () throws(BrokerError) in try await broker.ending(of: name) }
        }
        let outcome = try await call.ask { () throws(BrokerError) in
            try await broker.signOut(name, endingAll: scope == .global)
        }
        var object = outcome.account.json(in: call.language)
        object["had_session"] = .bool(outcome.hadSession)
        object["revocation_pending"] = outcome.isRevocationPending ? true : nil
        if let revocation = outcome.revocation {
            object["revocation"] = .string(revocation.word)
            if case .refused(let error) = revocation {
                object["revocation_error"] = Problem(error, language: call.language).json
            }
        }
        object["still_valid"] = outcome.leftover.map { .object(SessionResource.stillValid($0)) }
        if forgets { try await call.ask { () throws(BrokerError) in try await broker.forgetUsers(of: name) } }
        object.members += try await endSession(call, ending, name)
        return ServerResponse(object)
    }

    /// What stays valid at the provider after a sign-out that it was not told, or that it refused.
    private static func stillValid(_ leftover: SignedOut.Leftover) -> JSONObject {
        [
            "access_token": leftover.hasAccessToken, "refresh_token": leftover.hasRefreshToken,
            "access_token_expires_at": leftover.hasAccessToken ? leftover.accessTokenExpiry?.seconds : nil,
            "refresh_token_expires_at": leftover.hasRefreshToken ? leftover.refreshTokenExpiry?.seconds : nil,
        ]
    }

    private static let issuer: [Member] = .members(.required("issuer", text: "Whose token"))
    private static let parameters: [Member] = .members(
        .optional("min_valid", as: .integer, text: "Seconds that the token must still be valid; default 60"),
        .optional("timeout", as: .integer, text: "Seconds that the response may take; default 30"),
        .optional("scope", text: "A token downscoped to these scopes, separated by spaces"),
        .optional("audience", text: "A token for this audience"),
        .optional("resource", text: "A token for this resource (RFC 8707)"),
        .optional("kind", text: "access_token (the default) or id_token"),
        .optional("subject", text: "Only a session with this subject"),
        .optional("include", text: "Any of id_token, provider_token, user, profile, separated by commas"),
        .optional("sign_in", text: "wait: if signed out, start or join a sign-in and wait for it"),
        [ConsentQuery.member])

    static let errors: Set<ErrorCode> = .ofToken.and([
        .accessDenied, .flowExpired, .consentRequired, .consentTimeout, .methodUnsupported, .portInUse, .flowNotFound,
    ])
}

extension Component {
    static let session = Component(
        "Session", .required("account", "token_type", "issuer"),
        .optional("subject", "access_token", "id_token", "scope", "aal", "next_aal", "provider_token", "lost_scope"),
        .optional("expires_at", "expires_in", as: .integer), .optional("user", "profile", as: .anyObject),
        .optional("migration", as: .migration),
        .optional("profile_status", as: .words(["active", "inactive", "missing", "unavailable"])))

    /// An account; where it was asked for, with the page that ends the user's session in their browser.
    static let signedOut = Component("SignedOut", accountMembers, endSessionMembers)

    private static let endSessionMembers: [Member] = .members(
        .optional(
            "had_session", as: .boolean, text: "False if there was nothing to sign out of; not with scope=others"),
        .optional(
            "revocation_pending", as: .boolean,
            text: "true if the provider has not been told of this sign-out or an earlier one"),
        .optional("revocation_error", "end_session_open_url_error", "end_session_error", as: .component(.problem)),
        .optional(
            "still_valid",
            as: .object([
                .required("access_token", .boolean), .optional("access_token_expires_at", .integer),
                .required("refresh_token", .boolean), .optional("refresh_token_expires_at", .integer),
            ]), text: "What the provider has not revoked"),
        .optional("end_session_url", text: "To be shown to the user"),
        .optional("end_session_open_url", text: "For a program to open, once and within a minute"))
}

/// The page that ends the user's session: while a browser is signed in, the next sign-in does not ask who signs in.
extension SessionResource {
    enum EndSessionForm: String, CaseIterable {
        case saysWho = "true"
        case plain
    }

    /// What the response to a sign-out says of the page: `end_session_url` for the user, and `end_session_open_url` (or
    /// its `_error`) for a program; `end_session_error` if the page could not be found out; nothing if there is none,
    /// or if the caller did not ask. The sign-out does not depend on it.
    func endSession(
        _ call: Call, _ ending: EndingSession?, _ name: AccountName
    ) async throws(Problem) -> [JSONObject.Member] {
        guard let ending, let form = try call.query("end_session", as: EndSessionForm.self) else { return [] }
        // The URL may contain the ID token, which not every caller that may sign out may have.
        let mayHaveIDToken =
            api.admit(call.request, account: name.rawValue, operation: .idToken) != nil
            && api.hasConsent(to: .idToken, of: name, call)
        let page: EndSessionPage?
        do throws(BrokerError) {
            page = try await broker.endSessionPage(of: ending, saysWho: form == .saysWho, maySayIDToken: mayHaveIDToken)
        } catch {
            return [.init("end_session_error", Problem(error, language: call.language).json)]
        }
        guard let page else { return [] }
        if let shown = page.shown { api.noteIssuedToken(call.facts, shown, .own, .idToken) }
        var members = [JSONObject.Member("end_session_url", .string(page.url))]
        do throws(BrokerError) {
            if let url = try await broker.openURL(of: page, name) {
                members.append(.init("end_session_open_url", .string(url)))
            }
        } catch {
            members.append(.init("end_session_open_url_error", Problem(error, language: call.language).json))
        }
        return members
    }
}

extension SocketAPI {
    func addExpiry(of issuedToken: IssuedToken, to object: inout JSONObject) {
        guard let (expiresAt, remaining) = broker.expiry(of: issuedToken.token) else { return }
        object["expires_at"] = .integer(expiresAt.seconds)
        object["expires_in"] = .integer(remaining.wholeSeconds)
    }
}

extension Call {
    func sessionQuery() throws(Problem) -> SessionQuery {
        var query = SessionQuery()
        query.minValid = try duration("min_valid")
        if let timeout = try duration("timeout") { query.timeout = timeout }
        query.subject = self.query("subject")
        query.program = program
        query.kind = try self.query("kind", as: TokenKind.self) ?? .accessToken
        query.key = try tokenKey()
        return query
    }

    /// The token that the query requests. An empty parameter would not downscope anything, so it is rejected.
    func tokenKey() throws(Problem) -> TokenKey {
        let scopes = query("scope").map { $0.split(separator: " ").map(String.init) }
        for (name, isEmpty) in [
            ("scope", scopes?.isEmpty), ("audience", query("audience")?.isEmpty),
            ("resource", query("resource")?.isEmpty),
        ] where isEmpty == true { throw invalid(name, "must not be empty; leave it out for the session's own token") }
        let key = TokenKey(scopes: scopes, audience: query("audience"), resource: query("resource"))
        if let mistake = key.mistake { throw invalid(mistake.parameter, mistake.reason) }
        return key
    }
}
