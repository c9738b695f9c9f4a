// Nothing from outside is ever put into a page, and every page and refusal carries the same fields. Clear-Site-Data is
// left out: browsers would clear what other programs keep for 127.0.0.1, and no-store leaves nothing of ours to clear.

internal import HTTPMessages
internal import LocalHTTP

/// Everything that a browser can get from the listener.
enum CallbackPages {
    static let donePath = "/done"
    static let failedPath = "/failed"

    /// The page behind ``donePath``.
    static let done = page(
        200, title: "Signed in - Ringback", heading: "Signed in",
        text: "Ringback, on this computer, has received the answer. "
            + "You can close this tab and go back to the program that asked you to sign in.")

    /// The page behind ``failedPath``.
    static let failed = page(
        200, title: "Sign-in failed - Ringback", heading: "Sign-in failed",
        text: "Ringback, on this computer, changed nothing. "
            + "You can close this tab: the program that asked you to sign in says what went wrong.")

    static let notedPath = "/noted"

    /// The page behind ``notedPath``.
    static let noted = page(
        200, title: "Confirmed", heading: "Confirmed",
        text: "One of two addresses is confirmed. Open the link in the mail to the other one, too.")

    static let outdatedPath = "/older"

    /// The page behind ``outdatedPath``.
    static let outdated = page(
        200, title: "Link of an older message", heading: "Link of an older message",
        text: "This link does not work any more. Open the link in the newest message.")

    /// Every page that the listener has, by its path.
    static let own = [donePath: done, failedPath: failed, notedPath: noted, outdatedPath: outdated]

    /// The one answer to whatever is not a genuine callback: it says nothing about what is.
    static let notFound = page(
        404, title: "Not found", heading: "Not found",
        text: "Nothing waits at this address. If you were signing in, go back to the program that asked you to: "
            + "it says how things stand.")

    /// The answer to whoever comes to an address that leads nowhere any more.
    static let used = page(
        410, title: "Used already", heading: "This address works once",
        text: "If the sign-in page is not open in another tab, go back to the program that asked you to sign in.")

    /// Sends the browser to ``notFound``, at an address without whatever came in the query or the fragment.
    static let away = seePage("/unknown")

    /// Sends the browser away from the address that holds the code, so that it stays in no history and no Referer. The
    /// empty fragment takes the place of the one that came, which may hold a token: without it a browser hands that on
    /// (RFC 9110 section 10.2.2).
    static func seePage(_ path: String) -> ServerResponse { seeOther(path + "#") }

    /// Sends the browser to another address.
    static func seeOther(_ location: String) -> ServerResponse {
        ServerResponse(status: 303, fields: fields([("Location", location)]))
    }

    /// The answer to a request that broke a rule.
    static func refusal(_ status: Int) -> ServerResponse {
        switch status {
        case 404: notFound
        case 405: ServerResponse(status: 405, fields: fields([("Allow", "GET")]))
        default: ServerResponse(status: status, fields: fields([]))
        }
    }

    private static func page(_ status: Int, title: String, heading: String, text: String) -> ServerResponse {
        let html = """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>\(title)</title>
            </head>
            <body>
            <main>
            <h1>\(heading)</h1>
            <p>\(text)</p>
            </main>
            </body>
            </html>

            """
        let type = [("Content-Type", "text/html; charset=utf-8")]
        return ServerResponse(status: status, fields: fields(type), body: Array(html.utf8))
    }

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

    private static let policy = "default-src 'none'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
}
