internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth
internal import SupabaseSignIn
internal import Synchronization

extension SocketAPI {
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
