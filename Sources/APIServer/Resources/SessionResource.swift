internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import Secrets
internal import StrictJSON
internal import Synchronization

extension SocketAPI {
    // MARK: The hot path

    /// `GET /v1/accounts/NAME/session` of a token that is held: no lane, no JSON encoding, no hop to another thread.
    @Sendable func immediate(_ request: ServerRequest) -> ServerResponse? {
        guard request.method == "GET", request.query == nil, request.body.isEmpty,
            let name = SocketAPI.account(inSessionPath: request.path),
            (try? refuseBrowsers(request)) != nil,
            let facts = admit(request, account: name, operation: .token)
        else { return nil }
        guard let current = broker.snapshot.current(name) else {
            encoded.forget(name)
            return nil
        }
        noteIssuedToken(facts, current.entry.issuedToken, .own, .token)
        return ServerResponse(
            status: 200, fields: ServerResponse.jsonFields,
            body: encoded.body(for: current.entry, expiresAt: current.expiresAt, remaining: current.remaining))
    }

    private static func account(inSessionPath path: String) -> String? {
        let head = "/v1/accounts/"
        let tail = "/session"
        guard path.utf8.count > head.utf8.count + tail.utf8.count, path.hasPrefix(head), path.hasSuffix(tail) else {
            return nil
        }
        let name = path.utf8.dropFirst(head.utf8.count).dropLast(tail.utf8.count)
        return name.contains(UInt8(ascii: "/")) ? nil : String(name)
    }

    // MARK: Every other way

    func getSession(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        return try await session(of: name, call)
    }

    func getSessionByIssuer(_ call: Call) async throws(Problem) -> ServerResponse {
        guard let issuer = call.query("issuer") else { throw call.invalid("issuer", "it is required here") }
        let name = try await call.ask { () throws(BrokerError) in try await broker.account(issuer: issuer) }
        return try await session(of: name, call)
    }

    private func session(of name: AccountName, _ call: Call) async throws(Problem) -> ServerResponse {
        var query = SessionQuery()
        query.minValid = try call.seconds("min_valid")
        if let timeout = try call.seconds("timeout") { query.timeout = .seconds(timeout) }
        query.subject = call.query("subject")
        query.kind =
            try call.query("kind", oneOf: ["access_token", "id_token"]) == "id_token" ? .idToken : .accessToken
        query.key = try call.tokenKey()
        if query.kind == .idToken, query.key != .own {
            throw call.invalid("kind", "an ID token cannot be narrowed: leave scope, audience and resource out")
        }
        let extras = try included(call)
        // An ID token proves who somebody is; a program that may have the one need not have the other.
        if query.kind == .idToken || extras.contains("id_token"),
            admit(call.request, account: name.rawValue, operation: .idToken) == nil
        {
            throw Problem(.policyDenied, "The policy does not allow id_token to this program.")
        }
        let waitsForSignIn = try call.query("sign_in", oneOf: ["wait"]) != nil
        let issuedToken = try await call.ask { () throws(BrokerError) in
            waitsForSignIn
                ? try await broker.sessionAfterSignIn(name, query) : try await broker.session(name, query)
        }
        let isIDToken = query.kind == .idToken
        noteIssuedToken(call.facts, issuedToken, query.key, isIDToken ? .idToken : .token)
        if extras.contains("id_token"), !isIDToken { noteIssuedToken(call.facts, issuedToken, query.key, .idToken) }
        var object = EncodedTokens.members(of: issuedToken, isIDToken: isIDToken)
        if extras.contains("id_token"), !isIDToken {
            object["id_token"] = issuedToken.idToken.map { .string($0.revealed()) }
        }
        try include(extras, issuedToken, into: &object, call)
        if extras.contains("profile") { object.members += try await profile(of: name, call) }
        if extras.contains("user") { object["user"] = issuedToken.user.map { .object($0) } }
        if let (expiresAt, remaining) = broker.expiry(of: issuedToken.token) {
            object["expires_at"] = .integer(expiresAt)
            object["expires_in"] = .integer(remaining)
        }
        return ServerResponse(json: .object(object))
    }

    /// What only some accounts have: where there is none, silence would look like an answer.
    private func include(
        _ extras: Set<String>, _ issuedToken: IssuedToken, into object: inout JSONObject, _ call: Call
    ) throws(Problem) {
        for word in ["provider_token", "profile"] where extras.contains(word) && issuedToken.supabase == nil {
            throw call.invalid("include", "this account has no \(word)")
        }
        guard extras.contains("provider_token") else { return }
        guard admit(call.request, account: issuedToken.account.rawValue, operation: .providerToken) != nil else {
            throw Problem(.policyDenied, "The policy does not allow provider_token to this program.")
        }
        guard let token = issuedToken.supabase?.providerToken else { return }
        object["provider_token"] = .string(token.revealed())
        noteIssuedToken(call.facts, issuedToken, .own, .providerToken)
    }

    /// A row that cannot be had now takes nothing from the token.
    private func profile(of name: AccountName, _ call: Call) async throws(Problem) -> [JSONObject.Member] {
        let found: SupabaseProfile?
        do throws(BrokerError) {
            found = try await broker.profile(name)
        } catch {
            return [.init("profile_status", "unavailable")]
        }
        switch found {
        case nil: throw call.invalid("include", "this account has no profile; see profile = { table, key }")
        case .missing: return [.init("profile_status", "missing")]
        case .row(let row, let isActive):
            return [.init("profile", .object(row)), .init("profile_status", isActive ? "active" : "inactive")]
        }
    }

    private func included(_ call: Call) throws(Problem) -> Set<String> {
        let known: Set = ["id_token", "provider_token", "user", "profile"]
        let words = Set(call.query("include")?.split(separator: ",").map(String.init) ?? [])
        guard words.isSubset(of: known) else {
            throw call.invalid("include", "it lists any of: \(known.sorted().joined(separator: ", "))")
        }
        return words
    }

    func refresh(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let isForced = try call.truth("force")
        var rejected: [UInt8]?
        if let text = try call.text("rejected_sha256") {
            guard let digest = SocketAPI.bytes(ofHex: text), digest.count == 32 else {
                throw call.invalid("rejected_sha256", "it is a SHA-256 in 64 hexadecimal digits")
            }
            rejected = digest
        }
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.refresh(name, isForced: isForced, rejected: rejected)
        }
        return ServerResponse(json: account(view, call.language))
    }

    func signOut(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let scope = try call.query("scope", oneOf: ["local", "global", "others"]) ?? "local"
        let isProject = try await call.ask { () throws(BrokerError) in try await broker.isAtProject(name) }
        guard scope == "local" || isProject else {
            throw Problem(.methodUnsupported, "The provider of \(name) ends single sessions only: use scope=local.")
        }
        if scope == "others" {
            let view = try await call.ask { () throws(BrokerError) in try await broker.signOutOthers(name) }
            return ServerResponse(json: account(view, call.language))
        }
        // Whose it was is known only before it is closed; where its page is may wait until nobody reads it any more.
        var ending: EndingSession?
        if try call.query("end_session", oneOf: ["true", "plain"]) != nil {
            ending = try await call.ask { () throws(BrokerError) in try await broker.ending(of: name) }
        }
        let view = try await call.ask { () throws(BrokerError) in
            try await broker.signOut(name, endingAll: scope == "global")
        }
        encoded.forget(name.rawValue)
        var object = account(view, call.language).object ?? JSONObject()
        object.members += try await endSession(call, ending, name)
        return ServerResponse(json: .object(object))
    }

    private static func bytes(ofHex text: String) -> [UInt8]? {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8((digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0)) }
    }
}

/// Session answers, encoded once per token: only `expires_in` differs from one request to the next, and it comes last.
final class EncodedTokens: Sendable {
    private let known = Mutex<[String: (generation: UInt64, head: [UInt8])]>([:])

    /// Lets the token of an account go: what is no longer handed out must not rest here.
    /// Nil stands for all accounts.
    func forget(_ account: String?) {
        known.withLock { known in
            if let account { known[account] = nil } else { known = [:] }
        }
    }

    /// The accounts whose tokens are here.
    var accounts: Set<String> { known.withLock { Set($0.keys) } }

    func body(for entry: SessionSnapshot.Entry, expiresAt: Int?, remaining: Int?) -> [UInt8] {
        let issuedToken = entry.issuedToken
        var body = known.withLock { known in
            let account = issuedToken.account.rawValue
            if let found = known[account], found.generation == entry.generation { return found.head }
            let object = EncodedTokens.members(of: issuedToken, isIDToken: false)
            var head = JSON.object(object).serialized()
            head.removeLast()
            known[account] = (entry.generation, head)
            return head
        }
        if let expiresAt, let remaining {
            body.append(contentsOf: ",\"expires_at\":".utf8)
            body.append(contentsOf: String(expiresAt).utf8)
            body.append(contentsOf: ",\"expires_in\":".utf8)
            body.append(contentsOf: String(remaining).utf8)
        }
        body.append(UInt8(ascii: "}"))
        return body
    }

    /// The line that puts an access token on the socket.
    static func members(of issuedToken: IssuedToken, isIDToken: Bool) -> JSONObject {
        var object = JSONObject([.init("account", .string(issuedToken.account.rawValue))])
        object["subject"] = issuedToken.subject.map { .string($0) }
        object[isIDToken ? "id_token" : "access_token"] = .string(issuedToken.token.value.revealed())
        object["token_type"] = .string(issuedToken.token.type)
        object["scope"] = issuedToken.scope.map { .string($0) }
        object["issuer"] = .string(issuedToken.issuer)
        object["aal"] = issuedToken.supabase?.assurance.map { .string($0) }
        object["next_aal"] = issuedToken.supabase?.nextAssurance.map { .string($0) }
        object["migration"] = issuedToken.supabase?.migratesFrom.map {
            ["from": .string($0), "to": .string(issuedToken.subject ?? "")]
        }
        return object
    }
}
