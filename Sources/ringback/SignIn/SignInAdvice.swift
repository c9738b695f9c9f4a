import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// What to say of a sign-in that took another way than the person may expect, or that failed where another way is
/// open: each command in it works as it stands.
enum SignInAdvice {
    static let deviceChosen = "There is no display here and no BROWSER: the sign-in goes by a code, on another device."

    /// True if the provider has no codes for this client, whatever it says: other ways may be open.
    static func refusesDevice(_ error: RingbackError) -> Bool {
        [.methodUnsupported, .providerError, .invalidProviderResponse].contains(error.kind)
    }

    /// Why a page is shown and not a code.
    static func deviceRefused(_ error: RingbackError) -> String {
        let code = error.problem?.extensions["provider_code"]?.string.map { " (\(Sanitizer.line($0)))" } ?? ""
        let why = error.kind == .methodUnsupported ? "offers no codes" : "gives no codes\(code)"
        return "There is no display here and no BROWSER, and the provider \(why) for another device."
    }

    /// A refusal of codes that were asked for by name. Many providers register clients for one way alone.
    static func withoutDevice(_ error: RingbackError, _ account: String) -> RingbackError {
        guard [.providerError, .invalidProviderResponse].contains(error.kind) else { return error }
        let name = Sanitizer.line(account)
        return adding(
            "The provider may have no codes for this client. Sign in with a browser: ringback login \(name), or "
                + "ringback login \(name) --no-browser where there is none.", to: error)
    }

    /// Somebody else is signed in. `options` are ``SupabaseAdvice/options``.
    static func switching(_ error: RingbackError, _ account: String, _ options: String = "") -> RingbackError {
        let name = Sanitizer.line(account)
        return adding("To replace the held session, run: ringback login \(name)\(options) --switch", to: error)
    }

    /// A sign-in that began and failed. What changes a person who is signed in has no such ways.
    static func advised(_ failure: RingbackError, of flow: Flow, _ options: String = "") -> RingbackError {
        switch failure.kind {
        case _ where ["link", "update_user"].contains(flow.method): failure
        case .stateConflict: switching(failure, flow.account, options)
        case _ where flow.method == "device": withoutDevice(failure, flow.account)
        default: failure
        }
    }

    /// The same where nobody waits who could begin again: the callback came from elsewhere.
    static func elsewhere(_ failure: RingbackError, of flow: Flow) -> RingbackError {
        let failure = advised(failure, of: flow)
        guard !["link", "update_user"].contains(flow.method), failure.advice == nil else { return failure }
        return adding("To begin again, run: ringback login \(Sanitizer.line(flow.account))", to: failure)
    }

    static func adding(_ sentence: String, to error: RingbackError) -> RingbackError {
        var error = error
        error.advice = error.advice.map { "\($0) \(sentence)" } ?? sentence
        return error
    }
}
