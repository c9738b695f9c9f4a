public import RingbackBase

/// One endpoint of the socket API, for the daemon and its clients; the raw value is the `operationId` of OpenAPI.
public enum Endpoint: String, Sendable, CaseIterable {
    case listAccounts, getAccount, listFactors, enrollFactor, removeFactor, challengeFactor, verifyFactor,
        invokeFunction, listIdentities, linkIdentity, unlinkIdentity, getMCPServer, makeProof, acknowledgeMigration,
        migrate, listConsents,
        revokeConsent, beginPasskey, listPasskeys, registerPasskey, removePasskey, renamePasskey, resetPassword,
        reauthenticate, refresh, callFunction, signOut, getSession, signIn, getUser, updateUser, getAudit,
        deliverCallback, listConsentQuestions, answerConsent, listRememberedConsents, forgetConsent, streamDeepLinks,
        acknowledgeDeepLink, getDiagnostics, diagnoseAccount, makeDiagnosticLink,
        getDiagnosticLink, streamEvents, listExposedSockets, createExposedSocket, revokeExposedSocket, getExposedSocket,
        listKeptFiles, listFlows, cancelFlow, getFlow, openFlow, resendFlow, verifyFlow, lookup, getMetrics, getOpenAPI,
        getPeer, register, deleteRegistration, reload, removeSealedSessions, getSessionByIssuer, getStatus,
        listVaultHosts, inviteVaultHost, removeVaultHost, joinVault, lockVault, rekeyVault, shareVault, unlockVault

    public enum Method: String, Sendable, CaseIterable {
        case delete = "DELETE"
        case get = "GET"
        case patch = "PATCH"
        case post = "POST"
    }

    public var method: Method { facts.0 }
    /// Segments in braces are parameters, one segment each.
    public var path: String { facts.1 }
    /// The operation that the policy decides about.
    public var operation: PolicyOperation { facts.2 }

    private var facts: (Method, String, PolicyOperation) {
        switch self {
        case .listAccounts: (.get, "/v1/accounts", .readState)
        case .getAccount: (.get, "/v1/accounts/{account}", .readState)
        case .listFactors: (.get, "/v1/accounts/{account}/factors", .user)
        case .enrollFactor: (.post, "/v1/accounts/{account}/factors", .user)
        case .removeFactor: (.delete, "/v1/accounts/{account}/factors/{id}", .user)
        case .challengeFactor: (.post, "/v1/accounts/{account}/factors/{id}/challenge", .user)
        case .verifyFactor: (.post, "/v1/accounts/{account}/factors/{id}/verify", .user)
        case .invokeFunction: (.post, "/v1/accounts/{account}/functions/{function}", .user)
        case .listIdentities: (.get, "/v1/accounts/{account}/identities", .user)
        case .linkIdentity: (.post, "/v1/accounts/{account}/identities", .user)
        case .unlinkIdentity: (.delete, "/v1/accounts/{account}/identities/{id}", .user)
        case .getMCPServer: (.get, "/v1/accounts/{account}/mcp-server", .token)
        case .acknowledgeMigration: (.delete, "/v1/accounts/{account}/migration", .user)
        case .migrate: (.post, "/v1/accounts/{account}/migration", .user)
        case .listConsents: (.get, "/v1/accounts/{account}/oauth-consents", .user)
        case .revokeConsent: (.delete, "/v1/accounts/{account}/oauth-consents/{id}", .user)
        case .beginPasskey: (.post, "/v1/accounts/{account}/passkey-options", .user)
        case .listPasskeys: (.get, "/v1/accounts/{account}/passkeys", .user)
        case .registerPasskey: (.post, "/v1/accounts/{account}/passkeys", .user)
        case .removePasskey: (.delete, "/v1/accounts/{account}/passkeys/{id}", .user)
        case .renamePasskey: (.patch, "/v1/accounts/{account}/passkeys/{id}", .user)
        case .makeProof: (.post, "/v1/accounts/{account}/proof", .proof)
        case .resetPassword: (.post, "/v1/accounts/{account}/password-reset", .user)
        case .reauthenticate: (.post, "/v1/accounts/{account}/reauthenticate", .user)
        case .refresh: (.post, "/v1/accounts/{account}/refresh", .token)
        case .callFunction: (.post, "/v1/accounts/{account}/rpc/{function}", .user)
        case .signOut: (.delete, "/v1/accounts/{account}/session", .signOut)
        case .getSession: (.get, "/v1/accounts/{account}/session", .token)
        case .signIn: (.post, "/v1/accounts/{account}/sign-in", .signIn)
        case .getUser: (.get, "/v1/accounts/{account}/user", .user)
        case .updateUser: (.patch, "/v1/accounts/{account}/user", .user)
        case .getAudit: (.get, "/v1/audit", .readState)
        case .deliverCallback: (.post, "/v1/callbacks", .deliverCallback)
        case .listConsentQuestions: (.get, "/v1/consents", .readState)
        case .answerConsent: (.post, "/v1/consents/{id}", .manage)
        case .listRememberedConsents: (.get, "/v1/consents/remembered", .readState)
        case .forgetConsent: (.delete, "/v1/consents/remembered/{id}", .manage)
        case .streamDeepLinks: (.get, "/v1/deep-links", .deepLink)
        case .acknowledgeDeepLink: (.post, "/v1/deep-links/{id}/ack", .deepLink)
        case .getDiagnostics: (.get, "/v1/diagnostics", .manage)
        case .diagnoseAccount: (.post, "/v1/diagnostics/accounts", .manage)
        case .makeDiagnosticLink: (.post, "/v1/diagnostics/links", .manage)
        case .getDiagnosticLink: (.get, "/v1/diagnostics/links/{link}", .manage)
        case .streamEvents: (.get, "/v1/events", .readState)
        case .listExposedSockets: (.get, "/v1/exposed-sockets", .manage)
        case .createExposedSocket: (.post, "/v1/exposed-sockets", .manage)
        case .revokeExposedSocket: (.delete, "/v1/exposed-sockets/{id}", .manage)
        case .getExposedSocket: (.get, "/v1/exposed-sockets/{id}", .manage)
        case .listKeptFiles: (.get, "/v1/files", .readState)
        case .listFlows: (.get, "/v1/flows", .readState)
        case .cancelFlow: (.delete, "/v1/flows/{flow}", .signIn)
        case .getFlow: (.get, "/v1/flows/{flow}", .readState)
        case .openFlow: (.post, "/v1/flows/{flow}/open", .signIn)
        case .resendFlow: (.post, "/v1/flows/{flow}/resend", .signIn)
        case .verifyFlow: (.post, "/v1/flows/{flow}/verify", .signIn)
        case .lookup: (.post, "/v1/lookup", .token)
        case .getMetrics: (.get, "/v1/metrics", .readState)
        case .getOpenAPI: (.get, "/v1/openapi.json", .readState)
        case .getPeer: (.get, "/v1/peer", .readState)
        case .register: (.post, "/v1/registrations", .manage)
        case .deleteRegistration: (.delete, "/v1/registrations/{account}", .manage)
        case .reload: (.post, "/v1/reload", .manage)
        case .removeSealedSessions: (.delete, "/v1/sealed-sessions/{account}", .manage)
        case .getSessionByIssuer: (.get, "/v1/session", .token)
        case .getStatus: (.get, "/v1/status", .readState)
        case .listVaultHosts: (.get, "/v1/vault/hosts", .manage)
        case .inviteVaultHost: (.post, "/v1/vault/hosts", .manage)
        case .removeVaultHost: (.delete, "/v1/vault/hosts/{host}", .manage)
        case .joinVault: (.post, "/v1/vault/join", .manage)
        case .lockVault: (.post, "/v1/vault/lock", .manage)
        case .rekeyVault: (.post, "/v1/vault/rekey", .manage)
        case .shareVault: (.post, "/v1/vault/share", .manage)
        case .unlockVault: (.post, "/v1/vault/unlock", .manage)
        }
    }

    public var parameters: [String] { path.split(separator: "/").compactMap(Endpoint.parameter) }

    /// The name of a segment that is a parameter; nil for any other.
    public static func parameter(_ segment: Substring) -> String? {
        segment.hasPrefix("{") ? String(segment.dropFirst().dropLast()) : nil
    }
}
