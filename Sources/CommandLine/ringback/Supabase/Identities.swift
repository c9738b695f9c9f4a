import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct SupabaseIdentities: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identities", abstract: "List the user's identities: the linked providers' accounts.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer = try daemon.calls().project(.listIdentities, account)
            if json.isWanted { Output.json(answer) } else { try SupabaseIdentities.show(answer) }
        }
    }

    static func show(_ answer: JSON) throws(RingbackError) {
        let list = answer["identities"]?.array ?? []
        guard !list.isEmpty else { return Output.note("The user has no linked provider's account.") }
        var table = Table(columns: ["PROVIDER", "WHO", "LAST SIGN-IN", "ID"])
        for json in list {
            let identity = try Identity(reading: json)
            let time = identity.lastSignInAt.map { TimeText.dateAndTime($0.secondsSince1970) }
            table.add([identity.provider, identity.email ?? "-", time ?? "-", identity.id])
        }
        Output.table(table)
    }
}

struct SupabaseLink: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Link a provider's account to the user, in the browser or by an ID token.")

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Option(name: .customLong("with"), help: ArgumentHelp("The provider, such as google.", valueName: "provider"))
    var upstream: String

    @Option(help: ArgumentHelp("The scopes to request from the provider, separated by spaces.", valueName: "scopes"))
    var scopes: String?

    @Option(
        name: .customLong("param"),
        help: ArgumentHelp(
            "An additional parameter for the provider's page; may be repeated.", valueName: "name=value"))
    var parameters: [String] = []

    @Flag(help: "Print the page's URL on the first line instead of opening a browser.")
    var noBrowser = false

    @Flag(help: "Replace another pending sign-in of the account.")
    var replace = false

    @Option(help: ArgumentHelp("Seconds until it expires, 1 to 3600.", valueName: "seconds"))
    var timeout: Int?

    @Option(name: .customLong("id-token-fd"), help: SignInOptions.descriptor("an ID token, and open no browser,"))
    var idTokenDescriptor: Int32?

    @Option(name: .customLong("nonce-fd"), help: SignInOptions.descriptor("the ID token's raw nonce"))
    var nonceDescriptor: Int32?

    @Option(name: .customLong("access-token-fd"), help: SignInOptions.descriptor("the provider's access token"))
    var accessTokenDescriptor: Int32?

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func validate() throws {
        guard idTokenDescriptor != nil || (nonceDescriptor == nil && accessTokenDescriptor == nil) else {
            throw ValidationError("--nonce-fd and --access-token-fd belong to --id-token-fd.")
        }
        guard idTokenDescriptor == nil || (!noBrowser && timeout == nil && scopes == nil && parameters.isEmpty) else {
            throw ValidationError("With --id-token-fd there is nothing to open or to wait for.")
        }
        if let timeout, !(1...3_600).contains(timeout) { throw ValidationError("--timeout must be 1 to 3600 seconds.") }
        try SignInOptions.check(parameters: parameters)
        try SignInOptions.check([idTokenDescriptor, nonceDescriptor, accessTokenDescriptor])
    }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let interruption = try Signals.interruption()
            var run = SignInRun(account: account, opensBrowser: !noBrowser)
            run.endpoint = .linkIdentity
            run.timeout = timeout
            run.fields = JSONObject([.init("oauth_provider", .string(upstream))])
            if replace { run.fields["replace"] = true }
            SignInOptions.addRequest(to: &run.fields, scopes: scopes, parameters)
            if idTokenDescriptor != nil {
                let descriptors = SignInOptions.IDTokenDescriptors(
                    idToken: idTokenDescriptor, nonce: nonceDescriptor, accessToken: accessTokenDescriptor)
                let input = SecretInput(interruption: interruption)
                try SignInOptions.addIDToken(to: &run.fields, descriptors, input)
            }
            run.began = { [noBrowser, json] flow, document in
                if json.isWanted {
                    Output.json(document)
                } else if noBrowser, let url = flow.authorizationURL {
                    Output.line(Sanitizer.line(url, limit: 16_384))
                }
            }
            let linked = try run.finish(try daemon.calls(interruption))
            guard !json.isWanted else { return Output.json(linked) }
            Output.line("Linked \(Sanitizer.line(upstream)) to \(account)")
        }
    }
}
