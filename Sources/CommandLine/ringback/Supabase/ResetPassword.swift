import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseResetPassword: AccountVerb {
    static let configuration = CommandConfiguration(
        commandName: "reset-password", abstract: "Choose a new password if the current one is forgotten.",
        discussion: """
            A mail with a code is sent to an address that the project knows. The code is read as with login, then the \
            code of the second factor, if the user has one, then the new password: asked for twice on the terminal, \
            otherwise the next line of standard input, if there is one. Without a new password the user is signed in, \
            and “supabase update-user --password” sets one later.
            """)

    @OptionGroup var target: AccountOptions

    @Option(help: "The user's address.")
    var email: String

    @Flag(help: "Replace another pending sign-in of the account.")
    var replace = false

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the code"))
    var codeDescriptor: Int32?

    @Option(name: .customLong("password-fd"), help: SignInOptions.descriptor("the new password"))
    var passwordDescriptor: Int32?

    @Option(name: .customLong("captcha-token-fd"), help: SignInOptions.descriptor("the proof of a CAPTCHA"))
    var captchaDescriptor: Int32?

    func validate() throws { try SignInOptions.check([codeDescriptor, passwordDescriptor, captchaDescriptor]) }

    func run() throws {
        let interruption = try Signals.interruption()
        let input = SecretInput(interruption: interruption)
        let calls = try daemon.calls(interruption)
        var run = SignInRun(account: account, opensBrowser: false)
        run.endpoint = .resetPassword
        run.fields = JSONObject(texts: ["email": email])
        if replace { run.fields["replace"] = true }
        if let captchaDescriptor {
            run.fields["captcha_token"] = .string(try input.read("CAPTCHA token", from: captchaDescriptor))
        }
        run.codeDescriptor = codeDescriptor
        run.began = { [json] _, document in if json.isWanted { Output.json(document) } }
        var recovered = try run.finish(calls)
        do throws(RingbackError) {
            recovered = try verifyFactor(recovered, calls, input)
            if let answer = try setPassword(calls, input) {
                if json.isWanted { return Output.json(answer) }
                return Output.line("The password of \(account) was changed.")
            }
        } catch {
            throw advised(error)
        }
        if json.isWanted { return Output.json(recovered) }
        Output.line(SignInRun.result(account, recovered))
        if let hint = Assurance.hint(account, recovered) { Output.note(hint) }
        Output.note(SupabaseResetPassword.later(account))
    }

    static func later(_ account: String) -> String {
        "To choose a password: \(shown: "ringback supabase update-user \(account) --password")"
    }

    private static func withFactor(_ account: String) -> String {
        "To choose the password: \(shown: "ringback supabase verify-factor \(account)"), then "
            + "\(shown: "ringback supabase update-user \(account) --password")"
    }

    /// The user is signed in already, and another recovery would begin anew, also with the second factor.
    private func advised(_ error: RingbackError) -> RingbackError {
        let needsFactor = error.problem?.extensions["provider_code"]?.string == "insufficient_aal"
        var error = SupabaseUpdateUser.explained(error, account)
        if needsFactor || error.advice == nil {
            error.advice =
                needsFactor ? SupabaseResetPassword.withFactor(account) : SupabaseResetPassword.later(account)
        }
        return error
    }

    // MARK: The second factor

    /// The project changes no password without the user's second factor. Returns the account's JSON at its new level,
    /// or as it is if no code can be read.
    private func verifyFactor(
        _ recovered: JSON, _ calls: BrokerCalls, _ input: SecretInput
    ) throws(RingbackError) -> JSON {
        guard Assurance.hint(account, recovered) != nil else { return recovered }
        let isAsking = SecretInput.asksUser(nil)
        // Without a user to ask, no message is sent to a phone: its code could not be read.
        let factors = try SupabaseFactors.all(of: account, calls).filter {
            $0.isVerified && ($0.kind == .totp || $0.kind == .phone && isAsking)
        }
        guard let factor = try choose(among: factors, isAsking, input.interruption) else { return recovered }
        let proof = FactorProof(
            account: account, calls: calls, input: input, descriptor: nil, credentialDescriptor: nil,
            isJSON: json.isWanted)
        do throws(RingbackError) {
            return try proof.give(factor, channel: nil)
        } catch {
            guard error.kind == .cancelled, !isAsking, !input.interruption.isInterrupted else {
                var error = error
                error.advice = SupabaseResetPassword.withFactor(account)
                throw error
            }
            return recovered
        }
    }

    /// Nil if there is none.
    private func choose(
        among factors: [Factor], _ isAsking: Bool, _ interruption: Interruption
    ) throws(RingbackError) -> Factor? {
        guard factors.count > 1, isAsking else { return factors.first }
        Output.note("The user has \(factors.count) second factors:")
        let labels = factors.map { factor in
            "\(Sanitizer.line(factor.name ?? factor.phone ?? factor.id)) (\(factor.kind.rawValue))"
        }
        let questions = Questions(interruption: interruption, ending: "The factor was not verified.")
        return factors[try questions.choose("Number of the factor", among: labels)]
    }

    // MARK: The new password

    /// Sets the new password; nil if none is given. A user is asked until the project accepts one.
    private func setPassword(_ calls: BrokerCalls, _ input: SecretInput) throws(RingbackError) -> JSON? {
        while true {
            guard let password = try newPassword(input) else { return nil }
            do throws(RingbackError) {
                return try calls.project(.updateUser, account, body: JSONObject(texts: ["password": password]))
            } catch {
                guard SecretInput.asksUser(passwordDescriptor),
                    [.weakPassword, "password_reset_failed", .validationFailed].contains(error.kind),
                    error.recovery == .none
                else { throw error }
                Failure(error, account: account).show()
            }
        }
    }

    /// Asked for until the same is typed twice; nil for none.
    private func newPassword(_ input: SecretInput) throws(RingbackError) -> String? {
        guard SecretInput.asksUser(passwordDescriptor) else {
            return try input.readOptional("new password", from: passwordDescriptor)
        }
        while true {
            guard let first = try input.readOptional("new password", from: nil, hint: ", empty to choose it later")
            else { return nil }
            if try input.readOptional("same again", from: nil) == first { return first }
            Output.note("The two are not the same.")
        }
    }
}
