internal import LocalHTTP

/// The pages where a user enters the code of another device (RFC 8628 section 3.3).
extension Pages {
    /// Asks for the code.
    static func deviceCode(action: String, problem: String? = nil) -> ServerResponse {
        let body = """
            <h1>Sign in on a device</h1>
            \(alert(problem))<form method="get" action="\(escape(action))">
            <p><label for="code">The code that the device shows</label><br>
            <input type="text" id="code" name="user_code" required autocomplete="off" autocapitalize="characters"
            spellcheck="false"></p>
            <p><button type="submit">Continue</button></p>
            </form>
            """
        return Responses.page(document("Sign in on a device", body), status: problem == nil ? 200 : 422)
    }

    /// Shows which client requests what, and the code for the user to compare.
    static func deviceConfirmation(
        _ grant: DeviceGrant, users: [SandboxUser], action: String, problem: String? = nil
    ) -> ServerResponse {
        let body = """
            <h1>Sign in to \(escape(grant.clientID)) on a device</h1>
            \(alert(problem))<p>Go on only if a device of yours shows this code now:
            <strong><code>\(escape(grant.userCode))</code></strong></p>
            \(list(of: grant.scopes))
            <form method="post" action="\(escape(action))">
            <input type="hidden" name="user_code" value="\(escape(grant.userCode))">
            <fieldset>
            <legend>Sign in as</legend>
            \(choices(users, hinted: users.first))
            </fieldset>
            <p><button type="submit" name="decision" value="allow">Allow</button>
            <button type="submit" name="decision" value="deny" formnovalidate>Deny</button></p>
            </form>
            <p>This is a sandbox: there are no passwords, and nobody here is real.</p>
            """
        return Responses.page(document("Sign in on a device", body), status: problem == nil ? 200 : 422)
    }

    static func deviceDone(isAllowed: Bool) -> ServerResponse {
        let text = isAllowed ? "The device is signed in in a moment." : "The device is told that you said no."
        return Responses.page(document("Done", "<h1>Done</h1>\n<p>\(text) You can close this page.</p>"))
    }
}
