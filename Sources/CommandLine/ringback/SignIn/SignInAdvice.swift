import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// What to say about a sign-in that used another method than the user may expect, or that failed where another method
/// is possible. Each command can be run as it is printed.
enum SignInAdvice {
    static let deviceChosen = "There is no display here and no BROWSER: the sign-in uses a code on another device."

    /// How the user tells our own page from an imitation.
    static func words(_ words: String) -> String {
        "The sign-in page shows these two words: \(Sanitizer.line(words)). Enter nothing on a page that shows others."
    }

    /// The sign-in was begun by another call, and ends at that call's time limit.
    static func joined(_ flow: Flow) -> String {
        let name = Sanitizer.line(flow.account)
        let left = flow.expiresAt.map { ", \(TimeText.clock($0.secondsSince1970 - TimeText.now())) left" } ?? ""
        return "A sign-in to \(name) is in progress already, and this command has joined it\(left). To begin another: "
            + "\(shown: "ringback login \(name) --replace")"
    }

    /// True if the provider gives no device codes to this client, for whatever reason. Other methods may be possible.
    static func refusesDevice(_ error: RingbackError) -> Bool {
        [.methodUnsupported, .providerError, .invalidProviderResponse].contains(error.kind)
    }

    /// Why a page is shown and no device code.
    static func deviceRefused(_ error: RingbackError) -> String {
        let code = error.problem?.extensions["provider_code"]?.string.map { " (\(Sanitizer.line($0)))" } ?? ""
        let why = error.kind == .methodUnsupported ? "offers no codes" : "gives no codes\(code)"
        return "There is no display here and no BROWSER, and the provider \(why) for another device."
    }

    /// Advice for an error when a device code was asked for by name. Many providers allow a client one method only.
    static func withoutDevice(_ error: RingbackError, _ account: String) -> RingbackError {
        let isMissing = error.problem?.extensions["method"]?.string == "device"
        guard isMissing || [.providerError, .invalidProviderResponse].contains(error.kind) else { return error }
        let reason = isMissing ? "" : "The provider may have no codes for this client. "
        return adding(
            "\(reason)Sign in with a browser: \(shown: "ringback login \(account)"), or "
                + "\(shown: "ringback login \(account) --no-browser") where there is none.", to: error)
    }

    /// Another user is signed in. `options` are ``SupabaseAdvice/options``.
    static func switching(_ error: RingbackError, _ account: String, _ options: ShownCommand = "")
        -> RingbackError
    {
        adding(
            "To replace the held session, run: \(shown: "ringback login \(account) \(options) --switch")", to: error)
    }

    /// Another sign-in is pending. `options` are ``SupabaseAdvice/options``: without them the command would begin yet
    /// another one.
    static func replacing(_ error: RingbackError, _ account: String, _ options: ShownCommand)
        -> RingbackError
    {
        adding(
            "Finish it, replace it (\(shown: "ringback login \(account) \(options) --replace")), or run: "
                + "\(shown: "ringback cancel \(account)")",
            to: error)
    }

    /// Advice for a sign-in that began and failed. A change of a signed-in user has no other methods.
    static func advised(_ failure: RingbackError, of flow: Flow, _ options: ShownCommand = "") -> RingbackError {
        switch failure.kind {
        case _ where flow.concernsHeldUser: failure
        case .stateConflict: switching(failure, flow.account, options)
        case _ where flow.method == .device: withoutDevice(failure, flow.account)
        default: failure
        }
    }

    /// The same for a callback that came from elsewhere: no caller waits that could begin again.
    static func elsewhere(_ failure: RingbackError, of flow: Flow) -> RingbackError {
        let failure = advised(failure, of: flow)
        guard !flow.concernsHeldUser, failure.advice == nil else { return failure }
        return adding("To begin again, run: \(shown: "ringback login \(flow.account)")", to: failure)
    }

    static func adding(_ sentence: String, to error: RingbackError) -> RingbackError {
        var error = error
        error.advice = error.advice.map { "\($0) \(sentence)" } ?? sentence
        return error
    }
}

extension Flow {
    /// The flow belongs to a user who is signed in. The user stays signed in whatever its outcome.
    fileprivate var concernsHeldUser: Bool { method == .link || method == .userUpdate }
}
