/// What a route does, for policy.
public enum Operation: String, Sendable, CaseIterable {
    case readState = "read_state"
    case token
    case idToken = "id_token"
    case providerToken = "provider_token"
    case signIn = "sign_in"
    case signOut = "sign_out"
    case user
    case deliverCallback = "deliver_callback"
    case deepLink = "deep_link"
    case manage
}

/// A row of the socket API: method, path and operation.
public struct Route: Sendable, Hashable {
    /// Names the handler, and the operation in the OpenAPI document.
    public enum ID: String, Sendable, CaseIterable {
        case getOpenAPI, getStatus, getPeer, listAccounts, getAccount, signIn, listFlows, getFlow, withdrawFlow
        case deliverCallback, getSession, getSessionByIssuer, refresh, signOut, streamEvents, reload
        case verifyFlow, resendFlow, getUser, updateUser, listIdentities, linkIdentity, unlinkIdentity
        case listFactors, enrollFactor, challengeFactor, verifyFactor, removeFactor
        case listPasskeys, beginPasskey, registerPasskey, renamePasskey, removePasskey
        case resetPassword, reauthenticate, callFunction, migrate, acknowledgeMigration
        case getAudit, getMetrics, lockVault, unlockVault, rekeyVault
        case register, deleteRegistration
        case getDiagnostics, makeDiagnosticLink, getDiagnosticLink
        case listGrants, createGrant, getGrant, revokeGrant
        case streamDeepLinks, acknowledgeDeepLink
    }

    public let method: String
    /// Segments in braces are parameters, one segment each.
    public let path: String
    public let id: ID
    public let operation: Operation

    /// Every route, sorted by path, then method.
    public static let all: [Route] = [
        Route("GET", "/v1/accounts", .listAccounts, .readState),
        Route("GET", "/v1/accounts/{account}", .getAccount, .readState),
        Route("GET", "/v1/accounts/{account}/factors", .listFactors, .user),
        Route("POST", "/v1/accounts/{account}/factors", .enrollFactor, .user),
        Route("DELETE", "/v1/accounts/{account}/factors/{id}", .removeFactor, .user),
        Route("POST", "/v1/accounts/{account}/factors/{id}/challenge", .challengeFactor, .user),
        Route("POST", "/v1/accounts/{account}/factors/{id}/verify", .verifyFactor, .user),
        Route("GET", "/v1/accounts/{account}/identities", .listIdentities, .user),
        Route("POST", "/v1/accounts/{account}/identities", .linkIdentity, .user),
        Route("DELETE", "/v1/accounts/{account}/identities/{id}", .unlinkIdentity, .user),
        Route("DELETE", "/v1/accounts/{account}/migration", .acknowledgeMigration, .user),
        Route("POST", "/v1/accounts/{account}/migration", .migrate, .user),
        Route("POST", "/v1/accounts/{account}/passkey-options", .beginPasskey, .user),
        Route("GET", "/v1/accounts/{account}/passkeys", .listPasskeys, .user),
        Route("POST", "/v1/accounts/{account}/passkeys", .registerPasskey, .user),
        Route("DELETE", "/v1/accounts/{account}/passkeys/{id}", .removePasskey, .user),
        Route("PATCH", "/v1/accounts/{account}/passkeys/{id}", .renamePasskey, .user),
        Route("POST", "/v1/accounts/{account}/password-reset", .resetPassword, .user),
        Route("POST", "/v1/accounts/{account}/reauthenticate", .reauthenticate, .user),
        Route("POST", "/v1/accounts/{account}/refresh", .refresh, .token),
        Route("POST", "/v1/accounts/{account}/rpc/{function}", .callFunction, .user),
        Route("DELETE", "/v1/accounts/{account}/session", .signOut, .signOut),
        Route("GET", "/v1/accounts/{account}/session", .getSession, .token),
        Route("POST", "/v1/accounts/{account}/sign-in", .signIn, .signIn),
        Route("GET", "/v1/accounts/{account}/user", .getUser, .user),
        Route("PATCH", "/v1/accounts/{account}/user", .updateUser, .user),
        Route("GET", "/v1/audit", .getAudit, .readState),
        Route("POST", "/v1/callbacks", .deliverCallback, .deliverCallback),
        Route("GET", "/v1/deep-links", .streamDeepLinks, .deepLink),
        Route("POST", "/v1/deep-links/{id}/ack", .acknowledgeDeepLink, .deepLink),
        Route("GET", "/v1/diagnostics", .getDiagnostics, .manage),
        Route("POST", "/v1/diagnostics/links", .makeDiagnosticLink, .manage),
        Route("GET", "/v1/diagnostics/links/{link}", .getDiagnosticLink, .manage),
        Route("GET", "/v1/events", .streamEvents, .readState),
        Route("GET", "/v1/flows", .listFlows, .readState),
        Route("DELETE", "/v1/flows/{flow}", .withdrawFlow, .signIn),
        Route("GET", "/v1/flows/{flow}", .getFlow, .readState),
        Route("POST", "/v1/flows/{flow}/resend", .resendFlow, .signIn),
        Route("POST", "/v1/flows/{flow}/verify", .verifyFlow, .signIn),
        Route("GET", "/v1/grants", .listGrants, .manage),
        Route("POST", "/v1/grants", .createGrant, .manage),
        Route("DELETE", "/v1/grants/{id}", .revokeGrant, .manage),
        Route("GET", "/v1/grants/{id}", .getGrant, .manage),
        Route("GET", "/v1/metrics", .getMetrics, .readState),
        Route("GET", "/v1/openapi.json", .getOpenAPI, .readState),
        Route("GET", "/v1/peer", .getPeer, .readState),
        Route("POST", "/v1/registrations", .register, .manage),
        Route("DELETE", "/v1/registrations/{account}", .deleteRegistration, .manage),
        Route("POST", "/v1/reload", .reload, .manage),
        Route("GET", "/v1/session", .getSessionByIssuer, .token),
        Route("GET", "/v1/status", .getStatus, .readState),
        Route("POST", "/v1/vault/lock", .lockVault, .manage),
        Route("POST", "/v1/vault/rekey", .rekeyVault, .manage),
        Route("POST", "/v1/vault/unlock", .unlockVault, .manage),
    ]

    private init(_ method: String, _ path: String, _ id: ID, _ operation: Operation) {
        self.method = method
        self.path = path
        self.id = id
        self.operation = operation
    }

    /// What a path leads to.
    public enum Match: Sendable, Equatable {
        /// The route, and its parameters by name.
        case route(Route, [String: String])
        /// The path exists with other methods.
        case otherMethods([String])
        case nothing
    }

    /// Finds the route of a request. Parameters are taken as they stand: names need no escapes.
    public static func match(method: String, path: String) -> Match {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        var methods: [String] = []
        for route in all {
            let pattern = route.path.split(separator: "/", omittingEmptySubsequences: false)
            guard pattern.count == segments.count else { continue }
            var parameters: [String: String] = [:]
            var matches = true
            for (expected, found) in zip(pattern, segments) {
                if expected.hasPrefix("{") {
                    guard !found.isEmpty else {
                        matches = false
                        break
                    }
                    parameters[String(expected.dropFirst().dropLast())] = String(found)
                } else if expected != found {
                    matches = false
                    break
                }
            }
            guard matches else { continue }
            if route.method == method { return .route(route, parameters) }
            methods.append(route.method)
        }
        return methods.isEmpty ? .nothing : .otherMethods(methods)
    }
}
