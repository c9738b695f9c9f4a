import RingbackBase

/// A method to sign in at a Supabase project, with its fields. Descriptions and reflection leave its contents out.
///
/// ```swift
/// let way = SupabaseSignInFields.password(.email("alice@example.org"), password: "…")
/// if case .pending(let flow) = try await ringback.signIn("app", with: way) { … }
/// ```
public struct SupabaseSignInFields: Sendable, CustomStringConvertible, CustomReflectable {
    public enum Contact: Sendable {
        case email(String)
        /// With the country code, as `+4915112345678` (E.164).
        case phone(String)
    }

    private let fields: JSONObject
    private let data: String?
    /// The proof of a CAPTCHA, if the project wants one.
    public var captchaToken: String?
    /// False keeps the session out of the vault's files: it ends with the daemon.
    public var isPersistent = true
    public var description: String { "SupabaseSignInFields(\(fields["method"]?.string ?? ""))" }
    public var customMirror: Mirror { Mirror(self, children: ["method": fields["method"]?.string ?? ""]) }

    private init(_ method: String, _ contact: Contact? = nil, _ more: JSONObject = [:], data: String? = nil) {
        let place: JSONObject =
            switch contact {
            case .email(let address)?: ["email": address]
            case .phone(let number)?: ["phone": number]
            case nil: [:]
            }
        fields = JSONObject([.init("method", .string(method))] + place.members + more.members)
        self.data = data
    }

    /// In the browser, by a provider such as `google`; nil for the one that the configuration names. `scopes` are
    /// requested in addition to the provider's usual ones; if empty, those of the account. `parameters`, such as
    /// `prompt`, are passed on to the provider. If `keepsProviderToken`, its own access token is kept too, and issued
    /// to callers that ask for it.
    public static func browser(
        _ provider: String? = nil, scopes: [String] = [], parameters: [String: String] = [:],
        keepsProviderToken: Bool = false
    ) -> SupabaseSignInFields {
        let members = parameters.sorted { $0.key < $1.key }.map { JSONObject.Member($0.key, .string($0.value)) }
        return SupabaseSignInFields(
            "browser", nil,
            [
                "oauth_provider": provider, "scopes": scopes.isEmpty ? nil : scopes.joined(separator: " "),
                "params": members.isEmpty ? nil : JSONObject(members),
                "provider_token": keepsProviderToken ? true : nil,
            ])
    }

    public static func password(_ contact: Contact, password: String) -> SupabaseSignInFields {
        SupabaseSignInFields("password", contact, ["password": password])
    }

    /// Makes a new user with this metadata (a JSON object). If the project wants a confirmation, the flow waits for it.
    public static func signUp(
        _ contact: Contact, password: String, data: String? = nil, channel: MessageChannel? = nil
    ) -> SupabaseSignInFields {
        SupabaseSignInFields("sign_up", contact, ["password": password, "channel": channel?.rawValue], data: data)
    }

    /// By a code that is sent by mail or to a phone: ``BrokerClient/verify(_:code:)`` redeems it.
    public static func oneTimeCode(
        to contact: Contact, createsUser: Bool = true, data: String? = nil, channel: MessageChannel? = nil
    ) -> SupabaseSignInFields {
        SupabaseSignInFields(
            "otp", contact, ["create_user": createsUser ? nil : false, "channel": channel?.rawValue], data: data)
    }

    /// By a link in a mail, which leads back here; the code beside it can be typed too.
    public static func magicLink(
        to address: String, createsUser: Bool = true, data: String? = nil
    ) -> SupabaseSignInFields {
        SupabaseSignInFields("magic_link", .email(address), ["create_user": createsUser ? nil : false], data: data)
    }

    /// By an ID token that the app has from a provider such as `apple` or `google`. `nonce` is the raw one; the token
    /// has its SHA-256. Apple sends `fullName` only once, beside the token; it is written to a user without a name.
    public static func idToken(
        _ token: String, of provider: String, nonce: String? = nil, accessToken: String? = nil,
        fullName: String? = nil
    ) -> SupabaseSignInFields {
        SupabaseSignInFields(
            "id_token", nil,
            [
                "data": fullName.map { ["full_name": $0] as JSONObject }, "oauth_provider": provider,
                "id_token": token, "nonce": nonce, "access_token": accessToken,
            ])
    }

    /// By the ID token of another configured account, at an OpenID provider such as Google. If that account is not
    /// signed in, the sign-in is pending and has that provider's page. `provider` is what the project calls that
    /// provider, if the account does not say.
    public static func idToken(fromAccount account: String, of provider: String? = nil) -> SupabaseSignInFields {
        SupabaseSignInFields("id_token", nil, ["from_account": account, "oauth_provider": provider])
    }

    /// By a passkey: ``Flow/passkeyOptions`` are the options for an authenticator, and
    /// ``BrokerClient/verify(_:credential:)`` takes its response.
    public static func passkey() -> SupabaseSignInFields { SupabaseSignInFields("passkey") }

    /// On a page that Ringback serves in the browser, where the user chooses one of the project's methods. Show
    /// ``Flow/words`` before ``Flow/openURL`` is opened.
    public static func page() -> SupabaseSignInFields { SupabaseSignInFields("page") }

    /// As a new user without an address, a number or a password.
    public static func anonymous(data: String? = nil) -> SupabaseSignInFields {
        SupabaseSignInFields("anonymous", data: data)
    }

    /// By an organization's own sign-in, found by the domain of its addresses.
    public static func singleSignOn(domain: String) -> SupabaseSignInFields {
        SupabaseSignInFields("sso", nil, ["domain": domain])
    }

    /// By an organization's own sign-in, with the identifier that the project gave it.
    public static func singleSignOn(providerID: String) -> SupabaseSignInFields {
        SupabaseSignInFields("sso", nil, ["provider_id": providerID])
    }

    /// Takes over a session that another program made. From now on only the daemon refreshes it, and at once.
    public static func session(accessToken: String, refreshToken: String) -> SupabaseSignInFields {
        SupabaseSignInFields("session", nil, ["access_token": accessToken, "refresh_token": refreshToken])
    }

    func body() throws(RingbackError) -> JSONObject {
        var body = fields
        if let data { body["data"] = .object(try JSONText.object(data)) }
        body["captcha_token"] = captchaToken.map { .string($0) }
        if !isPersistent { body["persist"] = false }
        return body
    }
}
