internal import HTTPMessages
internal import SupabaseAuth

/// Claims on flows of Supabase projects: by the key in the callback, since the server gives no state back. The key is
/// no secret; that the code is this flow's is proved by PKCE alone, and a wrong code costs the flow nothing.
extension FlowRegistry {
    enum SupabaseClaim {
        /// The caller now owns the flow's one callback and must fulfil the promise.
        case claimed(Flow, SupabaseFlow, Promise<CallbackVerdict>)
        case repeated(Promise<CallbackVerdict>)
        /// Another callback of the flow is being worked on, and may turn out not to be genuine.
        case busy(Promise<CallbackVerdict>)
        case ended
        case ignored(String)
        /// It says that the other link of a change is awaited, and nothing else.
        case noted(flow: String)
        /// It came by the link of an older message, which the server does not take any more.
        case outdated(flow: String)
        /// No flow of a project has to do with it.
        case none
    }

    func claim(_ callback: SupabaseCallback, at url: WebURL, fingerprint: [UInt8]) async -> SupabaseClaim {
        guard let id = flow(of: callback, at: url, fingerprint), let entry = entries[id],
            case .project(let awaited) = entry.awaited(for: callback.key(at: url).map(SupabaseCallback.digest) ?? []),
            let redirect = awaited.redirect
        else { return .none }
        guard redirect.isPlace(of: url) else {
            return .ignored("It arrived at another address than the one this sign-in asked for.")
        }
        guard redirect.keyPlace != .none || entry.attempts < SupabaseFlow.maxAttempts else {
            return .ignored("Too many callbacks of this sign-in had a code of another one. Start it again.")
        }
        if redirect.keyPlace == .none, case .refusal = callback.outcome {
            return .ignored("An error without a flow's key could be anybody's: nothing was changed.")
        }
        if case .message(let text) = callback.outcome {
            if awaited.purpose == .change, entry.status == .pending { return .noted(flow: id) }
            return .ignored("It is not the last word: \(text)")
        }
        if entry.status == .pending, entry.hasOlderMessage || awaited.hasTwoMails, callback.isOfSpentLink {
            return .outdated(flow: id)
        }
        if let claim = entry.claim, entry.endedAt == nil, claim.fingerprint != fingerprint {
            return .busy(claim.verdict)
        }
        switch await take(id, fingerprint) {
        case .granted(let verdict): return .claimed(entry.flow, awaited, verdict)
        case .repeated(let verdict): return .repeated(verdict)
        case .ended: return .ended
        case .ignored(let reason): return .ignored(reason)
        }
    }

    private func flow(of callback: SupabaseCallback, at url: WebURL, _ fingerprint: [UInt8]) -> String? {
        if let key = callback.key(at: url), let id = identifiers[SupabaseCallback.digest(ofKey: key)] { return id }
        // What another provider gave another flow is not for the project's eyes.
        guard !hasState(of: url) else { return nil }
        let keyless = entries.filter { _, entry in
            guard case .project(let awaited) = entry.flow.awaited, let redirect = awaited.redirect else { return false }
            return redirect.keyPlace == .none && redirect.isPlace(of: url)
        }
        // A copy of a link that ended a flow a moment ago is that flow's, whichever is pending now.
        let first = keyless.first { isCopy(fingerprint, of: $0.value) }
        return (first ?? keyless.first { $0.value.status == .pending })?.key
    }

    /// True if its callback was the same, and a moment ago.
    func isCopy(_ fingerprint: [UInt8], of entry: Entry) -> Bool {
        guard let claim = entry.claim, claim.fingerprint == fingerprint else { return false }
        return entry.endedAt.map { clock.uptime - $0 <= FlowRegistry.repeatWindow } ?? true
    }

    /// True if it has the state of a flow at a provider of another kind: a project gives none back.
    private func hasState(of url: WebURL) -> Bool {
        let pairs = (try? FormEncoding.parse(url.query ?? "")) ?? []
        return pairs.contains { $0.name == "state" && identifiers[SupabaseCallback.digest(ofKey: $0.value)] != nil }
    }

    /// A server that does not have a flow's address in its list sends the person to the project's Site URL, without a
    /// word: a callback from there says so, whoever pasted it. Nil for what may be anybody's.
    func allowListHint(for url: WebURL) -> String? {
        guard !url.isLoopback, !hasState(of: url) else { return nil }
        for entry in entries.values where entry.status == .pending {
            guard case .project(let awaited) = entry.flow.awaited, let redirect = awaited.redirect,
                let listed = redirect.allowListEntry, let asked = try? WebURL(parsing: redirect.url),
                asked.scheme != url.scheme || asked.host != url.host
            else { continue }
            return
                "It ended at \(url.origin), and the sign-in of \(entry.flow.account.name) asked for \(redirect.url): "
                + "the project does not know that address. Add this to its redirect URLs, then sign in again: \(listed)"
        }
        return nil
    }

    /// The code was not this flow's: it goes on waiting for the genuine one, unless its time has passed meanwhile, which
    /// the claim had kept from ending it.
    func release(_ id: String) async {
        entries[id]?.claim = nil
        entries[id]?.attempts += 1
        guard let flow = entries[id]?.flow, flow.isOver(by: clock) else { return }
        await finish(id, as: .expired(flow.expiry))
    }

    /// Without a key, what a callback belongs to is told by its scheme alone.
    func refuseSecondKeyless(at redirectURI: String, for account: AccountName) throws(BrokerError) {
        let scheme = redirectURI.prefix { $0 != ":" }.lowercased()
        let isTaken = entries.values.contains { entry in
            // What gives way to another flow of its account is ended when that one begins.
            guard entry.status == .pending, entry.flow.account.name != account || !entry.flow.waitsForMail,
                case .project(let awaited) = entry.flow.awaited,
                let redirect = awaited.redirect, redirect.keyPlace == .none
            else { return false }
            return redirect.url.prefix { $0 != ":" }.lowercased() == scheme
        }
        guard !isTaken else {
            throw .conflict(
                "A sign-in by the scheme \(scheme) is pending, and without keys (redirect_flow_key = \"none\") there "
                    + "can be one at a time. Finish or withdraw it.")
        }
    }

    // MARK: Messages

    /// The flow, if a message was sent for it that somebody may answer.
    func messageFlow(
        _ id: String
    ) throws(BrokerError) -> (flow: Flow, awaited: SupabaseFlow, message: SupabaseFlow.Message) {
        guard let entry = entries[id] else { throw .flowNotFound }
        guard entry.status == .pending else { throw .flowEnded }
        guard case .project(let awaited) = entry.flow.awaited, let message = awaited.message else {
            throw .conflict("This sign-in waits for no code.")
        }
        return (entry.flow, awaited, message)
    }

    /// Takes the right to send the message again, or says when there is one.
    func admitResending(_ id: String) throws(BrokerError) {
        guard let due = entries[id]?.resendAt else { return }
        let now = clock.uptime
        guard now >= due else {
            let isServers = entries[id]?.isResendLimitOfServer == true
            throw isServers ? .provider(.rateLimited(retryAfter: due - now)) : .resendTooEarly(retryAfter: due - now)
        }
        entries[id]?.resendAt = now + SupabaseFlow.resendInterval
        entries[id]?.isResendLimitOfServer = false
        entries[id]?.hasOlderMessage = true
    }

    /// The server said when.
    func postponeResending(_ id: String, by seconds: Int) {
        entries[id]?.resendAt = clock.uptime + seconds
        entries[id]?.isResendLimitOfServer = true
    }
}
