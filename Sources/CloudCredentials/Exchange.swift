internal import Adapters
internal import BrokerCore
internal import Cryptography
internal import HTTPMessages
internal import Secrets

extension RoleKeeper {
    /// Exchanges the account's token. If the service takes it for expired, it is refreshed once.
    func exchange(_ role: AssumedRole) async -> Result<RoleCredentials, ExchangeFailure> {
        do throws(ExchangeFailure) {
            let token = try await token(of: role)
            do throws(ExchangeFailure) {
                return .success(try await present(token, for: role))
            } catch {
                guard error.isOfExpiredToken else { throw error }
            }
            try await renew(token, of: role)
            return .success(try await present(try await self.token(of: role), for: role))
        } catch {
            return .failure(error)
        }
    }

    private func token(of role: AssumedRole) async throws(ExchangeFailure) -> Secret {
        do throws(BrokerError) {
            return try await broker.session(role.account, role.query).token.value
        } catch {
            throw .broker(error)
        }
    }

    private func renew(_ token: Secret, of role: AssumedRole) async throws(ExchangeFailure) {
        do throws(BrokerError) {
            _ = try await broker.refresh(
                role.account, of: role.query, isForced: true, rejected: Digest.sha256(token.revealedBytes()))
        } catch {
            throw .broker(error)
        }
    }

    /// Sends the request with the account's certificates and by its proxy. Its further header fields and its pinned keys
    /// are for the provider alone.
    private func present(_ token: Secret, for role: AssumedRole) async throws(ExchangeFailure) -> RoleCredentials {
        let context = broker.signInContext
        var request = HTTPRequest(
            method: "POST", url: role.service.text,
            fields: HTTPFields([("Content-Type", "application/x-www-form-urlencoded")]),
            body: role.exchange.form(token: token), limits: HTTPLimits(maxBody: RoleExchange.maxResponse))
        let response: HTTPResponse
        do throws(BrokerError) {
            let account = try await context.sessions.account(role.account)
            request.trust.certificateAuthorities = account.trust.certificateAuthorities
            request.route = account.route
            response = try await context.tools.send(request)
        } catch {
            throw .broker(error)
        }
        do throws(RoleExchange.Failure) {
            return try RoleExchange.credentials(in: response.body.revealedBytes(), status: response.status)
        } catch {
            throw .service(host: role.service.place, error.unquoting(token))
        }
    }
}

extension ProviderTools {
    fileprivate func send(_ request: HTTPRequest) async throws(BrokerError) -> HTTPResponse {
        do throws(HTTPClientError) {
            return try await http.send(request)
        } catch {
            throw BrokerError(error)
        }
    }
}

extension RoleExchange.Failure {
    /// The same without texts of the service that contain a part of the token.
    fileprivate func unquoting(_ token: Secret) -> RoleExchange.Failure {
        guard case .refused(let code, let message) = self,
            case .provider(.refused(let shown, let words)) =
                BrokerError.provider(.refused(code: code, message: message)).unquoting(token)
        else { return self }
        return .refused(code: shown, message: words)
    }
}
