internal import BrokerCore
internal import HTTPMessages
internal import RingbackAPI
internal import StrictJSON

/// Problems as an exposed socket reports them. Its clients are in a container or at the far end of a connection, where
/// nothing of the daemon can be changed: details of the daemon's machine are left out.
extension Problem {
    /// - Parameter language: of the sentence for the user.
    init(elsewhere error: BrokerError, language: Language) {
        self.init(error, language: language)
        switch error {
        case .sessionRanOut(let name, _):
            detail = "The session of \(name) runs out, and the provider issued no refresh token to renew it."
        case .sessionExpired(let name, _, _):
            detail = "The provider ended the session of \(name)."
            extensions["provider_message"] = nil
        case .refreshRefused(let name, _, _):
            detail = "The provider rejects the refreshes of the session of \(name)."
            extensions["provider_message"] = nil
        case .vaultLocked: detail = "The vault is locked: no session is served."
        case .vaultUnreachable: detail = "The vault cannot be used at the moment. Nothing was lost: try again."
        case .vaultFailed, .misconfigured, .unusableSetting:
            detail = "The daemon cannot serve this account as it is configured."
        case .tooManyAttempts:
            detail = "This socket caused more requests to the provider than are allowed within a minute."
        default: break
        }
        switch error {
        case .vaultLocked, .vaultFailed, .vaultUnreachable, .misconfigured, .unusableSetting:
            // Names of files and settings are for the machine that runs the daemon.
            for member in Problem.ofMachine { extensions[member] = nil }
        default: break
        }
    }

    private static let ofMachine = [
        "setting", "file", "line", "credential", "cause", "path", "key_source", "other_key_source",
    ]

    /// The same problem with the name of the socket, so that the client knows that commands have no effect on its
    /// machine.
    func told(by exposedSocket: ExposedSocket) -> Problem {
        var problem = self
        problem.extensions["exposed_socket"] = .string(exposedSocket.name)
        return problem
    }
}
