internal import BrokerCore
internal import HTTPMessages
internal import LocalHTTP
internal import RingbackAPI
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth
internal import SupabaseSignIn

extension SocketAPI {
    /// `GET /v1/accounts/NAME/session` for a cached token: without the lane, JSON encoding or a change of the thread; and
    /// `…/mcp-server`, which is asked beside it. Of every other first request of a connection it notes only who is
    /// connected.
    @Sendable func immediate(_ request: ServerRequest) -> ServerResponse? {
        if request.method == "POST", request.path == "/v1/lookup" { return heldLookup(request) }
        guard request.method == "GET", request.query == nil, request.body.isEmpty,
            let (name, isServer) = SocketAPI.account(inPath: request.path),
            (try? refuseBrowsers(request)) != nil,
            let facts = admit(request, account: name, operation: .token)
        else {
            if request.process != nil { _ = admit(request, account: nil, operation: .readState) }
            return nil
        }
        if isServer {
            let session = broker.snapshot.current(name)?.entry.encoding.number
            return daemon.configurationNumber().flatMap { mcpServers.body(of: name, $0, session) }
                .map { ServerResponse(status: 200, fields: ServerResponse.jsonFields, body: $0) }
        }
        guard let current = broker.snapshot.current(name) else { return nil }
        let encoding = current.entry.encoding
        if !facts.repeats(encoding.number, at: broker.now.seconds) {
            let counted = noteIssuedToken(facts, current.entry.issuedToken, .own, .token)
            facts.remember(encoding.number, counted)
        }
        return ServerResponse(
            status: 200, fields: ServerResponse.jsonFields,
            body: SocketAPI.body(for: current.entry, expiresAt: current.expiresAt, remaining: current.remaining))
    }

    private static func account(inPath path: String) -> (name: String, isServer: Bool)? {
        if let name = account(inPath: path, before: "/session") { return (name, false) }
        return account(inPath: path, before: "/mcp-server").map { ($0, true) }
    }

    private static func account(inPath path: String, before tail: String) -> String? {
        let head = "/v1/accounts/"
        guard path.utf8.count > head.utf8.count + tail.utf8.count, path.hasPrefix(head), path.hasSuffix(tail) else {
            return nil
        }
        let name = path.utf8.dropFirst(head.utf8.count).dropLast(tail.utf8.count)
        return name.contains(UInt8(ascii: "/")) ? nil : String(name)
    }

    /// Encoded once a second at most: only `expires_in` differs from one request to the next.
    private static func body(for entry: SessionSnapshot.Entry, expiresAt: Int?, remaining: Int?) -> [UInt8] {
        entry.encoding.bytes(expiresAt: expiresAt, remaining: remaining) {
            var object = members(of: entry.issuedToken, isIDToken: false)
            if let expiresAt, let remaining {
                object["expires_at"] = .integer(expiresAt)
                object["expires_in"] = .integer(remaining)
            }
            return JSON.object(object).serialized()
        }
    }

    /// The place that writes an access token into a response.
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
