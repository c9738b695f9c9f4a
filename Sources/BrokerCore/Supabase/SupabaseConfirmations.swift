internal import HTTPMessages
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// How a change of an address or a number is confirmed. Where both addresses of a person must agree, the first code
/// yields nothing but the server's word for it, the second one a session: another one of the same person, which takes
/// the place of the one that is held. A wrong code leaves everything as it is.
extension Broker {
    /// A request that may redeem a code, and where that code would have come from; nil where a link's hash hides it.
    struct Redemption: Sendable {
        let request: HTTPRequest
        let place: ContactChange.Place?
    }

    static func redemptions(
        of change: ContactChange, _ code: Secret?, _ tokenHash: Secret?, _ origin: CodeOrigin,
        _ project: SupabaseProject
    ) throws(FieldError) -> [Redemption] {
        switch (code, tokenHash) {
        case (let code?, nil):
            let digits = try OneTimeCode(parsing: code)
            var redemptions: [Redemption] = []
            for place in try origin.choose(among: change.places) {
                let request = try project.verify(digits, for: place.purpose, of: place.contact)
                redemptions.append(Redemption(request: request, place: place))
            }
            return redemptions
        case (nil, let hash?):
            return [Redemption(request: try project.verify(tokenHash: hash, for: .emailChange), place: nil)]
        default: throw FieldError(field: "code", reason: "a code or a token_hash is needed, and not both")
        }
    }

    /// Nobody says from which of two addresses a code was copied: the server tells, one after the other.
    func redeem(
        _ redemptions: [Redemption], of flow: Flow, _ conversation: SupabaseProvider
    ) async throws(BrokerError) {
        var refusal = BrokerError.flowEnded
        for redemption in redemptions {
            let answer: SessionResponse
            do throws(BrokerError) {
                answer = try await conversation.ask(redemption.request, on: .signIn, Broker.readSession)
            } catch {
                guard error.isWrongCode else { throw error }
                refusal = error
                continue
            }
            return await adopt(answer, redemption.place, flow, conversation)
        }
        throw refusal
    }

    /// The code is spent: what goes wrong from here on ends the flow.
    private func adopt(
        _ answer: SessionResponse, _ place: ContactChange.Place?, _ flow: Flow, _ conversation: SupabaseProvider
    ) async {
        do throws(BrokerError) {
            if try conversation.isHalf(answer) {
                await flowRegistry.confirm(flow.id, half: place)
            } else {
                let fresh = try conversation.inner(answer, on: .signIn)
                try await settleChange(flow, place?.purpose ?? .emailChange, fresh, conversation)
            }
        } catch {
            await flowRegistry.finish(flow.id, as: .failed(error))
        }
    }

    /// Sends the messages of a change again. The request for that knows people by their present address; who has none
    /// yet asks for the change once more.
    func resend(
        _ change: ContactChange, of flow: Flow, _ awaited: SupabaseFlow, _ captcha: Secret?
    ) async throws(BrokerError) -> FlowView {
        try await flowRegistry.admitResending(flow.id)
        do throws(BrokerError) {
            try await resendMail(of: change, flow, awaited.link, captcha)
            try await resendMessage(of: change, flow, captcha)
        } catch {
            await flowRegistry.postponeResending(flow.id, by: error.retryAfter ?? 0)
            throw error
        }
        return try await self.flow(flow.id)
    }

    private func resendMail(
        of change: ContactChange, _ flow: Flow, _ link: MailLink, _ captcha: Secret?
    ) async throws(BrokerError) {
        guard change.email != nil else { return }
        if let current = change.currentEmail {
            try await resend(.emailChange, to: .email(current), link, captcha, flow)
        } else {
            var again = change.asked
            again.phone = nil
            again.channel = nil
            _ = try await put(again, of: flow.account.name, link: link)
        }
        await flowRegistry.forgetConfirmations(flow.id)
    }

    private func resendMessage(of change: ContactChange, _ flow: Flow, _ captcha: Secret?) async throws(BrokerError) {
        guard change.phone != nil else { return }
        if let current = change.currentPhone {
            return try await resend(.phoneChange, to: .phone(current), .none, captcha, flow)
        }
        var again = change.asked
        again.email = nil
        _ = try await put(again, of: flow.account.name, link: .none)
    }

    private func resend(
        _ kind: SupabaseProject.Resending, to contact: Contact, _ link: MailLink, _ captcha: Secret?, _ flow: Flow
    ) async throws(BrokerError) {
        guard let conversation = conversation(with: flow.account) else { throw .flowNotFound }
        let request = try SupabaseFlowStart.building { () throws(FieldError) in
            try conversation.project.resend(kind, to: contact, link: link, captcha: captcha)
        }
        _ = try await conversation.ask(request, on: .signIn, SupabaseFlowStart.readMessage)
    }

    /// One of the changes is through, by a code or by a link; the last one ends the flow.
    func settleChange(
        _ flow: Flow, _ purpose: SupabaseProject.Purpose, _ fresh: SupabaseSession, _ conversation: SupabaseProvider
    ) async throws(BrokerError) {
        let session = try await conversation.session(
            fresh, keepingProviderToken: false, isEphemeral: flow.request.project?.isPersistent == false)
        let isLast = await flowRegistry.confirm(flow.id, whole: purpose)
        try await succeed(session, flow.account)
        if isLast { await flowRegistry.finish(flow.id, as: .completed) }
    }
}

extension SupabaseProvider {
    /// True for the server's word that a confirmation was taken and another one is awaited.
    fileprivate func isHalf(_ answer: SessionResponse) throws(BrokerError) -> Bool {
        do throws(SupabaseError) {
            if case .accepted = try answer.outcome() { return true }
            return false
        } catch {
            throw BrokerError(error, on: .signIn)
        }
    }
}

extension FlowRegistry {
    /// One of two addresses has agreed.
    func confirm(_ id: String, half place: ContactChange.Place?) {
        guard case .email(let address)? = place?.contact else { return }
        edit(id) { $0.confirmed.insert(address) }
    }

    /// A change is through. True if nothing is left to wait for: from here on only ``finish(_:as:)`` ends the flow.
    func confirm(_ id: String, whole purpose: SupabaseProject.Purpose) -> Bool {
        let left = edit(id) { $0.finish(purpose) }
        if left?.isDone == true { entries[id]?.isSettling = true } else { entries[id]?.claim = nil }
        return left?.isDone == true
    }

    /// Both addresses are asked anew.
    func forgetConfirmations(_ id: String) { edit(id) { $0.confirmed = [] } }

    @discardableResult
    private func edit(_ id: String, _ change: (inout ContactChange) -> Void) -> ContactChange? {
        guard let entry = entries[id], entry.status == .pending, case .project(var awaited) = entry.flow.awaited,
            case .change(var contacts)? = awaited.message
        else { return nil }
        change(&contacts)
        awaited.message = .change(contacts)
        entries[id]?.flow.awaited = .project(awaited)
        return contacts
    }

    /// The person signs out: what was to be changed of them is not awaited here any more.
    func endChange(of account: AccountName) async {
        guard let id = pendingID(of: account), let entry = entries[id], entry.flow.request.changesUser,
            !entry.isSettling
        else { return }
        await finish(id, as: .cancelled)
    }
}

extension BrokerError {
    /// The server's word for a code that it does not know, or not for this address.
    fileprivate var isWrongCode: Bool {
        guard case .project(let problem) = self else { return false }
        return problem.providerCode == "otp_expired"
    }
}
