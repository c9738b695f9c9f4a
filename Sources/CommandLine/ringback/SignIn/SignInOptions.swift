import ArgumentParser
import RingbackBase
import RingbackClient

/// What `login` can say about a sign-in. The daemon checks addresses and passwords.
struct SignInOptions: ParsableArguments {
    @Option(
        name: .customLong("method"),
        help: .value("method", "How to sign in: browser, or device with a code; the others are for Supabase projects."))
    var stated: SignInMethod?

    @Flag(help: "Choose the method on a page that Ringback serves in the browser, as --method page.") var page = false

    var method: SignInMethod { stated ?? (page ? .page : .browser) }

    @Option(
        name: .customLong("with"),
        help: .value("provider", "The provider behind a Supabase project, such as google."),
        completion: Completions.upstreams)
    var upstream: String?

    @Option(
        help: .value(
            "account",
            "id_token: the configured account whose ID token it is; without it and --with, the id_token_account."),
        completion: Completions.accounts)
    var from: String?

    @Option(help: "The email address of the user who signs in or gets the message.") var email: String?
    @Option(help: .value("number", "The user's phone number with + and its country code.")) var phone: String?
    @Option(help: "How a code is sent to the phone.") var channel: Channel?
    @Option(help: "sso: the domain of the organization's addresses.") var domain: String?
    @Option(help: .value("id", "sso: its id.")) var providerID: String?

    @Option(
        help: .value("json", "A JSON object for a new user's metadata; id_token: the name that Apple sends only once."))
    var data: String?

    @Option(help: .value("scopes", "Request these instead of the account's own, separated by spaces."))
    var scopes: String?

    @Option(help: .value("name=value", "An additional parameter for the provider's page; may be repeated."))
    var param: [String] = []

    @Flag(help: "Do not store the session in the vault's files: it ends when the daemon stops.") var noPersist = false
    @Flag(help: "Keep the provider's own access token too, for callers that ask for it.") var providerToken = false
    @Flag(help: "otp, magic_link: an unknown address is rejected.") var noCreateUser = false
    @Option(help: .descriptor("the password")) var passwordFD: Int32?
    @Option(help: .descriptor("the ID token")) var idTokenFD: Int32?
    @Option(help: .descriptor("the ID token's raw nonce")) var nonceFD: Int32?
    @Option(help: .descriptor("the access token")) var accessTokenFD: Int32?
    @Option(help: .descriptor("the refresh token")) var refreshTokenFD: Int32?
    @Option(help: .descriptor("the proof of a CAPTCHA")) var captchaTokenFD: Int32?
    @Option(help: .descriptor("the code that was sent")) var codeFD: Int32?

    @Flag(help: "Wait even if no code can be read here: for the link in the email, or for ringback verify.")
    var wait = false

    @Option(help: .descriptor("the authenticator's response to a passkey's challenge, as JSON,"))
    var credentialFD: Int32?

    enum Channel: String, ExpressibleByArgument, CaseIterable { case sms, whatsapp }

    func validate() throws {
        try require(!page || stated ?? .page == .page, "--page is --method page.")
        if let option = given.first(where: { !method.options.contains($0) }) {
            throw ValidationError("--\(option) does not belong to --method \(method.rawValue).")
        }
        try require(email == nil || phone == nil, SignInOptions.nameUser)
        try SignInOptions.check(phone: phone)
        if method == .idToken {
            try require(
                upstream != nil && from == nil || descriptors.allSatisfy({ $0 == nil }) && data == nil,
                "An ID token from a descriptor needs --with PROVIDER. With --from ACCOUNT neither a token nor a name "
                    + "is read.")
        }
        try require(channel == nil || phone != nil, "--channel belongs to --phone.")
        try SignInOptions.check(parameters: param)
        try SignInOptions.check(descriptors)
        try require(data.map { JSONInput.object($0) != nil } ?? true, "--data must be a JSON object.")
    }

    private static let nameUser = "Name the user: --email ADDRESS or --phone NUMBER."

    /// Whose sign-in it is, where the method has to know that.
    func checkUser() throws {
        switch method {
        case .password, .signUp, .otp: try require(email != nil || phone != nil, SignInOptions.nameUser)
        case .magicLink: try require(email != nil, "Name the user: --email ADDRESS.")
        case .sso:
            try require(
                (domain == nil) != (providerID == nil), "Name the organization: --domain DOMAIN or --provider-id ID.")
        case .idToken, .browser, .device, .passkey, .page, .anonymous, .session: break
        }
    }

    static func check(phone: String?) throws {
        try require(
            phone?.hasPrefix("+") ?? true, "--phone takes a number with + and its country code, such as +4915112345678."
        )
    }

    static func check(_ descriptors: [Int32?]) throws {
        try require(descriptors.allSatisfy({ ($0 ?? 0) >= 0 }), "A descriptor must be a number, 0 or more.")
    }

    static func check(parameters: [String]) throws {
        try require(
            parameters.allSatisfy({ ($0.firstIndex(of: "=") ?? $0.startIndex) > $0.startIndex }),
            "--param must be NAME=VALUE.")
        let names = parameters.map { $0.prefix { $0 != "=" } }
        try require(Set(names).count == names.count, "--param must not name a parameter twice.")
    }

    private var descriptors: [Int32?] {
        [passwordFD, idTokenFD, nonceFD, accessTokenFD, refreshTokenFD, captchaTokenFD, codeFD, credentialFD]
    }

    var isLeftOpen: Bool { stated == nil && !page && given.isEmpty }

    private var given: [String] {
        let values: [(String, Bool)] = [
            ("with", upstream != nil), ("from", from != nil), ("email", email != nil), ("phone", phone != nil),
            ("channel", channel != nil), ("domain", domain != nil), ("provider-id", providerID != nil),
            ("data", data != nil), ("scopes", scopes != nil), ("param", !param.isEmpty), ("no-persist", noPersist),
            ("provider-token", providerToken), ("no-create-user", noCreateUser), ("password-fd", passwordFD != nil),
            ("id-token-fd", idTokenFD != nil), ("nonce-fd", nonceFD != nil), ("access-token-fd", accessTokenFD != nil),
            ("refresh-token-fd", refreshTokenFD != nil), ("captcha-token-fd", captchaTokenFD != nil),
            ("code-fd", codeFD != nil), ("credential-fd", credentialFD != nil), ("wait", wait),
        ]
        return values.filter(\.1).map(\.0)
    }

    /// The request's body. Secrets are read now, each from the place that was named for it.
    func fields() throws(RingbackError) -> JSONObject {
        var fields: JSONObject = [
            "method": method.rawValue, "oauth_provider": upstream, "from_account": from, "email": email,
            "phone": phone, "channel": channel?.rawValue, "domain": domain, "provider_id": providerID,
            "data": data.flatMap(JSONInput.object), "scopes": scopes,
            "params": SignInOptions.request(param), "persist": noPersist ? false : nil,
            "provider_token": providerToken ? true : nil, "create_user": noCreateUser ? false : nil,
        ]
        try addSecrets(to: &fields)
        fields["captcha_token"] = try SecretInput.readNamed("CAPTCHA token", from: captchaTokenFD)?.jsonValue
        return fields
    }

    static func request(_ parameters: [String]) -> JSONObject? {
        guard !parameters.isEmpty else { return nil }
        return JSONObject(
            parameters.map { parameter in
                let name = parameter.prefix { $0 != "=" }
                return .init(String(name), .string(String(parameter[name.endIndex...].dropFirst())))
            })
    }

    private func addSecrets(to fields: inout JSONObject) throws(RingbackError) {
        switch method {
        case .browser, .device, .otp, .magicLink, .passkey, .page, .anonymous, .sso: break
        case .password: fields["password"] = .string(try SecretInput.read("password", from: passwordFD))
        case .signUp: fields["password"] = .string(try SecretInput.readNew("new password", from: passwordFD))
        // Without `--from` and `--with` the daemon takes the account's id_token_account.
        case .idToken where from != nil || upstream == nil: break
        case .idToken:
            try SignInOptions.addIDToken(to: &fields, from: idTokenFD, nonce: nonceFD, accessToken: accessTokenFD)
        case .session:
            // An account of OAuth needs the refresh token alone. The daemon says where both are needed.
            if accessTokenFD != nil || refreshTokenFD == nil {
                fields["access_token"] = .string(try SecretInput.read("access token", from: accessTokenFD))
            }
            fields["refresh_token"] = .string(try SecretInput.read("refresh token", from: refreshTokenFD))
        }
    }

    /// The nonce may be missing. An access token is read only from a descriptor that was named for it.
    static func addIDToken(
        to fields: inout JSONObject, from descriptor: Int32?, nonce: Int32?, accessToken: Int32?
    ) throws(RingbackError) {
        fields["id_token"] = .string(try SecretInput.read("ID token", from: descriptor))
        // If the token came from a descriptor of its own, standard input is not read for the nonce.
        if nonce != nil || descriptor == nil {
            fields["nonce"] =
                try SecretInput.readOptional("raw nonce", from: nonce, hint: ", empty for none")?.jsonValue
        }
        fields["access_token"] = try SecretInput.readNamed("access token", from: accessToken)?.jsonValue
    }
}

enum JSONInput {
    static func object(_ text: String) -> JSONObject? { (try? JSON(parsing: Array(text.utf8)))?.object }
}

/// The methods of signing in. All but the first two are Supabase's.
enum SignInMethod: String, ExpressibleByArgument, CaseIterable {
    case browser
    /// With a code that is entered elsewhere (RFC 8628).
    case device
    case password
    case signUp = "sign_up"
    case otp
    case magicLink = "magic_link"
    case idToken = "id_token"
    case passkey
    case page
    case anonymous
    case sso
    case session

    /// False for the methods of Supabase projects.
    var isForEveryAccount: Bool { [.browser, .device, .session].contains(self) }

    /// An option of another method is refused, since it would be ignored without notice.
    var options: Set<String> {
        let words =
            switch self {
            case .device: "scopes param"
            case .browser: "no-persist with provider-token scopes param"
            case .password: "no-persist email phone password-fd captcha-token-fd"
            case .signUp: "no-persist email phone password-fd data channel captcha-token-fd code-fd wait"
            case .otp: "no-persist email phone data channel captcha-token-fd no-create-user code-fd wait"
            case .magicLink: "no-persist email data captcha-token-fd no-create-user code-fd wait"
            case .idToken: "no-persist with from data id-token-fd nonce-fd access-token-fd captcha-token-fd"
            case .page: "no-persist"
            case .passkey: "no-persist captcha-token-fd credential-fd"
            case .anonymous: "no-persist data captcha-token-fd"
            case .sso: "no-persist domain provider-id captcha-token-fd provider-token"
            case .session: "no-persist access-token-fd refresh-token-fd"
            }
        return Set(words.split(separator: " ").map(String.init))
    }
}
