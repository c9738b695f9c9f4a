import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer

@Suite struct `The routes` {
    @Test(
        arguments: [
            ("GET", "/v1/openapi.json", .getOpenAPI, [:]),
            ("GET", "/v1/status", .getStatus, [:]),
            ("GET", "/v1/peer", .getPeer, [:]),
            ("GET", "/v1/accounts", .listAccounts, [:]),
            ("GET", "/v1/accounts/work", .getAccount, ["account": "work"]),
            ("GET", "/v1/accounts/org.swisscoin.app", .getAccount, ["account": "org.swisscoin.app"]),
            ("POST", "/v1/accounts/work/sign-in", .signIn, ["account": "work"]),
            ("GET", "/v1/accounts/work/session", .getSession, ["account": "work"]),
            ("DELETE", "/v1/accounts/work/session", .signOut, ["account": "work"]),
            ("POST", "/v1/accounts/work/refresh", .refresh, ["account": "work"]),
            ("GET", "/v1/flows", .listFlows, [:]),
            ("GET", "/v1/flows/f1", .getFlow, ["flow": "f1"]),
            ("DELETE", "/v1/flows/f1", .cancelFlow, ["flow": "f1"]),
            ("POST", "/v1/callbacks", .deliverCallback, [:]),
            ("GET", "/v1/session", .getSessionByIssuer, [:]),
            ("GET", "/v1/events", .streamEvents, [:]),
            ("POST", "/v1/reload", .reload, [:]),
            ("GET", "/v1/audit", .getAudit, [:]),
            ("GET", "/v1/metrics", .getMetrics, [:]),
            ("POST", "/v1/vault/lock", .lockVault, [:]),
            ("POST", "/v1/vault/unlock", .unlockVault, [:]),
            ("POST", "/v1/vault/rekey", .rekeyVault, [:]),
            ("POST", "/v1/vault/join", .joinVault, [:]),
            ("POST", "/v1/vault/share", .shareVault, [:]),
            ("GET", "/v1/vault/hosts", .listVaultHosts, [:]),
            ("DELETE", "/v1/vault/hosts/old-laptop", .removeVaultHost, ["host": "old-laptop"]),
        ] as [(String, String, Endpoint, [String: String])])
    func `lead where they say`(method: String, path: String, endpoint: Endpoint, parameters: [String: String]) {
        guard case .route(let route, let found) = Router.shared.match(method: method, path: path) else {
            Issue.record("\(method) \(path) leads nowhere")
            return
        }
        #expect(route.endpoint == endpoint)
        #expect(found == parameters)
    }

    @Test(arguments: [
        ("POST", "/v1/status", ["GET"]), ("PUT", "/v1/accounts/work/session", ["DELETE", "GET"]),
        ("get", "/v1/status", ["GET"]), ("HEAD", "/v1/accounts", ["GET"]), ("DELETE", "/v1/flows/f1/", []),
        ("OPTIONS", "/v1/flows/f1", ["DELETE", "GET"]),
    ]) func `name the other methods of an address`(method: String, path: String, methods: [String]) {
        switch Router.shared.match(method: method, path: path) {
        case .otherMethods(let found): #expect(found == methods)
        case .nothing: #expect(methods.isEmpty)
        case .route(let route, _): Issue.record("\(method) \(path) leads to \(route.endpoint)")
        }
    }

    @Test(arguments: [
        "", "/", "v1/status", "/v1", "/v1/", "/v1/status/", "//v1/status", "/v1//status", "/V1/status", "/v1/Status",
        "/v1/./status", "/v1/x/../status", "/v1/%73tatus", "/v1/status;x", "/v1/accounts/", "/v1/accounts//session",
        "/v1/accounts/work/session/", "/v1/accounts/work/sessions", "/v2/status", "/v1/vault", "/v1/vault/locks",
        "/v1/exposed-sockets/x/y",
        "/v1/accounts/work/users", "/v1/accounts/{account}/x", "/v1/status?x", "*",
    ]) func `lead nowhere else`(path: String) {
        guard case .nothing = Router.shared.match(method: "GET", path: path) else {
            Issue.record("GET \(path) leads somewhere")
            return
        }
    }

    @Test func `take a parameter as it stands`() {
        guard case .route(_, let parameters) = Router.shared.match(method: "GET", path: "/v1/accounts/%2e%2e") else {
            Issue.record("no route")
            return
        }
        #expect(parameters == ["account": "%2e%2e"])
    }

    @Test func `are one for each endpoint, by path, then method`() {
        let keys = Router.shared.routes.map { "\($0.endpoint.path) \($0.endpoint.method.rawValue)" }
        #expect(keys == keys.sorted())
        #expect(Set(Router.shared.routes.map(\.endpoint)) == Set(Endpoint.allCases))
        #expect(keys.count == Set(keys).count)
    }

    @Test func `that only read are GET`() {
        for endpoint in Endpoint.allCases where endpoint.operation == .readState {
            #expect(endpoint.method == .get, "\(endpoint)")
        }
    }

    @Test func `operations have the names that clients know`() {
        let words = [
            "read_state", "token", "id_token", "provider_token", "sign_in", "sign_out", "user",
            "deliver_callback", "deep_link", "manage",
        ]
        #expect(PolicyOperation.allCases.map(\.rawValue) == words)
    }
}
