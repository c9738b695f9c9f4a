internal import Cryptography
internal import OAuth
internal import Secrets

/// What a sign-in on another device knows (RFC 8628). It ends by the provider's answer to our own questions: nothing
/// arrives here, so nobody else can end it.
struct DeviceFlow: Sendable {
    let metadata: ProviderMetadata
    let scopes: [String]
    /// As the codes were asked for; a signed proof is made anew for each question.
    let registration: ClientRegistration
    let authorization: DeviceAuthorization
    /// When the codes came, in milliseconds since boot.
    let answeredAt: Int
    /// No callback has it: it is never sent.
    let key = RandomToken.bytes(32)

    /// What the person is shown.
    var shown: DeviceCode {
        DeviceCode(
            userCode: authorization.userCode, verificationURI: authorization.verificationURI,
            verificationURIComplete: authorization.verificationURIComplete)
    }

    /// What is said when nobody came in time.
    func expiry(of account: AccountName, after seconds: Int) -> String {
        "The sign-in of \(account) was not finished within \(seconds) seconds. Waited for the code "
            + "\(authorization.userCode) to be entered at \(authorization.verificationURI)."
    }
}

/// A code and where a person enters it.
public struct DeviceCode: Sendable, Equatable {
    public let userCode: String
    public let verificationURI: String
    /// The address with the code in it, if there is one.
    public let verificationURIComplete: String?
}

extension FlowRegistry {
    /// A question to the provider is on its way: until it is over, time does not end the flow, since a yes that comes
    /// now came in time. Nil if the flow waits no more.
    func beginQuestion(_ id: String) async -> Promise<CallbackVerdict>? {
        guard case .granted(let verdict) = await take(id, []) else { return nil }
        return verdict
    }

    /// The answer was "not yet".
    func endQuestion(_ id: String) async {
        entries[id]?.claim = nil
        guard let entry = entries[id], entry.flow.isOver(by: clock) else { return }
        await finish(id, as: .expired(entry.flow.expiry))
    }
}
