/// Which sign-ins may begin: an account has one pending flow, beside those that wait for a mail. An equal request joins
/// it; a different one is a conflict, unless the pending one gives way. Everything is decided in one turn.
extension FlowRegistry {
    /// How a sign-in begins.
    enum Admission {
        case existing(FlowView)
        /// An equal request of another caller is about to become a flow.
        case joining(Promise<Result<FlowView?, BrokerError>>)
        /// The caller must make the flow, or say why not, with ``begin(_:fulfilling:)`` or
        /// ``abandon(_:with:fulfilling:)``.
        case begin(Promise<Result<FlowView?, BrokerError>>)
    }

    struct Start {
        let request: SignInRequest
        let promise: Promise<Result<FlowView?, BrokerError>>
        var interest: Int
        var callers: Set<Int32>
    }

    /// How long after its last caller stopped waiting a pending flow may be replaced by another sign-in.
    private static let abandonment: Duration = .seconds(30)

    /// Joins an equal pending sign-in, or reserves the account's place for a new one. A caller that is not interested
    /// waits for the flow but does not keep it pending. A different pending sign-in is a conflict unless it gives way.
    func admit(
        _ account: AccountName, _ request: SignInRequest, isInterested: Bool
    ) async throws(BrokerError) -> Admission {
        forget()
        let interest = isInterested ? 1 : 0
        let callers = Set([request.process].compactMap { $0 })
        if var start = starts[account] {
            if start.request == request {
                start.interest += interest
                start.callers.formUnion(callers)
                starts[account] = start
                return .joining(start.promise)
            }
            guard request.replaces else { throw conflict(account, with: start.request.method, age: .zero) }
        }
        var replaced: String?
        for id in pendingIDs(of: account) {
            guard var entry = entries[id], entry.flow.request == request.withoutSecrets else { continue }
            entry.interest += interest
            entry.callers.formUnion(callers)
            entry.watchedAt = clock.bootInstant
            entries[id] = entry
            return .existing(view(of: entry))
        }
        if let id = pendingIDs(of: account).first, let entry = entries[id] {
            guard givesWay(entry, to: request, isInterested: isInterested) else {
                let age = (clock.bootInstant - entry.flow.beganAt)
                throw conflict(account, with: entry.flow.request.method, age: age)
            }
            // A flow that waits for a mail goes on beside the new one.
            if !entry.flow.awaited.waitsForMail || request.replaces { replaced = id }
        }
        let active = entries.values.count { $0.status == .pending } + starts.count - (replaced == nil ? 0 : 1)
        guard active < FlowRegistry.maxFlows else {
            throw .conflict(.flow(.tooManyPending(most: FlowRegistry.maxFlows)))
        }
        let start = Start(request: request, promise: Promise(), interest: interest, callers: callers)
        let former = starts.updateValue(start, forKey: account)
        former?.promise.fulfil(.failure(.flowCancelled(.flow(.replaced(account)))))
        if let replaced { await finish(replaced, as: .cancelled) }
        return .begin(start.promise)
    }

    /// True if a different sign-in replaces a pending flow: if its request says so, if the flow only waits for a mail
    /// (which may take an hour), or if a user asks and no caller waits for the flow any more.
    private func givesWay(_ entry: Entry, to request: SignInRequest, isInterested: Bool) -> Bool {
        guard !entry.isSettling else { return false }
        if request.replaces || entry.flow.awaited.waitsForMail { return true }
        return isInterested && entry.claim == nil && entry.waiters == 0 && !isHeard(entry.callers)
            && clock.bootInstant - entry.watchedAt >= FlowRegistry.abandonment
    }

    private func conflict(_ account: AccountName, with method: SignInMethod, age: Duration) -> BrokerError {
        .conflict(
            .flow(.anotherPending(account, method: method, age: age.wholeSeconds)), cause: .signInPending(account))
    }
}
