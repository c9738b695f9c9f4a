import ArgumentParser
import RingbackClient
import StrictJSON

/// What `login` can say about a sign-in. The daemon checks addresses and passwords.
struct SignInOptions: ParsableArguments {
    @Option(
        name: .customLong("method"),
        help: ArgumentHelp(
            "How to sign in: browser, or device with a code; the others are for Supabase projects.",
            valueName: "method"))
    var stated: SignInMethod?

    @Flag(
        name: .customLong("page"),
        help: "Choose the method on a page that Ringback serves in the browser, as --method page.")
    var isPage = false

    /// The browser, if no method was named.
    var method: SignInMethod { stated ?? (isPage ? .page : .browser) }

    @Option(
        name: .customLong("with"),
        help: ArgumentHelp("The provider behind a Supabase project, such as google.", valueName: "provider"),
        completion: Completions.upstreams)
    var upstream: String?

    @Option(
        name: .customLong("from"),
        help: ArgumentHelp(
            "id_token: the configured account whose ID token it is; without it and --with, the id_token_account.",
            valueName: "account"), completion: Completions.accounts)
    var fromAccount: String?

    @Option(help: "The e-mail address of the user who signs in or gets the message.")
    var email: String?

    @Option(help: ArgumentHelp("The user's phone number with its country code.", valueName: "number"))
    var phone: String?

    @Option(help: "How a code is sent to the phone.")
    var channel: Channel?

    @Option(help: "sso: the domain of the organization's addresses.")
    var domain: String?

    @Option(name: .customLong("provider-id"), help: ArgumentHelp("sso: its id.", valueName: "id"))
    var providerID: String?

    @Option(
        help: ArgumentHelp(
            "A JSON object for a new user's metadata; id_token: the name that Apple sends only once.",
            valueName: "json"))
    var data: String?

    @Option(
        help: ArgumentHelp("Request these instead of the account's own, separated by spaces.", valueName: "scopes"))
    var scopes: String?

    @Option(
        name: .customLong("param"),
        help: ArgumentHelp(
            "An additional parameter for the provider's page; may be repeated.", valueName: "name=value"))
    var parameters: [String] = []

    @Flag(help: "Do not store the session in the vault's files: it ends when the daemon stops.")
    var noPersist = false

    @Flag(help: "Keep the provider's own access token too, for callers that ask for it.")
    var providerToken = false

    @Flag(help: "otp, magic_link: an unknown address is rejected.")
    var noCreateUser = false

    @Option(name: .customLong("password-fd"), help: SignInOptions.descriptor("the password"))
    var passwordDescriptor: Int32?

    @Option(name: .customLong("id-token-fd"), help: SignInOptions.descriptor("the ID token"))
    var idTokenDescriptor: Int32?

    @Option(name: .customLong("nonce-fd"), help: SignInOptions.descriptor("the ID token's raw nonce"))
    var nonceDescriptor: Int32?

    @Option(name: .customLong("access-token-fd"), help: SignInOptions.descriptor("the access token"))
    var accessTokenDescriptor: Int32?

    @Option(name: .customLong("refresh-token-fd"), help: SignInOptions.descriptor("the refresh token"))
    var refreshTokenDescriptor: Int32?

    @Option(name: .customLong("captcha-token-fd"), help: SignInOptions.descriptor("the proof of a CAPTCHA"))
    var captchaDescriptor: Int32?

    @Option(name: .customLong("code-fd"), help: SignInOptions.descriptor("the code that was sent"))
    var codeDescriptor: Int32?

    @Flag(help: "Wait even if no code can be read here: for the link in the mail, or for ringback verify.")
    var wait = false

    @Option(
        name: .customLong("credential-fd"),
        help: SignInOptions.descriptor("passkey: the authenticator's response, as JSON,"))
    var credentialDescriptor: Int32?

    /// How a code reaches a phone.
    enum Channel: String, ExpressibleByArgument, CaseIterable { case sms, whatsapp }

    static func descriptor(_ what: String) -> ArgumentHelp {
        ArgumentHelp("Read \(what) from this descriptor.", valueName: "number")
    }

    func validate() throws {
        if isPage, stated ?? .page != .page { throw ValidationError("--page is --method page.") }
        if let option = given.first(where: { !method.options.contains($0) }) {
            throw ValidationError("--\(option) does not belong to --method \(method.rawValue).")
        }
        let contacts = [email, phone].compactMap { $0 }.count
        switch method {
        case .password, .signUp, .otp:
            guard contacts == 1 else { throw ValidationError("Name the user: --email ADDRESS or --phone NUMBER.") }
        case .magicLink: guard email != nil else { throw ValidationError("Name the user: --email ADDRESS.") }
        case .idToken:
            guard upstream != nil && fromAccount == nil || descriptors.allSatisfy({ $0 == nil }) && data == nil else {
                throw ValidationError(
                    "An ID token from a descriptor needs --with PROVIDER. With --from ACCOUNT neither a token nor a "
                        + "name is read.")
            }
        case .sso:
            guard (domain == nil) != (providerID == nil) else {
                throw ValidationError("Name the organization: --domain DOMAIN or --provider-id ID.")
            }
        case .browser, .device, .passkey, .page, .anonymous, .session: break
        }
        guard channel == nil || phone != nil else { throw ValidationError("--channel belongs to --phone.") }
        try SignInOptions.check(parameters: parameters)
        try SignInOptions.check(descriptors)
        if let data, JSONInput.object(data) == nil { throw ValidationError("--data must be a JSON object.") }
    }

    static func check(_ descriptors: [Int32?]) throws {
        guard descriptors.allSatisfy({ ($0 ?? 0) >= 0 }) else {
            throw ValidationError("A descriptor must be a number, 0 or more.")
        }
    }

    static func check(parameters: [String]) throws {
        guard parameters.allSatisfy({ ($0.firstIndex(of: "=") ?? $0.startIndex) > $0.startIndex }) else {
            throw ValidationError("--param must be NAME=VALUE.")
        }
        let names = parameters.map { $0.prefix { $0 != "=" } }
        guard Set(names).count == names.count else { throw ValidationError("--param must not name a parameter twice.") }
    }

    private var descriptors: [Int32?] {
        [
            passwordDescriptor, idTokenDescriptor, nonceDescriptor, accessTokenDescriptor, refreshTokenDescriptor,
            captchaDescriptor, codeDescriptor, credentialDescriptor,
        ]
    }

    /// True if nothing was said about how to sign in.
    var isLeftOpen: Bool { stated == nil && !isPage && given.isEmpty }

    /// The options that were given, by name.
    private var given: [String] {
        let values: [(String, Bool)] = [
            ("with", upstream != nil), ("from", fromAccount != nil), ("email", email != nil), ("phone", phone != nil),
            ("channel", channel != nil),
            ("domain", domain != nil), ("provider-id", providerID != nil), ("data", data != nil),
            ("scopes", scopes != nil), ("param", !parameters.isEmpty),
            ("no-persist", noPersist), ("provider-token", providerToken), ("no-create-user", noCreateUser),
            ("password-fd", passwordDescriptor != nil), ("id-token-fd", idTokenDescriptor != nil),
            ("nonce-fd", nonceDescriptor != nil), ("access-token-fd", accessTokenDescriptor != nil),
            ("refresh-token-fd", refreshTokenDescriptor != nil), ("captcha-token-fd", captchaDescriptor != nil),
            ("code-fd", codeDescriptor != nil), ("credential-fd", credentialDescriptor != nil),
            ("wait", wait),
        ]
        return values.filter(\.1).map(\.0)
    }
}

/// JSON from the command line.
enum JSONInput {
    static func object(_ text: String) -> JSONObject? { (try? JSON(parsing: Array(text.utf8)))?.object }
}
