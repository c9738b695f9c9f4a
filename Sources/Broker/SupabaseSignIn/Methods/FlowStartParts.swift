internal import BrokerCore
internal import HTTPMessages
internal import OAuth
internal import SupabaseAuth

/// Parts that several methods use.
extension FlowStart {
    /// Makes a flow. If a callback is needed, its redirect URI is opened first.
    func redirected(
        isNeeded: Bool, message: SupabaseFlow.Message?, purpose: SupabaseFlow.Purpose = .signIn
    ) async throws(BrokerError) -> SupabaseFlow {
        let key = SupabaseFlow.newKey()
        guard isNeeded else {
            return SupabaseFlow(
                purpose: purpose, flowKey: key, redirect: nil, pkce: nil, page: nil, message: message,
                keepsProviderToken: false)
        }
        let redirect = try await self.redirect(key)
        return SupabaseFlow(
            purpose: purpose, flowKey: key, redirect: redirect, pkce: PKCE(), page: nil, message: message,
            keepsProviderToken: fields.keepsProviderToken)
    }

    /// On loopback the key is the last part of the path. The listener accepts no other path for this flow.
    private func redirect(_ key: String) async throws(BrokerError) -> SupabaseRedirect {
        let template = account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)"
        guard template.hasPrefix("http://") else {
            if rules.isKeyless { try await context.refuseSecondKeyless(at: template, of: account.name) }
            return try SupabaseProvider.building { () throws(FieldError) in
                try SupabaseRedirect(base: template, key: key, isKeyless: rules.isKeyless)
            }
        }
        let opened = try await context.openRedirect(
            (template.hasSuffix("/") ? template : template + "/") + key, of: account.name)
        return try SupabaseProvider.building { () throws(FieldError) in
            try SupabaseRedirect(
                base: String(opened.dropLast(key.count + 1)), key: key, hasFreePort: template.contains(":{port}"))
        }
    }

    func made(_ flow: SupabaseFlow) -> Beginning {
        .flow(flow, timeout: flow.message == nil ? nil : SupabaseFlow.messageTimeout)
    }

    func close(_ flow: SupabaseFlow) async {
        if let redirect = flow.redirect { await context.closeRedirect(redirect.url, of: account.name) }
    }

    func checkNonce() throws(BrokerError) {
        guard fields.nonce != nil || rules.allowsMissingNonce else {
            throw .invalid(field: "nonce", reason: .supabase(.noNonce))
        }
    }

    /// The user's name, which Apple's ID tokens do not have, if the request has it.
    func userName() throws(BrokerError) -> AppleName? {
        if let user = fields.appleUser {
            guard fields.data == nil else { throw .invalid(field: "data", reason: .supabase(.dataOrUser)) }
            return AppleName(reading: user)
        }
        return try SupabaseProvider.building { () throws(FieldError) in
            try fields.data.flatMap { data throws(FieldError) in try AppleName(parsing: data) }
        }
    }

    func channel() throws(FieldError) -> MessageChannel? {
        guard let name = fields.channel else { return nil }
        return try MessageChannel(parsing: name)
    }

    static func required<Value>(_ value: Value?, _ field: String) throws(FieldError) -> Value {
        guard let value else { throw FieldError.missing(field) }
        return value
    }
}

extension SupabaseProvider {
    /// How a session of a sign-in is opened.
    func opening(_ session: Session, _ request: SignInRequest) -> SessionOpening {
        // The session is open, but its first access token could not be verified yet. The account shows this notice.
        let waits = session.project?.isProved == false && session.tokens[.own] == nil
        return SessionOpening(
            switchesSubject: request.switchesSubject, event: session.isRecovery ? .passwordRecovery : .signedIn,
            notice: waits ? .provider(.unproved(host: host)) : nil)
    }
}

extension Contact {
    var isEmail: Bool { if case .email = self { true } else { false } }
}

extension SupabaseFlow {
    /// The same flow with a page for the browser.
    func opening(_ url: String) -> SupabaseFlow {
        SupabaseFlow(
            purpose: purpose, flowKey: flowKey, redirect: redirect, pkce: pkce, page: url,
            message: message, keepsProviderToken: keepsProviderToken)
    }
}
