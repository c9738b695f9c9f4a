import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// What to run after a project has refused a sign-in, if another command helps. It holds the account and the typed
/// address or number, so that it can be run as it is printed.
struct SupabaseAdvice {
    let account: String
    /// The body of the sign-in that was refused.
    let fields: JSONObject

    /// The error with what to run; as it is where nothing is known to help.
    func advised(_ error: RingbackError) -> RingbackError {
        if let advice = missing(error.problem?.extensions["field"]?.string) {
            return SignInAdvice.adding(advice, to: error)
        }
        guard let (reason, command) = next(after: error) else { return error }
        return SignInAdvice.adding("\(reason), run: \(shown: command)", to: error)
    }

    /// What to add to a sign-in that lacks a field, which the account's configuration may hold instead.
    private func missing(_ field: String?) -> String? {
        guard let field, fields[field] == nil else { return nil }
        switch (field, method) {
        case ("oauth_provider", "browser"):
            return
                "Choose the method on a page: \(shown: "ringback login \(account) --page"). Or name it: "
                + "\(shown: "ringback login \(account) --with PROVIDER"), or "
                + "\(shown: "ringback login \(account) --method password --email ADDRESS")"
        case ("id_token", "id_token"):
            return
                "Pass one: \(shown: "ringback login \(account) --method id_token --with PROVIDER"); or name an account: "
                + "\(shown: "ringback login \(account) --from ACCOUNT")"
        default: return nil
        }
    }

    private func next(after error: RingbackError) -> (reason: String, command: ShownCommand)? {
        let word = error.problem?.extensions["provider_code"]?.string
        switch (word ?? error.kind.rawValue, method) {
        case ("email_not_confirmed", _): return login("To confirm it by a code", "otp")
        case ("phone_not_confirmed", _): return login("To confirm it by a code", "otp")
        case ("user_already_exists", "sign_up"), ("email_exists", "sign_up"), ("phone_exists", "sign_up"),
            ("email_already_in_use", "sign_up"):
            return login("If it is yours", "password")
        // For a phone number that has a user already. Other conflicts are with a sign-in or a session here.
        case ("state_conflict", "sign_up") where error.recovery == .signIn: return login("If it is yours", "password")
        case ("otp_disabled", "otp"), ("user_not_found", "otp"), ("otp_disabled", "magic_link"),
            ("user_not_found", "magic_link"):
            return login("To sign up", "sign_up")
        case ("invalid_credentials", "password"):
            guard let email else { return login("To sign in by a code", "otp") }
            return (
                "If the password is forgotten",
                ShownCommand("ringback supabase reset-password \(account) --email=\(email)")
            )
        case ("identity_already_exists", nil):
            guard let provider = text("oauth_provider") else { return nil }
            return (
                "To sign in with it instead", ShownCommand("ringback login \(account) --with=\(provider) --switch")
            )
        default:
            guard error.recovery == .signIn, error.advice == nil, options != "" else { return nil }
            return ("To begin again", ShownCommand("ringback login \(account) \(options)"))
        }
    }

    /// The options that made this sign-in what it was, as they were typed. An account at a
    /// project has many methods, and its configuration mostly names none. Empty if the configuration says everything.
    var options: ShownCommand {
        guard let method else { return "" }
        var options = method == "browser" ? [] : ["--method=\(method)"]
        for (name, option) in SupabaseAdvice.repeated { text(name).map { options.append("--\(option)=\($0)") } }
        // A session that was not to be stored must not be stored the second time.
        for (name, option) in [("persist", "--no-persist"), ("create_user", "--no-create-user")]
        where fields[name]?.bool == false { options.append(option) }
        return ShownCommand(words: options)
    }

    /// Fields that are options of `login`.
    private static let repeated = [
        ("oauth_provider", "with"), ("from_account", "from"), ("email", "email"), ("phone", "phone"),
        ("channel", "channel"), ("domain", "domain"), ("provider_id", "provider-id"), ("scopes", "scopes"),
    ]

    /// Nil where the request is no sign-in.
    private var method: String? { text("method") }
    private var email: String? { text("email") }

    private func login(_ reason: String, _ method: String) -> (String, ShownCommand)? {
        let who: ShownCommand? = email.map { "--email=\($0)" } ?? text("phone").map { "--phone=\($0)" }
        return who.map { (reason, ShownCommand("ringback login \(account) --method=\(method) \($0)")) }
    }

    private func text(_ name: String) -> String? { fields[name]?.string.map { Sanitizer.line($0) } }
}

/// The assurance levels of a session. A sign-in by password alone must not look complete if the user has a second
/// factor.
enum Assurance {
    /// `aal1`, or `aal1, needs aal2`; nil where the provider has no levels.
    static func text(_ level: String?, _ next: String?) -> String? {
        guard let level else { return nil }
        guard let next, next != level else { return level }
        return "\(level), needs \(next)"
    }

    /// What is left to do after a sign-in; nil if nothing is.
    static func hint(_ name: String, _ account: JSON) -> String? {
        guard let level = account["aal"]?.string, let next = account["next_aal"]?.string, level != next else {
            return nil
        }
        return "A second factor must still be verified (\(Sanitizer.line(level)), needs \(Sanitizer.line(next))). "
            + "Run: \(shown: "ringback supabase verify-factor \(name)")"
    }
}
