internal import BrokerCore
internal import RingbackBase
internal import SignInPage
internal import SupabaseAuth

extension PageConductor {
    /// How long the response to a form waits for the action. After that the browser is sent to the screen `wait`.
    private static let patience: Duration = .seconds(3)

    /// Performs the action of a form. The response is always a redirect, so that a reload does not send the form again.
    func perform(_ form: PageForm, at path: String) async -> HTTPResponse {
        // The action runs to its end even if the user closes the tab.
        let done = context.tools.work.start { await performInTurn(form, path) }
        guard await done.wait(atMost: PageConductor.patience) != nil else { return see(Screen.wait.rawValue) }
        // If the sign-in has ended, the request for this screen redirects the browser to the next one.
        return see(session.snapshot.screen.rawValue)
    }

    /// Only one action runs at a time. The form of another tab is performed afterwards, in the state that the first one
    /// has left. A copy of the running form, from a second click, is not performed.
    private func performInTurn(_ form: PageForm, _ path: String) async {
        let done = Promise<Void>()
        while true {
            let running = session.edit { state in
                defer {
                    if state.running == nil {
                        state.running = (form.digest, done)
                        state.complaint = nil
                    }
                }
                return state.running
            }
            guard let running else { break }
            guard await running.done.wait() != nil, running.form != form.digest else { return }
        }
        let isUsed = await use(form, path)
        session.edit { state in
            state.running = nil
            if isUsed {
                state.used = state.complaint == nil ? form.digest : nil
            } else if form.hasInput, state.used != form.digest {
                state.complaint = PageComplaint(screen: nil, field: nil, cause: .unused)
            }
        }
        done.fulfil(())
    }

    /// False if the form belongs to no step that is left.
    private func use(_ form: PageForm, _ path: String) async -> Bool {
        guard let id = session.snapshot.flowID, let view = await context.view(id, waiting: .zero) else { return false }
        switch view.status {
        case .pending:
            guard let flow = session.snapshot.flow else { return false }
            return await signIn(form, flow)
        case .completed: return await goOn(form, path)
        case .failed, .expired, .cancelled: return true
        }
    }

    // MARK: The sign-in

    private func signIn(_ form: PageForm, _ flow: Flow) async -> Bool {
        var fields = SupabaseSignInFields()
        fields.email = form.email
        fields.phone = form.phone
        fields.password = form.password
        if let number = form.email, isNumber(number) { (fields.email, fields.phone) = (nil, number) }
        session.edit { [email = fields.email, phone = fields.phone] state in
            guard email != nil || phone != nil else { return }
            (state.email, state.phone) = (email ?? "", phone ?? "")
        }
        // An empty one is refused.
        if let number = fields.phone, !PhoneNumber.isInternational(number) { fields.phone = "" }
        switch form.action {
        case .password: return await redeem(.password, fields, flow, on: .login)
        case .signUp: return await redeem(.signUp, fields, flow, on: .signUp)
        case .code:
            guard let message = session.snapshot.message else { return false }
            let typed = TypedCode(code: form.code)
            return await redeem(.code(message, typed), fields, flow, on: .code)
        case .forgotten:
            return await send(fields, flow, on: .forgotten) { start throws(BrokerError) in try await start.recovery() }
        case .mail, .sms:
            let hasLink = form.action == .mail
            return await send(fields, flow, on: hasLink ? .mail : .sms) { start throws(BrokerError) in
                try await start.message(hasLink: hasLink)
            }
        case .resend:
            await resend(flow)
            return true
        case .switchUser:
            guard let other = session.snapshot.otherUser else { return false }
            return await redeem(.switchUser(other), fields, flow, on: .login)
        case .factor, .challenge, .newPassword, .skip: return false
        }
    }

    /// True if the email field contains a phone number. The field takes both if the project offers both.
    private func isNumber(_ text: String) -> Bool {
        session.settings.open.contains("phone") && text.allSatisfy { $0.isASCII && $0.isNumber || "+ ".contains($0) }
    }

    private func redeem(
        _ step: PageProof.Step, _ fields: SupabaseSignInFields, _ flow: Flow, on screen: Screen
    ) async -> Bool {
        let verdict = await context.redeem(.own(PageProof(step: step, fields: fields)), of: flow)
        switch verdict {
        case .failed(_, let error)?:
            if error != PageRedeeming.otherUser { complain(of: error, on: screen) }
            return true
        case .completed?, .noted?: return true
        case nil, .outdated?, .ignored?, .ended?, .expired?: return false
        }
    }

    private func send(
        _ fields: SupabaseSignInFields, _ flow: Flow, on screen: Screen,
        _ begin: (FlowStart) async throws(BrokerError) -> Beginning
    ) async -> Bool {
        let request = flow.request.choosing(fields)
        do throws(BrokerError) {
            if let wait = secondsLeft { throw .resendTooEarly(retryAfter: wait) }
            let start = FlowStart(provider: provider, context: context, request: request)
            guard case .flow(let awaited, _, _) = try await begin(start), let message = awaited as? SupabaseFlow,
                await context.add(message, to: flow)
            else { return false }
            session.note(message, at: clock.bootInstant)
        } catch {
            postpone(error)
            complain(of: error, on: screen)
        }
        return true
    }

    /// Sends the last message again. The new message has another link and code, for the same request.
    private func resend(_ flow: Flow) async {
        guard let message = session.snapshot.message else { return }
        do throws(BrokerError) {
            if let wait = secondsLeft { throw .resendTooEarly(retryAfter: wait) }
            try await provider.send(message, captcha: nil)
            session.note(message, at: clock.bootInstant)
        } catch {
            postpone(error)
            complain(of: error, on: .resend)
        }
    }

    private func postpone(_ error: BrokerError) {
        guard let wait = error.retryAfter, error != .resendTooEarly(retryAfter: wait) else { return }
        session.edit { $0.nextMessageAt = clock.bootInstant + .seconds(wait) }
    }

    /// Seconds until another message may be sent; nil if it may be sent now.
    private var secondsLeft: Int? {
        let wait = seconds(to: session.snapshot.nextMessageAt)
        return wait > 0 ? wait : nil
    }

    // MARK: After the sign-in

    private func goOn(_ form: PageForm, _ path: String) async -> Bool {
        let step = await steps.next()
        let requests = context.requests(of: account.name)
        do throws(BrokerError) {
            switch (form.action, step) {
            case (.skip, .factor), (.skip, .newPassword):
                // The second click on the form of a step must not leave out the next one.
                guard [step.rawValue, "/"].contains(path) else { return false }
                session.edit { _ = $0.skipped.insert(step) }
            case (.challenge, .factor):
                let id = try await factor(of: form).id
                let former = session.snapshot.challenge.flatMap { $0.factor == id ? $0.nextMessageAt : nil }
                let wait = seconds(to: former)
                if wait > 0 { throw .resendTooEarly(retryAfter: wait) }
                let challenge = try await requests.challenge(factor: id)
                let next = clock.bootInstant + SupabaseFlow.resendInterval
                session.edit { $0.challenge = .init(id: challenge.id, factor: id, nextMessageAt: next) }
            case (.factor, .factor):
                let factor = try await factor(of: form)
                guard let code = form.code else { throw .invalid(field: "code", reason: .stated("missing")) }
                var challenge = session.snapshot.challenge.flatMap { $0.factor == factor.id ? $0.id : nil }
                if factor.kind == FactorKind.totp.rawValue {
                    challenge = try await requests.challenge(factor: factor.id).id
                }
                guard let challenge else { throw .invalid(field: "code", reason: .stated("no message was sent")) }
                try await requests.verify(code, factor: factor.id, challenge: challenge)
            case (.newPassword, .newPassword):
                var changes = UserChanges()
                changes.password = form.password
                guard changes.password != nil else { throw .invalid(field: "password", reason: .stated("missing")) }
                try await requests.put(changes)
                session.edit { _ = $0.skipped.insert(.newPassword) }
            // The form belongs to a step that is already completed; the user may have used the back button.
            default: return false
            }
        } catch {
            // The project changes no password without the factor, so ask for it even if it was left out before.
            if UserMessage(of: error) == .secondFactorNeeded { session.edit { _ = $0.skipped.remove(.factor) } }
            complain(of: error, on: step)
        }
        return true
    }

    private func factor(of form: PageForm) async throws(BrokerError) -> Factor {
        guard let found = await steps.factors().first(where: { $0.id == form.factor }) else {
            throw .invalid(field: "factor", reason: .stated("unknown"))
        }
        return found
    }
}

extension UserMessage {
    init(of error: BrokerError) {
        switch error {
        case .problem(let problem): self = problem.message.flatMap(UserMessage.init(rawValue:)) ?? .signInFailed
        case .invalid("email", _): self = .invalidEmail
        case .invalid("phone", _): self = .invalidPhone
        case .invalid("code", _): self = .wrongCode
        case .invalid("password", _): self = .weakPassword
        case .resendTooEarly: self = .messageSentAlready
        case .provider(.rateLimited): self = .tooManyAttempts
        case .provider(.unreachable): self = .network
        case .provider(.unavailable), .provider(.failing), .vaultUnreachable: self = .serviceDown
        default: self = .signInFailed
        }
    }

    /// The field of the form to which the message belongs; nil for the whole form. `oneForBoth`: one field takes both.
    func field(on screen: Screen, oneForBoth: Bool) -> String? {
        let fields: [Screen: Set<String>] = [
            .login: ["email", "phone", "password"], .signUp: ["email", "phone", "password"], .forgotten: ["email"],
            .mail: ["email"], .sms: ["phone"], .code: ["code"], .factor: ["code"], .newPassword: ["password"],
        ]
        let field: String? =
            switch self {
            case .wrongCode, .codeExpired: "code"
            case .weakPassword, .samePassword, .wrongPassword, .passwordNeeded, .wrongCredentials: "password"
            case .invalidEmail, .emailTaken, .unconfirmedEmail: "email"
            case .invalidPhone, .phoneTaken, .unconfirmedPhone: "phone"
            default: nil
            }
        guard let field, fields[screen]?.contains(field) == true else { return nil }
        return oneForBoth && field == "phone" && screen != .sms ? "email" : field
    }
}
