import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Verifies a factor by its code (for a phone, one is sent first) or by an authenticator's response. A user at a
/// terminal is asked until the code is right.
struct FactorProof {
    let account: String
    let calls: BrokerCalls
    let input: SecretInput
    /// Where the code is read; nil for the terminal or standard input.
    let descriptor: Int32?
    /// The same for a credential.
    let credentialDescriptor: Int32?
    /// The options of an authenticator are printed as the whole document of the challenge.
    let isJSON: Bool

    /// The account's JSON at its new level.
    ///
    /// - Throws: `cancelled` without a code or a credential; the project's error for a wrong one, if there is no user to
    ///   ask again.
    func give(_ factor: Factor, channel: String?) throws(RingbackError) -> JSON {
        if factor.kind == .webAuthn { return try give(to: factor) }
        guard credentialDescriptor == nil else {
            throw RingbackError(
                "validation_failed",
                "--credential-fd is for a security key; this factor is verified by a code (--code-fd).")
        }
        let isPhone = factor.kind == .phone
        var challenge = isPhone ? try send(factor, channel) : nil
        let question = isPhone ? "code (“resend” sends another)" : "code that the app shows"
        while true {
            let code = try input.read(question, from: descriptor, otherwise: "The factor was not verified.")
            let isAsking = SecretInput.asksUser(descriptor)
            do throws(RingbackError) {
                if isPhone, isAsking, code == "resend" {
                    challenge = try send(factor, channel)
                } else {
                    return try calls.verifyFactor(account, factor.id, code: code, challenge: challenge)
                }
            } catch {
                guard isAsking, FactorProof.canBeMended(error) else { throw error }
                Failure(error, account: account).show()
            }
        }
    }

    /// By a credential: this program has no authenticator, so an app or a page in a browser performs the ceremony.
    private func give(to factor: Factor) throws(RingbackError) -> JSON {
        guard descriptor == nil else {
            throw RingbackError(
                "validation_failed",
                "--code-fd is for a code; this factor is verified by a credential (--credential-fd).")
        }
        let document = try calls.project(.challengeFactor, account, factor.id, body: JSONObject())
        let challenge = try FactorChallenge(reading: document)
        if isJSON { Output.json(document) } else { Output.line(challenge.options) }
        let entry = PasskeyEntry(input: input, descriptor: credentialDescriptor)
        guard let credential = try entry.read("navigator.credentials.\(challenge.makesKey ? "create" : "get")()") else {
            throw entry.unread
        }
        return try calls.verifyFactor(account, factor.id, credential: credential, challenge: challenge.id)
    }

    private func send(_ factor: Factor, _ channel: String?) throws(RingbackError) -> String? {
        var body = JSONObject()
        body["channel"] = channel.map { .string($0) }
        let id = try calls.project(.challengeFactor, account, factor.id, body: body)["id"]?.string
        Output.note("A code was sent to \(Sanitizer.line(factor.phone ?? "the phone")).")
        return id
    }

    /// Errors after which another code, or a short wait, may help.
    private static func canBeMended(_ error: RingbackError) -> Bool {
        [.invalidCredentials, .wrongCode, .validationFailed, .rateLimited, .providerUnreachable, .flowExpired]
            .contains(error.kind)
    }
}
