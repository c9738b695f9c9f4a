internal import Adapters
internal import BrokerCore
internal import CloudCredentials
internal import HTTPMessages
internal import LocalHTTP
internal import Records
internal import RingbackAPI
internal import Secrets
internal import StrictJSON

/// The AWS credentials of the role that the configuration names for an account (`[accounts.NAME.aws]`).
struct RoleResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(
            .getAWSCredentials, "AWS credentials of the account's role", .json(.roleCredentials),
            errors: .ofAccount.and(.ofProvider).and([
                .signInRequired, .sessionExpired, .refreshRefused, .methodUnsupported, .stateConflict,
            ]),
            RoleResource.getAWSCredentials)
    ]

    func getAWSCredentials(_ call: Call) async throws(Problem) -> ServerResponse {
        let name = try call.account()
        let credentials: RoleCredentials
        do throws(ExchangeFailure) {
            guard let roles = daemon.roles else { throw .noRole(name) }
            credentials = try await roles.credentials(of: name)
        } catch {
            throw Problem(error, language: call.language)
        }
        api.noteCredentials(call.facts, of: name)
        return ServerResponse(json: [
            "account": .string(name.rawValue), "access_key_id": .string(credentials.accessKeyID),
            "secret_access_key": .string(credentials.secretAccessKey.revealed()),
            "session_token": .string(credentials.sessionToken.revealed()),
            "expires_at": .integer(credentials.expiresAt),
        ])
    }
}

extension SocketAPI {
    /// Credentials are issued: that is counted, and written to the audit log, as for a token.
    fileprivate func noteCredentials(_ facts: ConnectionFacts, of account: AccountName) {
        guard let records else { return }
        records.metrics.issuedTokens(of: account.rawValue).add()
        guard let caller = facts.caller else { return }
        let use = AuditUse(
            .issuedToken, account: account.rawValue, operation: RingbackAPI.Operation.awsCredentials.rawValue)
        records.audit.note(caller, use, at: broker.now.seconds)
    }
}

extension Problem {
    fileprivate init(_ failure: ExchangeFailure, language: Language) {
        switch failure {
        case .noRole(let name):
            self.init(
                .methodUnsupported, "The configuration names no AWS role for \(name): [accounts.\(name).aws].")
        case .broker(let error): self.init(error, language: language)
        case .service(let host, .refused(let code, let message)):
            let words = message.map { ": \($0.hasSuffix(".") ? String($0.dropLast()) : $0)" } ?? ""
            self.init(
                .providerError, "The token service \(host) responded with “\(code)”\(words).",
                extensions: Problem.members(ofProvider: code, message))
        case .service(let host, .unavailable(let status)):
            self.init(.providerUnreachable, "The token service \(host) is not available (HTTP status \(status)).")
        case .service(let host, .invalid(let reason)):
            self.init(.invalidProviderResponse, "The response of the token service \(host) is not valid: \(reason).")
        }
    }
}

extension Component {
    fileprivate static let roleCredentials = Component(
        "RoleCredentials",
        [
            .required("account", .string), .required("access_key_id", .string),
            .required("secret_access_key", .string), .required("session_token", .string),
            .required("expires_at", .integer),
        ])
}
