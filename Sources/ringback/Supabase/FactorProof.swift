import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// Proves a factor by its code; a phone is sent one first. A user at a terminal is asked until the code is right.
struct FactorProof {
    let account: String
    let calls: BrokerCalls
    let input: SecretInput
    /// Where the code is read; nil for the terminal or standard input.
    let descriptor: Int32?

    /// The account's JSON at its new level.
    ///
    /// - Throws: `cancelled` without a code; the project's error for a wrong code, if there is no user to ask again.
    func give(_ factor: Factor, channel: String?) throws(RingbackError) -> JSON {
        let isPhone = factor.kind == "phone"
        var challenge = isPhone ? try send(factor, channel) : nil
        let question = isPhone ? "code (“resend” sends another)" : "code that the app shows"
        while true {
            let code = try input.read(question, from: descriptor)
            let isAsking = SecretInput.asksPerson(descriptor)
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
