internal import LocalHTTP
internal import RingbackBase

/// `/sandbox/…` below an issuer: how tests switch it and observe it. No part of any protocol.
/// - `POST control`: one JSON object, applied completely or not at all. The response is, like that of `GET control`,
///   the switches as they are. `reset` and `clear` (faults, perturbations, latency, held requests) come first. Settings
///   have the names that the response shows under `settings`. `perturb` starts ``Perturbation``s: `["callback_no_iss"]`
///   until cleared, `[{"name": "callback_no_iss", "count": 1}]` for one response (0 stops it). `faults` adds
///   ``Fault``s: `[{"endpoint": "token", "kind": "status", "status": 503, "retry_after": 5, "count": 2}]`; `grant_type`
///   limits one to a grant, `path` to a path below the issuer's; with `processed` the request takes effect all the
///   same. `release` opens gates: `true`, an endpoint's name, or `{"endpoint": …, "count": …}`. `revoke_all` ends
///   sessions (a user's, or `true`), `rotate_keys` makes new keys (with `"keep"` the old ones stay published), `strict`
///   demands PAR, DPoP and a nonce of everyone, `advance_clock` adds seconds, `users` and `clients` add some,
///   `forget_clients` removes clients by id. `supabase` is for the project below the issuer, see
///   ``SupabaseProject/apply(_:at:)``. `device` decides for the user whose device waits, see ``DeviceDecision``;
///   `device_answer` replaces members of the device authorization response.
///   `assertion_issuers` has the issuers whose assertions about users are accepted, each with its key set.
/// - `GET counters`, `GET log`: what happened.
/// - `GET mailbox`, `GET messages`: what the project sent by mail, and by phone. `GET inbox`: a page with both.
/// - `POST assertion`: a token as a platform gives it to its workloads, see ``makeAssertion(_:)``.
/// - `GET wait`: responds when requests have come, see ``wait(_:)``.
///
/// Requests that a browser made for another site's page are refused: no web page may switch a sandbox.
extension SandboxProvider {
    /// Seconds.
    private static let maxWait = 60

    func control(_ request: SandboxRequest, path: String) async -> ServerResponse {
        guard !request.fields.contains("Origin"),
            ["none", "same-origin"].contains(request.fields["Sec-Fetch-Site"] ?? "none")
        else { return Responses.text("Web pages have no business here.", status: 403) }
        switch (path, request.method) {
        case ("/sandbox/control", "GET"): return Responses.json(overview())
        case ("/sandbox/control", "POST"): return Responses.catching { try change(request) }
        case ("/sandbox/counters", "GET"): return Responses.json(withState { $0.server.issuer.counters.members })
        case ("/sandbox/log", "GET"): return Responses.json(withState { $0.log.members })
        case ("/sandbox/wait", "GET"): return await wait(request)
        case ("/sandbox/mailbox", "GET"): return sentMessages(request, isMail: true)
        case ("/sandbox/messages", "GET"): return sentMessages(request, isMail: false)
        case ("/sandbox/inbox", "GET"): return inbox()
        case ("/sandbox/assertion", "POST"): return Responses.catching { try makeAssertion(request) }
        case ("/sandbox/assertion", _): return Responses.only("POST")
        case ("/sandbox/control", _): return Responses.only("GET, POST")
        case ("/sandbox/counters", _), ("/sandbox/log", _), ("/sandbox/wait", _), ("/sandbox/mailbox", _),
            ("/sandbox/messages", _), ("/sandbox/inbox", _):
            return Responses.only("GET")
        default: return Responses.nothing
        }
    }

    private func refuse(_ text: String) -> ServerResponse { Responses.refusal(OAuthError("invalid_request", text)) }

    private func change(_ request: SandboxRequest) throws -> ServerResponse {
        let now = clock()
        let releases = try withState { state in
            let (next, releases) = try state.changed(by: request.body, at: now)
            state = next
            return releases
        }
        for release in releases { heldRequests.release(release) }
        return Responses.json(overview())
    }

    /// `endpoint`, `count` (default 1), `what` (`waiting`: held by a gate or a hang now; `seen`: arrived so far),
    /// `timeout` in seconds.
    private func wait(_ request: SandboxRequest) async -> ServerResponse {
        let parameters = Parameters(request.query)
        guard let endpoint = Endpoint(rawValue: parameters["endpoint"] ?? "") else {
            return refuse("endpoint: expected \(Endpoint.names)")
        }
        guard let count = Int(parameters["count"] ?? "1"), let timeout = Int(parameters["timeout"] ?? "10"),
            timeout >= 0
        else { return refuse("count and timeout are numbers") }
        let what = parameters["what"] ?? "waiting"
        guard ["waiting", "seen"].contains(what) else { return refuse("what: expected waiting, seen") }
        let heldRequests = heldRequests
        let isThere = await signal.wait(atMost: .seconds(min(timeout, SandboxProvider.maxWait))) {
            (what == "seen" ? self.seen(endpoint) : heldRequests.count(endpoint)) >= count
        }
        return Responses.json(
            ["waiting": heldRequests.count(endpoint), "seen": seen(endpoint)], status: isThere ? 200 : 504)
    }

    private func seen(_ endpoint: Endpoint) -> Int {
        withState { $0.server.issuer.counters.requests[endpoint.rawValue] ?? 0 }
    }

    private func overview() -> JSONObject {
        let waiting = JSONObject(Endpoint.allCases.map { .init($0.rawValue, heldRequests.count($0).jsonValue) })
        return withState { state in
            let issuer = state.server.issuer
            var settings = issuer.settings.shown
            settings["auto_approve"] = issuer.settings.autoApprovedUser?.jsonValue ?? false
            // By name: how many responses are left, or `true` for all.
            let perturbations = issuer.perturbations.active.mapValues { $0?.jsonValue ?? true }
            return [
                "issuer": issuer.name, "users": issuer.users.map(\.name), "clients": state.server.clients.all.map(\.id),
                "settings": settings, "perturbations": JSONObject(sorted: perturbations),
                "faults": state.faults.count, "waiting": waiting, "supabase": state.supabase.settings.shown,
            ] as JSONObject
        }
    }
}
