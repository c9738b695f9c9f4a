// Pages contain no text from requests, and all responses have the same security fields. Clear-Site-Data is not sent:
// browsers would delete what other programs store for 127.0.0.1, and with no-store nothing of ours is stored.

internal import HTTPMessages
internal import LocalHTTP

/// All responses that the listener sends to a browser.
enum CallbackPages {
    static let donePath = CallbackPaths.done
    static let failedPath = CallbackPaths.failed

    /// The page behind ``donePath``.
    static let done = page(
        200, title: "Signed in - Ringback", heading: "Signed in",
        text: "Ringback, a program on this computer, has signed you in. "
            + "You can close this tab and go back to the program that asked you to sign in.")

    /// The page behind ``failedPath``.
    static let failed = page(
        200, title: "Sign-in failed - Ringback", heading: "Sign-in failed",
        text: "Ringback, a program on this computer, has changed nothing. "
            + "You can close this tab. The program that asked you to sign in says what went wrong.")

    static let notedPath = CallbackPaths.noted

    /// The page behind ``notedPath``.
    static let noted = page(
        200, title: "Confirmed - Ringback", heading: "Confirmed",
        text: "One of the two addresses is confirmed. "
            + "Open the link in the mail to the other address too. You can close this tab.")

    static let outdatedPath = CallbackPaths.outdated

    /// The page behind ``outdatedPath``.
    static let outdated = page(
        200, title: "Link of an older message - Ringback", heading: "Link of an older message",
        text: "This link does not work any more. Open the link in the newest message. You can close this tab.")

    /// Every page that the listener has, by its path.
    static let own = [donePath: done, failedPath: failed, notedPath: noted, outdatedPath: outdated]

    /// The response to every request that is not a genuine callback. It does not tell whether a flow is pending.
    static let notFound = page(
        404, title: "Not found", heading: "Not found",
        text:
            "This page belongs to no sign-in that is in progress. If you were signing in, go back to the program that "
            + "asked you to sign in. It says what happened. You can close this tab.")

    /// The response at a start address that was used already or has expired.
    static let used = page(
        410, title: "This address works once", heading: "This address works once",
        text:
            "It was opened before, its time is over, or many newer addresses have replaced it. If the page that it led to is "
            + "not open in another tab, go back to the program that opened it. It shows the page's address, or you can start "
            + "again there.")

    /// Redirects the browser to an address without the query and the fragment, where it gets ``notFound``.
    static let away = seePage("/unknown")

    /// Redirects the browser from the address with the code, so that the code is in no history and no Referer field. The
    /// empty fragment replaces the one of the callback, which may hold a token: without it a browser keeps that one
    /// (RFC 9110 section 10.2.2).
    static func seePage(_ path: String) -> ServerResponse { seeOther(path + "#") }

    /// Redirects the browser to another address.
    static func seeOther(_ location: String) -> ServerResponse {
        ServerResponse(status: 303, fields: fields([("Location", location)]))
    }

    /// The response to a request that failed a check.
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
