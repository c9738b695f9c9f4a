internal import Cryptography
public import RingbackBase
internal import SessionVault

/// A request to a provider with a session's access token, and what its response changes in the session.
public struct SessionOperation: Sendable {
    public struct Response: Sendable {
        let response: HTTPResponse
        let effect: Effect

        public init(_ response: HTTPResponse, _ effect: Effect) {
            self.response = response
            self.effect = effect
        }
    }

    public enum Effect: Sendable {
        /// The response holds another refresh token, which replaces the one that is held.
        case renewal(RenewalResponse)
        /// Changes the session. Throws if the response is not what was asked for.
        case edit(@Sendable (inout Session) throws(BrokerError) -> Void)
    }

    public enum Meaning: Sendable {
        /// The provider did not accept the access token. One refresh shows whether the session is still valid.
        case tokenRefused
        case dead(code: String?)
        /// The provider said that it did nothing.
        case unchanged
        case unknown
    }

    /// Sends the request; under an attempt if the provider replaces the refresh token.
    public typealias Sending = @Sendable (RefreshAttempt?) async throws(BrokerError) -> Response

    /// The provider replaces the refresh token. The old one counts as used once the request has been sent.
    let rotates: Bool
    let changesIdentities: Bool
    let event: BrokerEvent.Kind?
    /// Builds the request, with the access token that is valid when its turn comes.
    let prepare: @Sendable (any SignInProvider, Secret) throws(BrokerError) -> Sending
    let meaning: @Sendable (BrokerError) -> Meaning

    public init(
        rotates: Bool = false, changesIdentities: Bool = false, event: BrokerEvent.Kind? = nil,
        prepare: @escaping @Sendable (any SignInProvider, Secret) throws(BrokerError) -> Sending,
        meaning: @escaping @Sendable (BrokerError) -> Meaning
    ) {
        self.rotates = rotates
        self.changesIdentities = changesIdentities
        self.event = event
        self.prepare = prepare
        self.meaning = meaning
    }
}

/// Every change of a session that is not a refresh takes its turn in the same lane. A provider that detects reuse of
/// refresh tokens ends a session whose older token is presented after a newer one was made.
extension SessionManager {
    public func change(_ name: AccountName, _ operation: SessionOperation) async throws(BrokerError) -> HTTPResponse {
        try await ready(name)
        let id = try holding(name).lane.id
        return try await inTurns(name) { sessionManager throws(BrokerError) in
            sessionManager.take(.changing(true), id)
            defer { sessionManager.take(.changing(false), id) }
            return try await OperationTurn(id: id, operation: operation).run(by: sessionManager)
        }
    }

    /// Sends a request that changes nothing, without a turn: a slow response delays no sign-out and no refresh.
    public nonisolated func borrow(
        _ name: AccountName, _ operation: SessionOperation
    ) async throws(BrokerError) -> HTTPResponse {
        try await BorrowedToken(account: name, sessionManager: self).ask(operation)
    }
}

struct OperationTurn: Sendable {
    /// How long the access token must be valid.
    private static let margin: Duration = .seconds(30)

    let id: SessionManager.LaneID
    let operation: SessionOperation

    func run(by manager: isolated SessionManager) async throws(BrokerError) -> HTTPResponse {
        if let lockError = manager.lockError { throw lockError }
        do throws(BrokerError) {
            try await freshen(by: manager)
            do throws(BrokerError) {
                return try await send(by: manager)
            } catch {
                guard case .tokenRefused = operation.meaning(error) else { throw error }
            }
            // The error is the same for an expired and for a forged token. One refresh shows which it was.
            try await Refresh(id: id, key: .own, reason: .change).run(by: manager).get()
            return try await send(by: manager)
        } catch {
            if case .dead(let code) = operation.meaning(error), let lane = manager.lane(id) {
                throw await manager.end(lane, code)
            }
            throw error
        }
    }

    /// Refreshes the access token if it might expire during the change.
    private func freshen(by manager: isolated SessionManager) async throws(BrokerError) {
        guard let lane = manager.lane(id), let session = lane.state.session else { throw .signInRequired(id.account) }
        // A session without an access token is refreshed first.
        let now = manager.clock.bootInstant
        guard let remaining = session.tokens[.own].map({ $0.remaining(at: now) }) ?? .zero,
            remaining < OperationTurn.margin
        else { return }
        do throws(BrokerError) {
            try await Refresh(id: id, key: .own, reason: .change).run(by: manager).get()
        } catch {
            // The present token has not expired and may be enough.
            guard remaining > .zero, error.isTransient else { throw error }
        }
    }

    /// Reserves room, sends, stores, validates, serves: as a refresh does, with an access token.
    private func send(by manager: isolated SessionManager) async throws(BrokerError) -> HTTPResponse {
        guard let lane = manager.lane(id), let session = lane.state.visible, let token = session.tokens[.own] else {
            throw .signInRequired(id.account)
        }
        let sending = try operation.prepare(manager.provider(lane.account), token.value)
        let turn = RefreshTurn(lane: lane)
        var permit: RefreshPermit?
        if operation.rotates {
            permit = try await turn.announce(presenting: session.refreshTokens.first, by: manager)
            if permit == nil { return try await send(by: manager) }
        }
        var changed = session
        let response: SessionOperation.Response
        do throws(BrokerError) {
            if let permit {
                response = try await turn.attempt(under: permit, by: manager, sending)
            } else {
                response = try await sending(nil)
            }
            switch response.effect {
            case .renewal(let renewal):
                changed = try await turn.adopt(renewal, presented: session.refreshTokens.first, session, by: manager)
            case .edit(let edit): try edit(&changed)
            }
        } catch {
            // The provider may have made the change though its response was lost. Then the refresh token counts as
            // used, and the provider accepts it for some seconds only. So the session is refreshed at once.
            if operation.rotates {
                if case .unchanged = operation.meaning(error) {
                    await turn.settle(by: manager)
                } else {
                    manager.take(.becameUrgent, id)
                }
            }
            throw error
        }
        guard manager.lane(id)?.state.held != nil else { throw .signInRequired(id.account) }
        var error =
            changed == session
            ? nil : await manager.save(changed, lane.account, as: operation.rotates ? .result : .edit)
        // Another host is at the session, or nobody can be asked. The next refresh brings the change from the provider. It
        // must not be written again: that would be over what another host has received.
        if case .vaultUnreachable? = error, !operation.rotates, manager.lane(id)?.state.isUnsaved != true {
            error = nil
        }
        guard manager.take(.changed(changed, operation.event, error), id) else { throw .signInRequired(id.account) }
        await manager.observer(of: lane.account)?.changed(
            session, to: changed, of: lane.account, isAsked: operation.changesIdentities)
        return response.response
    }
}

struct BorrowedToken: Sendable {
    let account: AccountName
    let sessionManager: SessionManager

    /// Sends the request. If the provider refuses the token, refreshes it and sends the request once more.
    func ask(_ operation: SessionOperation) async throws(BrokerError) -> HTTPResponse {
        var token = try await sessionManager.issuedToken(account, SessionQuery()).token
        do throws(BrokerError) {
            return try await send(operation, token)
        } catch {
            guard case .tokenRefused = operation.meaning(error) else { throw await refused(error, operation, token) }
        }
        try await sessionManager.refresh(account, isForced: true, rejected: Digest.sha256(token.value.revealedBytes()))
        token = try await sessionManager.issuedToken(account, SessionQuery()).token
        do throws(BrokerError) {
            return try await send(operation, token)
        } catch {
            throw await refused(error, operation, token)
        }
    }

    private func send(_ operation: SessionOperation, _ token: AccessToken) async throws(BrokerError) -> HTTPResponse {
        guard var copy = try await sessionManager.readable(account) else {
            throw await sessionManager.absence(of: account)
        }
        let provider = await sessionManager.provider(try await sessionManager.account(account))
        let response = try await operation.prepare(provider, token.value)(nil)
        if case .edit(let check) = response.effect { try check(&copy) }
        return response.response
    }

    /// If the error says that the session has ended, the session is ended here, but only if it still has the token.
    private func refused(
        _ error: BrokerError, _ operation: SessionOperation, _ token: AccessToken
    ) async -> BrokerError {
        guard case .dead(let code) = operation.meaning(error) else { return error }
        let ending = await sessionManager.enqueue(account) { manager -> BrokerError in
            guard let lane = manager.lanes[account], lane.state.session?.tokens[.own]?.value == token.value else {
                return error
            }
            return await manager.end(lane, code)
        }
        return await ending.wait() ?? .cancelled
    }
}
