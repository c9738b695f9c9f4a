internal import BrokerCore
internal import Cryptography
internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import StrictJSON
internal import SupabaseAuth

/// What a flow at a Supabase project knows. It ends by a callback with its key, or by a code that somebody types.
struct SupabaseFlow: AwaitedSignIn {
    /// What the session will be.
    enum Purpose: Sendable, Equatable {
        case signIn
        /// Of a person who forgot the password: a new one is asked for next.
        case recovery
        /// Of the person who is signed in, with one more identity.
        case link
        /// Of the person who is signed in, with another address or number.
        case change
    }

    /// What was sent to the person, so that it can be sent again.
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

        /// What a typed code is redeemed as.
        var purpose: SupabaseProject.Purpose {
            switch (self, contact) {
            case (.recovery, _): .recovery
            case (.change(let change), _): change.places.first?.purpose ?? .emailChange
            case (_, .phone?): .sms
            default: .email
            }
        }
    }

    let purpose: Purpose
    /// 128 bits. The server, the provider and mails see it: no secret.
    let flowKey: String
    /// Nil where no callback is awaited.
    let redirect: SupabaseRedirect?
    let pkce: PKCE?
    /// Nil where there is nothing to open.
    let page: String?
    var message: Message?
    let keepsProviderToken: Bool
    /// Another account's sign-in that is waited for, and what the project calls its provider.
    var upstream: UpstreamFlow?
    var upstreamProvider: String?
    /// What an authenticator is asked.
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
        details.challenge = passkey.map { AuthenticatorChallenge(id: $0.id, options: $0.options) }
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

    /// Both addresses of a person are asked: one of two links may be followed again while the other one is awaited.
    var hasTwoMails: Bool {
        guard case .change(let change)? = message else { return false }
        return change.email != nil && change.currentEmail != nil
    }

    /// The link of a mail leads back here, and only here is its code worth something.
    var link: MailLink {
        guard let redirect, let pkce else { return .none }
        return MailLink(redirectTo: redirect.url, challenge: pkce.challenge)
    }

    /// What is said when nobody came in time. The server refuses an address that is not in its list without a word: only
    /// this tells.
    func expiry(of flow: Flow) -> String {
        let what = purpose == .change ? "The change of the person of" : "The sign-in of"
        let start = "\(what) \(flow.account.name) was not finished within \(flow.duration.wholeSeconds) seconds. "
        if let upstream { return start + "Waited for the sign-in of \(upstream.account)." }
        if passkey != nil { return start + "Waited for the answer of a passkey." }
        guard let redirect else { return start + "Waited for the code that was sent." }
        let end =
            redirect.allowListEntry.map {
                " If the browser went to another page, add this to the redirect URLs of the project: \($0)"
            } ?? ""
        return start + "Waited for a callback to \(redirect.url).\(end)"
    }

    static func newKey() -> String { RandomToken.base64URL(bits: 128).revealed() }

    /// A mail's code lives an hour on the hosted service; its link five minutes, and says so itself.
    static let messageTimeout: Duration = .seconds(3_600)
    /// The time between two messages to one user, which the server enforces.
    static let resendInterval: Duration = .seconds(60)
    /// Wrong callbacks without a key that are worked on.
    static let maxAttempts = 3
}

extension SupabaseProject {
    /// The request that sends a message, for the first time or again.
    func sending(
        _ message: SupabaseFlow.Message, link: MailLink, captcha: Secret?
    ) throws(FieldError) -> HTTPRequest {
        switch message {
        case .code(let contact, let createsUser, let data, let channel):
            return try sendCode(
                to: contact, createsUser: createsUser, data: data, channel: channel, link: link, captcha: captcha)
        case .signUp(let contact):
            switch contact {
            case .email: return try resend(.signUp, to: contact, link: link, captcha: captcha)
            case .phone: return try resend(.sms, to: contact, captcha: captcha)
            }
        case .recovery(let address): return sendRecovery(to: address, link: link, captcha: captcha)
        // Asked for by another route, with a session: see ``SupabaseProvider/resend(_:captcha:in:)``.
        case .change: throw FieldError(field: "type", reason: "a change is sent again by another request")
        }
    }
}
