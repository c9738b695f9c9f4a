internal import BrokerCore

extension FindingReason: Sentence {
    var sentence: String {
        switch self {
        case .direct: "Requests of this account go to the provider without a proxy."
        case .proxied(let url, let exceptions, let isOfAll):
            (isOfAll ? "Requests to providers" : "Requests of this account") + " go through the proxy "
                + url + (exceptions.isEmpty ? "" : ", except to \(exceptions.joined(separator: ", "))")
                + ". The proxy resolves the names of providers. "
                + "Therefore the check that a URL from a provider does not lead to this machine works only for URLs "
                + "with an IP address."
        case .certificateTrusted(let host): "\(host) has a certificate that is trusted."
        case .notEncrypted(let host): "\(host) is this machine. The connection is not encrypted."
        case .noTrustedConnection(let host, let cause): "There is no trusted connection to \(host): \(cause)."
        case .wrongScheme(let host, true):
            "The server at \(host) speaks TLS: its URL begins with https://, not with http://."
        case .wrongScheme(let host, false):
            "The server at \(host) does not speak TLS. Perhaps its URL begins with http://."
        case .unreachable(let host, let cause): "\(host) cannot be reached: \(cause)."
        case .noResponse(let host, let seconds): "\(host) does not respond within \(seconds) s."
        case .badResponse(let host): "The response of \(host) is not valid HTTP, or it is too large."
        case .notChecked: "The check was not made: the daemon is shutting down."
        case .host(let host, let reason): "\(host) \(reason.sentence)."
        case .respondsWithStatus(let status): "responds with HTTP status \(status)"
        case .noTime(let host): "\(host) does not send its time."
        case .clocksAgree(let host): "The clocks of this machine and of \(host) agree."
        case .clockDiffers(let host, let seconds, let isAhead, let leeway):
            "This machine's clock is \(seconds) s \(isAhead ? "ahead of" : "behind") that of \(host): ID tokens are "
                + "rejected if the difference is more than \(leeway) s."
        case .callbackAtFreePort: "The callback arrives at a free port on 127.0.0.1."
        case .callbackIsPasted: "The callback does not arrive by itself: its URL has to be pasted."
        case .callbackAsLink(let scheme): "The callback arrives as a link of the scheme \(scheme)."
        case .callbackAtOpenScheme(let scheme):
            "The callback arrives as a link of the scheme \(scheme), which any other app may claim. A scheme after "
                + "a domain of yours, such as org.example.\(scheme), avoids that."
        case .callbackAwaited: "A sign-in is waiting for its callback now."
        case .portFree: "The port of the callback is free."
        case .portUnusable(let failure):
            "The callback cannot arrive: \(failure?.clause ?? "the listener cannot be opened")."
        }
    }
}
