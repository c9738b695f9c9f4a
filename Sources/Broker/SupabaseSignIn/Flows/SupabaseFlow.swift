internal import BrokerCore
internal import Cryptography
internal import OAuth
internal import RingbackBase
internal import SupabaseAuth

/// A flow at a Supabase project. It ends with a callback that has its key, a typed code, a passkey or another account's
/// sign-in.
struct SupabaseFlow: AwaitedSignIn {
    enum Purpose: Sendable, Equatable {
        case signIn
        /// The user forgot the password and chooses a new one next.
        case recovery
        /// Links one more identity to the signed-in user.
        case link
        /// Changes the signed-in user's address or number.
        case change
    }

    enum Message: Sendable {
        case code(Contact, createsUser: Bool, data: JSONObject?, channel: MessageChannel?)
        case signUp(Contact)
        case recovery(EmailAddress)
        case change(ContactChange)

        var contact: Contact? {
            switch self {
            case .code(let contact, _, _, _), .signUp(let contact): contact
            case .recovery(let address): .email(address)
            case .change(let change): change.places.first?.contact
            }
        }

        var purpose: MessagePurpose {
            switch (self, contact) {
            case (.recovery, _): .recovery
            case (.change(let change), _): change.places.first?.purpose ?? .emailChange
            case (_, .phone?): .sms
            default: .email
            }
        }
    }

    var purpose = Purpose.signIn
    /// 128 random bits. Not a secret: the server, the provider and mails see it.
    var flowKey = SupabaseFlow.newKey()
    var redirect: SupabaseRedirect?
    var pkce: PKCE?
    /// The URL for the browser; nil if there is none to open.
    var page: String?
    var message: Message?
    var keepsProviderToken = false
    /// The sign-in of another account that this flow waits for, and the project's name of its provider.
    var upstream: UpstreamFlow?
    var upstreamProvider: String?
    var passkey: PasskeyChallenge?

    var key: [UInt8] { Arrival.digest(of: flowKey) }
    var redirectURI: String { redirect?.url ?? "" }
    var authorizationURL: String { page ?? "" }
    var isKeyless: Bool { redirect?.keyPlace == SupabaseRedirect.KeyPlace.none }
    var isAccompanied: Bool { upstream != nil }
    var resendInterval: Duration? { message == nil ? nil : SupabaseFlow.resendInterval }
    var waitsForMail: Bool { [.change, .recovery].contains(purpose) || waitingFor == .emailConfirmation }

    var proofs: Set<Proof.Kind> {
        var proofs: Set<Proof.Kind> = []
        if redirect != nil { proofs.insert(.callback) }
        if message != nil { proofs.insert(.code) }
        if passkey != nil { proofs.insert(.credential) }
        if upstream != nil { proofs.insert(.upstream) }
        return proofs
    }

    var details: AwaitedDetails {
        var details = AwaitedDetails()
        details.isRecovery = purpose == .recovery
        details.challenge = passkey.map { ($0.id, $0.options) }
        if case .change(let change)? = message {
            details.codes = change.places.map { CodeOrigin($0) }
            details.isHalfConfirmed = !change.confirmed.isEmpty
        }
        return details
    }

    var waitingFor: WaitingFor {
        if passkey != nil { return .passkey }
        return switch message {
        case nil: .callback
        case .signUp(.email)?: .emailConfirmation
        case .some: .code
        }
    }

    /// True if both addresses may have to confirm: a used link may then be opened again meanwhile.
    var hasTwoMails: Bool {
        guard case .change(let change)? = message else { return false }
        return change.email != nil && change.currentEmail != nil
    }

    /// For the link of a mail, whose code only this flow's verifier redeems.
    var link: MailLink {
        guard let redirect, let pkce else { return .none }
        return MailLink(redirectTo: redirect.url, challenge: pkce.challenge)
    }

    /// The server reports no error for a redirect URI that is not in its list, so the reason names the entry to add.
    func expiry(of flow: Flow) -> Reason {
        let seconds = flow.duration.wholeSeconds
        return .supabase(.expired(flow.account.name, isChange: purpose == .change, seconds: seconds, awaitedAtEnd))
    }

    private var awaitedAtEnd: SupabaseReason.Awaited {
        if let upstream { return .account(upstream.account) }
        if passkey != nil { return .passkey }
        guard let redirect else { return .code }
        return .callback(redirectURI: redirect.url, listed: redirect.allowListEntry)
    }

    static func newKey() -> String { RandomToken.base64URL(bits: 128).revealed() }

    /// On Supabase's hosted service the code of a mail is valid for one hour. The link of the mail is valid for five
    /// minutes; opening it later leads to a callback with an error.
    static let messageTimeout: Duration = .seconds(3_600)
    /// The time between two messages to one user, which the server enforces.
    static let resendInterval: Duration = .seconds(60)
    /// The maximum number of redeemed callbacks without a key. After that many wrong ones, further ones are ignored.
    static let maxAttempts = 3
}

extension SupabaseFlow.Message {
    func request(link: MailLink, captcha: Secret?) throws(FieldError) -> SupabaseRequest<EmptyResponse> {
        switch self {
        case .code(let contact, let createsUser, let data, let channel):
            return try .sendCode(
                to: contact, createsUser: createsUser, data: data, channel: channel, link: link, captcha: captcha)
        case .signUp(.email(let address)):
            return try .resend(.signUp, to: .email(address), link: link, captcha: captcha)
        case .signUp(let contact): return try .resend(.sms, to: contact, captcha: captcha)
        case .recovery(let address): return .sendRecovery(to: address, link: link, captcha: captcha)
        // Sent by another request, which needs a session: see ``SupabaseProvider/resend(_:captcha:in:)``.
        case .change: throw FieldError.sentWithChange
        }
    }
}

/// The flow of a Supabase callback is found by the key in its URL, since the server returns no state. The key is no
/// secret: PKCE shows whether the code belongs to this flow, and a wrong one does not end it.
extension SupabaseFlow {
    func recognize(_ arrival: Arrival, of standing: FlowStanding) -> Recognition {
        guard arrival.form == nil, let redirect else { return .foreign }
        let callback: SupabaseCallback
        do throws(SupabaseCallback.Failure) {
            callback = try SupabaseCallback(parsing: arrival.url)
        } catch {
            return .ignored(Reason(error))
        }
        let isKeyed = callback.key(at: arrival.url).map { Arrival.digest(of: $0) == key } ?? false
        guard isKeyed || isKeyless else { return .foreign }
        guard redirect.isPlace(of: arrival.url) else { return .ignored(.otherAddress) }
        guard !isKeyless || standing.attempts < SupabaseFlow.maxAttempts else {
            return .ignored(.stated("Too many callbacks of this sign-in had a code of another one. Start it again."))
        }
        if isKeyless, case .error = callback.outcome {
            return .ignored(
                .stated("This error has no flow key, so it may belong to another sign-in. Nothing was changed."))
        }
        if case .message(let text) = callback.outcome {
            return purpose == .change && standing.isPending
                ? .noted : .ignored(.stated("Another step is needed: \(text)"))
        }
        if standing.isPending, standing.hasOlderMessage || hasTwoMails, callback.isOfSpentLink { return .outdated }
        return .likely
    }

    /// If the redirect URI is not in the project's list, the server sends the browser to the project's Site URL without
    /// an error. If the user pastes that URL, the hint names the cause. Nil if there may be another cause.
    func hint(for url: WebURL, of account: AccountName) -> Reason? {
        guard !url.isLoopback, (try? SupabaseCallback(parsing: url)) != nil, let redirect,
            let listed = redirect.allowListEntry, let asked = try? WebURL(parsing: redirect.url),
            asked.scheme != url.scheme || asked.host != url.host
        else { return nil }
        return .stated(
            "It ended at \(url.origin), but the sign-in of \(account) asked for \(redirect.url). The project does not "
                + "know that URL. Add this to its redirect URLs, then sign in again: \(listed)")
    }
}
