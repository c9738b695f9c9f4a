internal import Cryptography
internal import HTTPMessages
internal import Secrets

/// Requests that change nothing of a session. The token is borrowed and the lane is not held, so that a slow response
/// delays neither a sign-out nor a refresh.
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
        try await sessionManager.refresh(
            account, isForced: true, rejected: Digest.sha256(token.value.revealedBytes()))
        token = try await sessionManager.issuedToken(account, SessionQuery()).token
        do throws(BrokerError) {
            return try await send(operation, token)
        } catch {
            throw await refused(error, operation, token)
        }
    }

    private func send(
        _ operation: SessionOperation, _ token: AccessToken
    ) async throws(BrokerError) -> HTTPResponse {
        guard var copy = try await sessionManager.readable(account) else {
            throw await sessionManager.absence(of: account)
        }
        let provider = await sessionManager.provider(try await sessionManager.account(account))
        let response = try await operation.prepare(provider, token.value)(nil)
        if case .edit(let check) = response.effect { try check(&copy) }
        return response.response
    }

    private func refused(
        _ error: BrokerError, _ operation: SessionOperation, _ token: AccessToken
    ) async -> BrokerError {
        guard case .dead(let code) = operation.meaning(error) else { return error }
        return await sessionManager.endIfHeld(account, token, code: code, otherwise: error)
    }
}
