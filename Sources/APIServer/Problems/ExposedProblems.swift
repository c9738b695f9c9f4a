internal import BrokerCore
internal import RingbackAPI
internal import StrictJSON

/// Failures as a restricted socket tells them: to somebody who is elsewhere, in a container or at the far end of a
/// connection, and who can do there nothing of what they are told to. Whoever can is where the daemon runs.
extension Problem {
    /// - Parameter language: of the sentence for the person, as everywhere.
    init(elsewhere error: BrokerError, language: Language) {
        self.init(error, language: language)
        let place = "On the machine that runs the daemon:"
        switch error {
        case .signInRequired(let name): detail = "\(name) is not signed in. \(place) ringback login \(name)"
        case .sessionRanOut(let name, _):
            detail =
                "The session of \(name) runs out, and the provider gave no refresh token to renew it. \(place) "
                + "ringback login \(name)"
        case .sessionExpired(let name, _):
            detail = "The provider ended the session of \(name). \(place) ringback login \(name)"
        case .vaultLocked: detail = "The vault is locked: no session is served. \(place) ringback unlock"
        case .vaultFailed, .misconfigured:
            // What is wrong with files there is nothing to read about here.
            detail = "The daemon cannot serve this account as it is configured. \(place) ringback doctor"
        case .tooManyAttempts:
            detail = "More was asked of the provider through this socket than it is to be bothered with."
        default: break
        }
    }

    /// The same, with the socket that it was told by: a program that gives advice knows that it is elsewhere.
    func told(by exposedSocket: ExposedSocket) -> Problem {
        var problem = self
        problem.extensions["exposed_socket"] = .string(exposedSocket.name)
        return problem
    }
}
