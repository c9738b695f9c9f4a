internal import Cryptography
internal import LocalHTTP
internal import RingbackBase

/// The pages that users see: plain HTML that works without scripts, without a mouse and with a screen reader. Every
/// text from outside is escaped.
enum Pages {
    static func signIn(
        _ interaction: Interaction, named name: String, users: [SandboxUser], action: String, problem: String? = nil
    ) -> ServerResponse {
        let hinted = users.first { [$0.name, $0.email, $0.subject].contains(interaction.loginHint) } ?? users.first
        let body = """
            <h1>Sign in to \(escape(interaction.client.id))</h1>
            \(alert(problem))<p>The application <strong>\(escape(interaction.client.id))</strong> wants to sign you in.
            The answer goes to <code>\(escape(interaction.destination.redirectURI))</code>.</p>
            \(list(of: interaction.scopes))
            \(decision(action, ("interaction", name), users, hinted: hinted))
            """
        return Responses.page(document("Sign in to \(interaction.client.id)", body), status: problem == nil ? 200 : 422)
    }

    static func decision(
        _ action: String, _ field: (String, String), _ users: [SandboxUser], hinted: SandboxUser?
    ) -> String {
        let choices = users.enumerated().map { index, user in
            let checked = user == hinted ? " checked" : ""
            return """
                <p><input type="radio" id="user-\(index)" name="user" value="\(escape(user.name))" required\(checked)>
                <label for="user-\(index)">\(escape(user.displayName)) (\(escape(user.email)))</label></p>
                """
        }
        return """
            <form method="post" action="\(escape(action))">
            <input type="hidden" name="\(field.0)" value="\(escape(field.1))">
            <fieldset>
            <legend>Sign in as</legend>
            \(choices.joined(separator: "\n"))
            </fieldset>
            <p><button type="submit" name="decision" value="allow">Allow</button>
            <button type="submit" name="decision" value="deny" formnovalidate>Deny</button></p>
            </form>
            <p>This is a sandbox: there are no passwords, and nobody here is real.</p>
            """
    }

    static func list(of scopes: [String]) -> String {
        scopes.isEmpty
            ? "<p>It asks for nothing but the sign-in itself.</p>"
            : "<p>It asks for:</p>\n" + list(scopes.map(describe))
    }

    private static func list(_ items: [String]) -> String {
        "<ul>\n" + items.map { "<li>\($0)</li>" }.joined(separator: "\n") + "\n</ul>"
    }

    static func alert(_ problem: String?) -> String {
        problem.map { "<p role=\"alert\"><strong>\(escape($0))</strong></p>\n" } ?? ""
    }

    /// Sends an authorization response as a form (OAuth 2.0 Form Post Response Mode).
    static func formPost(_ pairs: [(String, String)], to redirectURI: String) -> ServerResponse {
        let inputs = pairs.map { "<input type=\"hidden\" name=\"\(escape($0.0))\" value=\"\(escape($0.1))\">" }
        let script = "document.forms[0].submit()"
        let body = """
            <h1>One moment</h1>
            <form method="post" action="\(escape(redirectURI))">
            \(inputs.joined(separator: "\n"))
            <p><button type="submit">Continue</button></p>
            </form>
            <script>\(script)</script>
            """
        return Responses.page(document("One moment", body), scriptHash: Base64.encode(Digest.sha256(script)))
    }

    static func error(_ text: String, status: Int = 400) -> ServerResponse {
        let body = "<h1>This does not work</h1>\n<p role=\"alert\">\(escape(text))</p>"
        return Responses.page(document("Error", body), status: status)
    }

    static func signedOut() -> ServerResponse {
        Responses.page(document("Signed out", "<h1>Signed out</h1>\n<p>You can close this page.</p>"))
    }

    static func index(issuers: [String], users: [SandboxUser], clients: [SandboxClient]) -> ServerResponse {
        let links = issuers.map { issuer in
            let url = escape(issuer + Endpoint.discovery.path)
            return "<code>\(escape(issuer))</code>: <a href=\"\(url)\">metadata</a>, "
                + "<a href=\"\(escape(issuer))/sandbox/counters\">counters</a>, "
                + "<a href=\"\(escape(issuer))/sandbox/log\">log</a>, "
                + "<a href=\"\(escape(issuer))/sandbox/inbox\">inbox</a>"
        }
        let body = """
            <h1>A sandbox for sign-ins</h1>
            <h2>Issuers</h2>
            \(list(links))
            <h2>Users</h2>
            \(list(users.map { escape($0.name) }))
            <h2>Clients</h2>
            \(list(clients.map { "<code>\(escape($0.id))</code>" + ($0.secret == nil ? "" : " (with a secret)") }))
            """
        return Responses.page(document("Sandbox", body))
    }

    static func inbox(_ messages: [SentMessage]) -> ServerResponse {
        let items = messages.map { message in
            let link = message.link.map { "<br><a href=\"\(escape($0))\">\(escape($0))</a>" } ?? ""
            return "\(message.kind) to <strong>\(escape(message.to))</strong> (\(escape(message.type))): "
                + "<code>\(escape(message.code))</code>\(link)"
        }
        let content = items.isEmpty ? "<p>Nothing has been sent yet.</p>" : list(items)
        return Responses.page(document("Inbox", "<h1>Inbox</h1>\n\(content)"))
    }

    private static func describe(_ scope: String) -> String {
        let meaning: String? =
            switch scope {
            case "openid": "who you are"
            case "profile": "your name"
            case "email": "your e-mail address"
            case "offline_access": "access while you are away"
            default: nil
            }
        return "<code>\(escape(scope))</code>" + (meaning.map { ": \($0)" } ?? "")
    }

    static func document(_ title: String, _ body: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>\(escape(title))</title>
        <style>
        body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 2rem auto; padding: 0 1rem }
        code { overflow-wrap: anywhere }
        button { font: inherit; padding: .4rem 1.2rem }
        :focus-visible { outline: 3px solid #06c; outline-offset: 2px }
        </style>
        </head>
        <body>
        <main>
        \(body)
        </main>
        </body>
        </html>

        """
    }

    static func escape(_ text: String) -> String { Markup.escaped(text) }
}
