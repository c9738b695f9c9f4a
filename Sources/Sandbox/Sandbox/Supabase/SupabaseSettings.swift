/// The settings of a project's dashboard. Durations are seconds. There are two configurations: **A** is that of a
/// development server, **B** that of a strict project.
struct SupabaseSettings: Equatable {
    enum Configuration: String, CaseIterable { case a = "A", b = "B" }
    /// `v0` tokens are those of very old servers. A server that issues other tokens no longer accepts them.
    enum RefreshTokens: String, CaseIterable { case v0, v1, v2 }
    enum Algorithm: String, CaseIterable { case hs256 = "HS256", es256 = "ES256", rs256 = "RS256", edDSA = "EdDSA" }

    /// Wrong signatures: by a key that the project does not publish, the same without a key id, or by another secret.
    enum Forgery: String, CaseIterable { case key, nameless, secret }

    var configuration = Configuration.a
    /// New addresses count as confirmed.
    var autoconfirm = true
    var phoneAutoconfirm = false
    var algorithm = Algorithm.hs256
    var refreshTokens = RefreshTokens.v1
    /// How many of a hundred sessions get a token of the second kind in exchange for one of the first, where the second
    /// kind is issued.
    var upgradePercentage = 0
    var reuseInterval = 10
    var rotates = true
    /// Replaced tokens of the second kind are accepted for ever.
    var allowsReuse = false
    var siteURL = "https://app.example.org"
    var allowList: [String] = ["**"]
    var accessTokenLifetime = 3_600
    /// Access tokens name their issuer.
    var namesIssuer = true
    /// The API keys that are accepted; empty for no gateway at all.
    var apiKeys = ["sb_publishable_sandbox"]
    /// Access tokens name this issuer in place of the project's.
    var issuer: String?
    /// Signs access tokens in the project's place.
    var forgery: Forgery?
    /// External providers that are enabled. Each of them is the issuer of which the project is a part.
    var providers = ["apple", "azure", "github", "google"]
    var allowsSignUp = true
    var allowsEmail = true
    var allowsPhone = true
    var allowsAnonymous = true
    var allowsLinking = true
    var factors = ["phone", "totp"]
    var allowsPasskeys = false
    /// The domain that passkeys and second factors of authenticators belong to, and the origins at which they are made
    /// and used.
    var passkeyPartyID = "app.example.org"
    var passkeyOrigins = ["https://app.example.org"]
    var maxPasskeys = 10
    var ssoDomains = ["company.example": "5d0c2b1e-6c34-4b9e-9f5f-0f1a2b3c4d5e"]
    /// A change of the address has to be confirmed at both addresses.
    var securesEmailChange = true
    /// A password is changed only with a code, unless the session is younger than a day.
    var securesPasswordChange = false
    var requiresCurrentPassword = false
    var minPasswordLength = 6
    var requiresDigit = false
    var leakedPasswords: [String] = []
    var otpLifetime = 3_600
    var smsLifetime = 60
    var otpLength = 6
    /// The pause between two mails of a kind to one user, and between two messages.
    var mailInterval = 0
    var smsInterval = 0
    var flowLifetime = 300
    var relayLifetime = 120
    /// When sessions end: so long after they began; so long after the last refresh; without a second factor.
    var timebox: Int?
    var inactivity: Int?
    var lowLevelLifetime: Int?
    var singleSession = false
    /// How many requests a bucket allows in five minutes; nil for no limit.
    var requestLimit: Int?
    /// How many mails are sent in an hour at most.
    var mailLimit: Int?
    /// The only CAPTCHA token that is valid; nil for no protection.
    var captcha: String?
    /// The error of the hook that is asked before an access token is made; nil if there is no hook, or if it agrees.
    var tokenHook: SupabaseErrorResponse?
    /// The error of the hook that is asked before a user of an external provider is created. Without a code of its own
    /// the redirect has an empty `error_code`, as the real server's.
    var userHook: SupabaseErrorResponse?
    /// Every new user gets a row in `profiles`.
    var profileTrigger = true

    init(_ configuration: Configuration = .a) {
        self.configuration = configuration
        guard configuration == .b else { return }
        autoconfirm = false
        algorithm = .es256
        refreshTokens = .v2
        reuseInterval = 0
        allowList = []
        mailInterval = 60
        smsInterval = 60
    }

    var relyingParty: PasskeyCeremony.Party { .init(id: passkeyPartyID, origins: passkeyOrigins) }

    var redirectRules: SupabaseRedirectRules { SupabaseRedirectRules(siteURL: siteURL, allowed: allowList) }
}
