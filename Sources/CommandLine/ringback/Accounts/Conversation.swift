import RingbackBase
import RingbackClient
import Terminal

/// `account add` on a terminal asks for what the options do not say. All questions come before anything is written.
struct AccountConversation {
    var add: AccountAdd
    private(set) var mayRegister = false
    let calls: BrokerCalls
    let questions: Questions
    private(set) var hasShownURIs = false
    /// The text that the provider was last asked about and found right; it is not asked about the same text again.
    var asked: String?

    private var description: AccountDescription {
        get { add.description }
        set { add.description = newValue }
    }

    mutating func run(_ known: [String]) throws(RingbackError) {
        let choice = try chooseProvider()
        try askPlace(of: choice)
        try askName(choice, known)
        try askProvider(choice)
        try offerRegistration(choice)
        // Git needs scopes of its own, which some providers ask for at the registration of the client.
        let usual = UsualOrigin.all(of: description.provider)
        if !add.origins, !usual.isEmpty {
            Output.note("Git and other tools can get its token for:")
            for origin in usual { Output.note("  \(origin.url)") }
            add.origins = try questions.confirm("Allow that?", byDefault: false)
        }
        if !add.registration.register {
            if let choice, !description.isService { try showSteps(choice) }
            try askClient(choice)
        }
        if !add.login, !description.isService {
            add.login = try questions.confirm("Sign in when the account is added?", byDefault: true)
        }
    }

    private mutating func chooseProvider() throws(RingbackError) -> ProviderChoice? {
        guard description.isOpen else { return ProviderChoice(description) }
        Output.note("Which provider?")
        for (index, choice) in ProviderChoice.allCases.enumerated() {
            Output.note("  \(index + 1)  \(choice.facts.label)")
        }
        while true {
            let answer = try questions.text("Number, or the URL of an OpenID Connect provider")
            if answer.contains("://") || answer.contains(".") {
                description.issuer = AccountConversation.url(answer)
                return .openid
            }
            let index = Int(answer).map { $0 - 1 } ?? -1
            let named = ProviderChoice(rawValue: answer.lowercased())
            guard let choice = ProviderChoice.allCases.indices.contains(index) ? ProviderChoice.allCases[index] : named
            else {
                Output.note("There is no provider “\(Sanitizer.line(answer, limit: 80))” in the list.")
                continue
            }
            if ![.openid, .mcp, .sandbox].contains(choice) { description.provider = choice.rawValue }
            return choice
        }
    }

    /// Hosts are often typed without the scheme.
    private static func url(_ answer: String) -> String { answer.contains("://") ? answer : "https://\(answer)" }

    private func askURL(_ question: String, default usual: String? = nil) throws(RingbackError) -> String {
        AccountConversation.url(try questions.text(question, default: usual))
    }

    private mutating func askPlace(
        of choice: ProviderChoice?, after former: AccountDescription? = nil
    ) throws(RingbackError) {
        switch choice {
        case .microsoft where description.tenant == nil:
            description.tenant = try questions.text(
                "The directory: its id, common, organizations or consumers", default: "common")
        case .supabase:
            let hasURL = description.url != nil
            if !hasURL {
                description.url = try askURL(
                    former == nil ? "The project's URL, such as https://abcdefgh.supabase.co" : "The project's URL",
                    default: former?.url)
            }
            // The provider's own projects have a gateway.
            if description.apiKey == nil, !description.noGateway, description.url?.contains(".supabase.co") == false,
                former == nil || !hasURL
            {
                description.noGateway = try questions.confirm(
                    "Is this a Supabase Auth server without an API gateway?", byDefault: false)
            }
            if description.apiKey == nil, !description.noGateway {
                Output.note("Its publishable key: https://supabase.com/dashboard/project/_/settings/api-keys")
                description.apiKey = try questions.text("Publishable key")
            }
        case .openid where description.issuer == nil:
            description.issuer = try askURL("The provider's URL (the issuer)", default: former?.issuer)
        case .mcp where description.mcp == nil:
            description.mcp = try askURL("The server's URL, such as https://mcp.example.com/mcp", default: former?.mcp)
        case .sandbox where description.issuer == nil:
            Output.note("Start it in another terminal: ringback-sandbox --port 8123 --user alice")
            description.issuer = try askURL("The sandbox's URL", default: former?.issuer ?? "http://127.0.0.1:8123")
            description.clientID = description.clientID ?? "ringback-demo"
        default: break
        }
    }

    private mutating func askName(_ choice: ProviderChoice?, _ known: [String]) throws(RingbackError) {
        guard add.account == nil else { return }
        let usual = choice?.facts.name ?? "work"
        let free = [usual] + (2...99).map { "\(usual)\($0)" }
        while add.account == nil {
            let answer = try questions.text("A name for the account", default: free.first { !known.contains($0) })
            if !RequestTarget.isAccountName(answer) {
                Output.note(AccountAdd.nameRule)
            } else if known.contains(answer), !add.replace {
                Output.note("There is an account \(answer) already.")
            } else {
                add.account = answer
            }
        }
    }

    private mutating func askProvider(_ choice: ProviderChoice?) throws(RingbackError) {
        while !add.offline {
            var isKeyRefused = false
            Output.note("Asking the provider …")
            do throws(RingbackError) {
                let draft = draft(choice)
                let found = try ProviderCheck.run(add.name, draft, calls)
                description.leaveOutOfflineAccess(found)
                guard found.checks != nil else {
                    add.offline = true
                    return
                }
                if let error = found.error {
                    isKeyRefused = found.refusesKey
                    throw error
                }
                mayRegister = found.offersRegistration
                asked = draft.text(for: add.name)
                return Output.note("The provider responds.", after: .good)
            } catch {
                guard let choice, error.kind != .cancelled, !Signals.isInterrupted else {
                    throw error.kind == .cancelled ? RingbackError(.cancelled, questions.ending) : error
                }
                show(error)
                let former = description
                switch choice {
                case .openid, .sandbox: description.issuer = nil
                case .mcp: description.mcp = nil
                case .supabase where isKeyRefused: description.apiKey = nil
                case .supabase: (description.url, description.apiKey, description.noGateway) = (nil, nil, false)
                case .google, .microsoft, .github, .gitlab:
                    guard try questions.confirm("Go on without asking the provider?", byDefault: false) else {
                        throw RingbackError(.cancelled, questions.ending)
                    }
                    add.offline = true
                    return
                }
                try askPlace(of: choice, after: former)
            }
        }
    }

    private func show(_ error: RingbackError) {
        let mistakes = Failure.mistakes(error["errors"])
        for line in mistakes.isEmpty ? [Sanitizer.line(error.detail, limit: 600)] : mistakes {
            Output.note(line, after: .bad)
        }
    }

    private mutating func offerRegistration(_ choice: ProviderChoice?) throws(RingbackError) {
        let hasClient = description.clientID != nil || description.hasProof || description.grant != nil
        guard mayRegister, choice == .openid, !add.registration.register, !hasClient else { return }
        Output.note("The provider registers clients itself. Which client?")
        let labels = ["a new one, which it registers for this account", "one that it has already"]
        add.registration.register = try questions.choose("Number", among: labels) == 0
    }

    /// The account as far as it is known. With a secret the provider is not asked for the client, which does not exist
    /// yet.
    private func draft(_ choice: ProviderChoice?) -> AccountDescription {
        var draft = description
        guard choice != .supabase, draft.mcp == nil, draft.clientID == nil, !draft.mayBeUnnamed else { return draft }
        draft.clientID = AccountRegistration.standIn
        if !draft.hasProof { draft.clientSecret = AccountRegistration.standIn }
        draft.clientAuthentication = nil
        return draft
    }

    private mutating func showSteps(_ choice: ProviderChoice) throws(RingbackError) {
        guard let name = add.account, choice == .supabase || description.clientID == nil, choice != .mcp else { return }
        description.redirectURI = description.redirectURI ?? choice.redirectURI(for: name)
        let report = try check(draft(choice))
        let uris = ConfigurationCheck.account(name, in: report).map(ConfigurationCheck.redirectURIs) ?? []
        guard choice != .supabase || !uris.isEmpty else { return }
        hasShownURIs = true
        if let step = choice.facts.step { Output.note(step) }
        if let page = choice.facts.page { Output.note("  \(page)") }
        let entered = choice.entered(uris)
        if choice == .google {
            Output.note("It needs no redirect URI.")
        } else if !entered.isEmpty {
            Output.note("The redirect URI to enter:")
            for uri in entered { Output.note("  " + Sanitizer.line(uri, limit: 2_000)) }
            if entered.contains(where: { $0.contains("{port}") }) { Output.note(ProviderChoice.portNote) }
        }
    }

    private mutating func askClient(_ choice: ProviderChoice?) throws(RingbackError) {
        guard choice != .supabase, (description.mcp == nil && !description.mayBeUnnamed) || description.clientID != nil
        else { return }
        var isGiven = description.clientID != nil
        var former: String?
        while true {
            var isRefused = false
            if !isGiven {
                // In the order in which the providers' pages show them.
                description.clientID = try questions.text("Client ID", default: former)
                if description.clientSecretFD == nil { description.clientSecret = nil }
                let needsSecret = choice?.facts.needsSecret == true || description.grant == "client_credentials"
                if needsSecret || choice?.facts.mayHaveSecret ?? true, !description.hasProof {
                    description.clientSecret = try askSecret(isNeeded: needsSecret)
                }
                if description.scopes.isEmpty, !description.isService, let usual = usualScopes(choice?.facts) {
                    let answer = try questions.text("Scopes, separated by spaces", default: usual)
                    description.scopes = answer.split(separator: " ").map(String.init)
                }
            }
            do throws(RingbackError) {
                _ = try check(description)
                guard !add.offline, let name = add.account, description.text(for: name) != asked else { return }
                let found = try ProviderCheck.run(name, description, calls, isClientOnly: asked != nil)
                guard let error = found.error else { return }
                isRefused = found.refusesClient
                throw error
            } catch {
                if Signals.isInterrupted { throw RingbackError(.cancelled, questions.ending) }
                guard error.kind == .invalidConfiguration else { throw error }
                show(error)
                (isGiven, former) = (false, description.clientID)
                // A client that is not known, or has a secret: the scopes are right.
                if !isRefused { description.scopes = [] }
            }
        }
    }

    private func usualScopes(_ facts: ProviderChoice.Facts?) -> String? {
        guard let usual = facts?.scopes else { return nil }
        if description.leavesOutOfflineAccess { return description.usualScopes.joined(separator: " ") }
        return add.origins ? facts?.gitScopes.map { "\($0) \(usual)" } ?? usual : usual
    }

    private func askSecret(isNeeded: Bool) throws(RingbackError) -> String? {
        while true {
            let question =
                isNeeded ? ", which the provider shows beside the ID" : " (it is not shown; empty if there is none)"
            let secret = try questions.secret("Client secret\(question): ")
            if secret != nil || !isNeeded { return secret }
            Output.note(Questions.needed)
        }
    }

    private func check(_ draft: AccountDescription) throws(RingbackError) -> JSON {
        let config = add.config.path
        return try AccountFile(name: add.name, configuration: config).check(draft.text(for: add.name), config: config)
    }
}
