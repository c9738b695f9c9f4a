internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets

/// Where loopback, custom scheme and paste meet. A callback that is not the genuine one of a pending flow changes
/// nothing; the genuine one is worked on once, whoever waits for it.
extension Broker {
    /// What became of a callback that came by any way; its form is the body where it was posted.
    public func receive(_ text: String, form: [UInt8]? = nil) async -> CallbackVerdict {
        let callback: WebURL
        let response: AuthorizationResponse
        do throws(WebURL.Failure) {
            callback = try WebURL(parsing: text)
        } catch {
            return .ignored("It is not a URL.")
        }
        let fingerprint = Digest.sha256(Array(text.utf8) + [0] + (form ?? []))
        if form == nil, let verdict = await receive(callback, fingerprint: fingerprint) { return verdict }
        do throws(AuthorizationResponse.Failure) {
            if let form {
                response = try AuthorizationResponse(parsingForm: form)
            } else {
                response = try AuthorizationResponse(parsing: callback)
            }
        } catch {
            return .ignored(error.explanation)
        }
        let address = String(text.prefix { $0 != "?" && $0 != "#" })
        switch await flowRegistry.claim(response, at: address, fingerprint: fingerprint) {
        case .ignored(let reason): return .ignored(reason)
        case .ended: return .ended
        case .repeated(let verdict): return await verdict.wait() ?? .ignored("The caller went away.")
        case .claimed(let flow, let awaited, let verdict):
            // The person may close the browser's tab: the exchange goes on.
            work.start { verdict.fulfil(await complete(flow, awaited, response)) }
            return await verdict.wait() ?? .ignored("The caller went away.")
        }
    }

    /// Nothing will come of the flow: nobody waits for its callback any more.
    func close(_ flow: Flow) async {
        if !flow.redirectURI.isEmpty { await callbackReceiver.close(flow.redirectURI) }
        if case .project(let awaited) = flow.awaited, let upstream = awaited.upstream {
            _ = try? await flowRegistry.cancel(upstream.flow, isForAll: false)
        }
    }

    private func complete(
        _ flow: Flow, _ awaited: AuthorizationFlow, _ response: AuthorizationResponse
    ) async -> CallbackVerdict {
        do throws(BrokerError) {
            let code: Secret
            switch response.outcome {
            case .code(let value): code = value
            case .refusal(let refusal): throw BrokerError(refusal, for: flow.account.name)
            }
            let provider = Provider(account: flow.account, http: http, directory: directory, clock: clock)
            // A code that is used for a session which cannot be kept leaves a grant behind that nobody holds.
            try await sessionManager.admitsSession(flow.account.name)
            let session = try await provider.exchange(code, of: awaited)
            guard await flowRegistry.settle(flow.id) else {
                throw .flowCancelled("The sign-in of \(flow.account.name) was withdrawn before it was done.")
            }
            try await open(session, for: flow.account, switchingSubject: flow.request.switchesSubject)
            await flowRegistry.finish(flow.id, as: .completed)
            return .completed(flow: flow.id)
        } catch {
            await flowRegistry.finish(flow.id, as: .failed(error))
            return .failed(flow: flow.id, error)
        }
    }
}

extension BrokerError {
    /// An error that came with the callback: the person's no, or the provider's.
    init(_ refusal: OAuthError.Refusal, for account: AccountName) {
        switch refusal.code {
        case "access_denied": self = .accessDenied(account)
        case "temporarily_unavailable", "server_error":
            self = .provider(.unavailable(status: refusal.status, retryAfter: nil))
        default: self = .provider(.refused(code: refusal.code, message: refusal.message))
        }
    }
}
