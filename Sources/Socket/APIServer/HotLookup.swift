internal import BrokerCore
internal import LocalHTTP
internal import RingbackAPI

extension SocketAPI {
    /// `POST /v1/lookup` for a held token of the session itself, without the lane or a change of the thread: tools ask for
    /// every connection. Nil for everything else, mistakes included; ``respond(_:)`` then handles the whole request.
    func heldLookup(_ request: ServerRequest) -> ServerResponse? {
        guard let route = Router.shared[.lookup], request.query == nil, (try? refuseBrowsers(request)) != nil,
            let facts = admit(request, account: nil, operation: route.endpoint.operation),
            let call = try? Call(request, route, [:], facts),
            let lookup = try? OriginLookup(call, daemon.origins), lookup.rejected == nil,
            lookup.origin.kind == .accessToken, lookup.origin.key == .own,
            let held = broker.snapshot.current(lookup.origin.account.rawValue),
            let credential = daemon.origins?.credential(of: lookup.origin, held: held.entry.issuedToken),
            let response = try? lookup.response(credential, expiresAt: held.expiresAt.map { WallInstant(seconds: $0) })
        else { return nil }
        noteIssuedToken(facts, credential.issuedToken, .own, .token, for: lookup)
        return ServerResponse(json: response)
    }
}
