import RingbackAPI
import RingbackBase
import Testing

@testable import APIServer

@Suite struct `The routes` {
    @Test(arguments: Endpoint.allCases) func `lead to their endpoint, with the parameters of the path`(
        endpoint: Endpoint
    ) {
        let values = Dictionary(uniqueKeysWithValues: endpoint.parameters.map { ($0, "org.x-\($0)") })
        let path = values.reduce(endpoint.path) { $0.replacing("{\($1.key)}", with: $1.value) }
        guard case .route(let route, let found) = Router.shared.match(method: endpoint.method.rawValue, path: path)
        else {
            Issue.record("\(endpoint.method) \(path) leads nowhere")
            return
        }
        #expect(route.endpoint == endpoint && found == values)
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
