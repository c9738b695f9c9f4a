// A page has no text from a request or a provider, except those of a ``SignInLabel``. Clear-Site-Data is not sent:
// browsers would delete what other programs store for 127.0.0.1, and because of no-store they store none of these pages.

internal import LocalHTTP
internal import RingbackBase
internal import SignInPage

/// What the browser is told at the end of its way.
public enum Page: Sendable, Hashable, CaseIterable {
    case done
    /// The sign-in has ended without a session.
    case failed
    /// By the user or the provider.
    case denied
    /// The flow had expired before the callback came.
    case expired
    /// The first of two confirmations, for example when an email address is changed.
    case noted
    /// The link is of an older message; the flow waits for that in a newer one.
    case outdated
    /// The callback belongs to a pending flow and was refused. The flow keeps waiting.
    case refused
    /// Refused because of the issuer that it names or does not name.
    case wrongIssuer
    /// A start address that was used already or has expired.
    case used
    /// For every request that is not a genuine callback. It does not tell whether a flow is pending.
    case notFound
    var status: Int { self == .used ? 410 : self == .notFound ? 404 : 200 }

    /// Without a path the page is the response to a request for another address.
    var appearance: (path: String?, tone: HTMLPage.Tone) {
        switch self {
        case .done: (CallbackPaths.done, .good)
        case .failed, .denied, .expired, .refused, .wrongIssuer: (CallbackPaths.failed, .bad)
        case .noted: (CallbackPaths.noted, .good)
        case .outdated: (CallbackPaths.outdated, .plain)
        case .used, .notFound: (nil, .plain)
        }
    }

    var path: String? { appearance.path }
}

struct PageContent: Sendable, Hashable {
    let page: Page
    var signIn: SignInLabel?

    init(_ page: Page, of signIn: SignInLabel? = nil) {
        self.page = page
        self.signIn = signIn
    }

    func html(in language: PageLanguage) -> String {
        let sentences = language.sentences(of: page, within: signIn?.seconds)
        let place = signIn.map { HTMLPage.place($0.account, at: $0.providerHost, in: language) } ?? ""
        let user = signIn?.user.map { "<p>\(language.signedInAs) \(HTMLPage.strong($0))</p>\n" }
        return HTMLPage(
            sentences.heading, in: language, tone: page.appearance.tone,
            content: "\(place)\(user ?? "")<p>\(sentences.event)</p>\n<p>\(sentences.advice)</p>\n"
        ).html
    }
}

enum CallbackPages {
    /// Those that name no account, by their paths.
    static let own = [
        CallbackPaths.done: PageContent(.done), CallbackPaths.failed: PageContent(.failed),
        CallbackPaths.noted: PageContent(.noted), CallbackPaths.outdated: PageContent(.outdated),
    ]

    static func response(_ content: PageContent, in language: PageLanguage) -> ServerResponse {
        let type = [("Content-Type", "text/html; charset=utf-8"), ("Content-Language", language.rawValue)]
        return ServerResponse(
            status: content.page.status, fields: fields(type), body: Array(content.html(in: language).utf8))
    }

    /// Redirects to an address without the query and the fragment, where the browser gets ``Page/notFound``.
    static let away = seePage("/unknown")

    /// Redirects from the address with the code, so that the code is in no history and no Referer field. The empty
    /// fragment replaces the one of the callback, which may hold a token (RFC 9110 section 10.2.2).
    static func seePage(_ path: String) -> ServerResponse { seeOther(path + "#") }

    static func seeOther(_ location: String) -> ServerResponse {
        ServerResponse(status: 303, fields: fields([("Location", location)]))
    }

    static func refusal(_ status: Int, in language: PageLanguage) -> ServerResponse {
        switch status {
        case 404: response(PageContent(.notFound), in: language)
        case 405: ServerResponse(status: 405, fields: fields([("Allow", "GET")]))
        default: ServerResponse(status: status, fields: fields([]))
        }
    }

    /// Forms may be sent to the site itself; with `no-referrer` browsers would send no origin with them (Fetch, "append
    /// a request Origin header").
    static let fieldsOfSites: HTTPFields = {
        var own = fields([])
        own.set("Content-Security-Policy", policy.replacing("form-action 'none'", with: "form-action 'self'"))
        own.set("Referrer-Policy", "same-origin")
        return own
    }()

    private static func fields(_ own: [(String, String)]) -> HTTPFields {
        HTTPFields(
            own + [
                ("Cache-Control", "no-store"),
                ("Content-Security-Policy", policy),
                ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
                ("X-Frame-Options", "DENY"),
            ])
    }

    /// The pages' own stylesheet and nothing else (Content Security Policy Level 3).
    private static let policy =
        "default-src 'none'; style-src '\(PageStyle.source)'; frame-ancestors 'none'; form-action 'none'; "
        + "base-uri 'none'"
}
