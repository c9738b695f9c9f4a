internal import BrokerCore
internal import HTTPMessages
internal import RingbackAPI
internal import SessionVault
internal import SharedVault
internal import StrictJSON

/// What may be wrong with the hosts that share a vault.
extension Problem {
    init(_ failure: SharingFailure, language: Language) {
        switch failure {
        case .vault(let error): self.init(BrokerError(error), language: language)
        case .hosts(let failure): self.init(failure, language)
        case .passwordNeeded: self.init(invalid: "password", "that of the invitation is needed.")
        case .passwordRefused:
            self.init(
                .invalidCredentials,
                "The vault's database does not let this host's role in with this password. It was mistyped, the "
                    + "invitation is over, or another host has accepted it.")
        case .noSuchHost: self.init(.notFound, "No host that has joined is called so, or has shown this code.")
        case .failedCode:
            self.init(
                .stateConflict,
                "This code has failed before, and is not accepted again. Remove the host that has shown it, and invite it "
                    + "anew.")
        case .ownHost: self.init(.stateConflict, "This is the host that was asked. Remove it from another host.")
        }
    }

    private init(_ failure: HostFailure, _ language: Language) {
        switch failure {
        case .database, .noHost, .notJoined, .cryptography:
            self.init(BrokerError(VaultError(failure)), language: language)
        case .invitationUsed:
            self.init(.stateConflict, "This invitation was accepted before, with another key. A new one is needed.")
        case .tooManyHosts:
            self.init(.stateConflict, "The owner has as many hosts as the database allows. Remove one first.")
        case .nameTaken:
            self.init(
                .stateConflict, "Another host has this name. Choose another one.",
                extensions: JSONObject([.init("field", "name")]))
        }
    }
}
