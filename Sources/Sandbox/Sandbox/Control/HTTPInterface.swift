internal import LocalHTTP
internal import RingbackBase

/// `/sandbox/…` below an issuer: how tests switch it and observe it. No part of any protocol.
///
/// - `POST control`: one JSON object, applied completely or not at all. The response is, like that of `GET control`,
///   the switches as they are. `reset` and `clear` (faults, perturbations, latency, held requests) come first. Settings
///   have the names that the response shows under `settings`. `perturb` starts ``Perturbation``s: `["callback_no_iss"]`
///   until cleared, `[{"name": "callback_no_iss", "count": 1}]` for one response (0 stops it). `faults` adds
///   ``Fault``s: `[{"endpoint": "token", "kind": "status", "status": 503, "retry_after": 5, "count": 2}]`; `grant_type`
///   limits one to a grant, `path` to a path below the issuer's; with `processed` the request takes effect all the
///   same. `release` opens gates: `true`, an endpoint's name, or `{"endpoint": …, "count": …}`. `revoke_all` ends
///   sessions (a user's, or `true`), `rotate_keys` makes new keys (with `"keep"` the old ones stay published),
///   `advance_clock` adds seconds, `users` and `clients` add some, `forget_clients` removes
///   clients by id. `supabase` is for the project below the issuer, see
///   ``SupabaseChange``. `device` decides for the user whose device waits: `{"decision": "allow", "user": "bob"}`, see
///   ``DeviceDecision``; `device_answer` replaces members of the device authorization response.
/// - `GET counters`, `GET log`: what happened.
/// - `GET mailbox`, `GET messages`: what the project sent by mail, and by phone. `GET inbox`: a page with both.
/// - `POST assertion`: a token as a platform gives it to its workloads, see ``makeAssertion(_:)``.
/// - `GET wait`: responds when requests have come, see ``wait(_:)``.
///
/// A web page must not be able to switch a sandbox that is running: requests that a browser made for another site's
/// page are refused.
extension SandboxProvider {
    /// The longest a `wait` may take.
    private static let maxWait = 60

    func control(_ request: SandboxRequest, path: String) async -> ServerResponse {
        guard !request.fields.contains("Origin"),
            ["none", "same-origin"].contains(request.fields["Sec-Fetch-Site"] ?? "none")
        else { return Responses.text("Web pages have no business here.", status: 403) }
        switch (path, request.method) {
        case ("/sandbox/control", "GET"): return Responses.json(overview())
        case ("/sandbox/control", "POST"): return change(request)
        case ("/sandbox/counters", "GET"): return Responses.json(withState { $0.server.issuer.counters.json })
        case ("/sandbox/log", "GET"): return Responses.json(withState { $0.log.json })
        case ("/sandbox/wait", "GET"): return await wait(request)
        case ("/sandbox/mailbox", "GET"): return sentMessages(request, isMail: true)
        case ("/sandbox/messages", "GET"): return sentMessages(request, isMail: false)
        case ("/sandbox/inbox", "GET"): return inbox()
        case ("/sandbox/assertion", "POST"): return makeAssertion(request)
        case ("/sandbox/assertion", _): return refuseMethod("POST")
        case ("/sandbox/control", _): return refuseMethod("GET, POST")
        case ("/sandbox/counters", _), ("/sandbox/log", _), ("/sandbox/wait", _), ("/sandbox/mailbox", _),
            ("/sandbox/messages", _), ("/sandbox/inbox", _):
            return refuseMethod("GET")
        default: return Responses.text("There is nothing here.", status: 404)
        }
    }

    private func refuseMethod(_ allowed: String) -> ServerResponse {
        Responses.text("This is answered to \(allowed) only.", status: 405, fields: [("Allow", allowed)])
    }

    private func refuse(_ text: String) -> ServerResponse {
        Responses.refusal(OAuthError("invalid_request", text))
    }

    private func change(_ request: SandboxRequest) -> ServerResponse {
        let document: ControlDocument
        let now = clock()
        do {
            document = try withState { state throws(ControlDocument.Mistake) in
                let document = try ControlDocument(
                    parsing: request.body, changing: (state.server.issuer.settings, state.server.issuer.users),
                    orInitially: (state.options.settings, state.options.users))
                try state.apply(document, at: now)
                return document
            }
        } catch {
            return refuse(error.text)
        }
        if document.clears || document.resets { heldRequests.empty() }
        if let release = document.release { heldRequests.release(release.endpoint, count: release.count) }
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
        let numbers: JSON = ["waiting": .integer(heldRequests.count(endpoint)), "seen": .integer(seen(endpoint))]
        return Responses.json(numbers, status: isThere ? 200 : 504)
    }

    private func seen(_ endpoint: Endpoint) -> Int {
        withState { $0.server.issuer.counters.requests[endpoint.rawValue] ?? 0 }
    }

    /// The switches as they stand.
    private func overview() -> JSON {
        var waiting = JSONObject()
        for endpoint in Endpoint.allCases { waiting[endpoint.rawValue] = .integer(heldRequests.count(endpoint)) }
        return withState { state in
            let issuer = state.server.issuer
            return [
                "issuer": .string(issuer.name), "users": .array(issuer.users.map { .string($0.name) }),
                "clients": .array(state.server.clients.all.map { .string($0.id) }), "settings": issuer.settings.json,
                "perturbations": issuer.perturbations.json, "faults": .integer(state.faults.count),
                "waiting": .object(waiting), "supabase": state.supabase.settings.json,
            ]
        }
    }
}

extension SandboxSettings {
    /// By the names under which they are set.
    fileprivate var json: JSON {
        let latencies = latency.sorted { $0.key < $1.key }.map { JSONObject.Member($0.key, .integer($0.value)) }
        let places = endpointURLs.sorted { $0.key < $1.key }.map { JSONObject.Member($0.key, .string($0.value)) }
        return [
            "access_token_lifetime": .integer(accessTokenLifetime), "id_token_lifetime": .integer(idTokenLifetime),
            "code_lifetime": .integer(codeLifetime),
            "refresh_token_lifetime": refreshTokenLifetime.map(JSON.integer) ?? .null,
            "refresh_expires_in": .bool(statesRefreshLifetime),
            "omit_expires_in": .bool(omitsExpiresIn), "refresh_tokens": .string(refreshTokens.rawValue),
            "rotation": .bool(rotates), "reuse_grace": .integer(reuseGrace),
            "id_token_on_refresh": .bool(renewsIDToken), "downscope_refresh_tokens": .bool(downscopesRefreshTokens),
            "algorithm": .string(algorithm.rawValue), "auto_approve": autoApprovedUser.map(JSON.string) ?? false,
            "device_grant": .bool(offersDevices), "device_interval": .integer(deviceInterval),
            "device_code_lifetime": .integer(deviceCodeLifetime), "device_answer": .object(deviceResponse),
            "registration": .string(registration.rawValue), "initial_access_token": .string(initialAccessToken),
            "registered_authentication": registeredAuthentication.map { .string($0.rawValue) } ?? .null,
            "registered_secret_lifetime": registeredSecretLifetime.map(JSON.integer) ?? .null,
            "pushed_requests": .string(pushedRequests.rawValue), "pushed_status": .integer(pushedStatus),
            "require_response_type": .bool(requiresResponseType),
            "require_nonce": .bool(requiresNonce), "omit_kid": .bool(omitsKeyIDs),
            "latency": .object(JSONObject(latencies)), "endpoints": .object(JSONObject(places)),
        ]
    }
}

extension Perturbations {
    /// By name: how many responses are left, or `true` for all.
    fileprivate var json: JSON {
        let members = active.sorted { $0.key.rawValue < $1.key.rawValue }.map { perturbation, count in
            JSONObject.Member(perturbation.rawValue, count.map(JSON.integer) ?? true)
        }
        return .object(JSONObject(members))
    }
}
