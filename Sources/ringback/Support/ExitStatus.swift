import RingbackAPI
import RingbackClient
import StrictJSON

/// What a verb ends with, as in the manual page. Codes of a newer daemon are failures like any other: 1.
enum ExitStatus {
    static let failed: Int32 = 1
    static let usage: Int32 = 64
    static let badConfiguration: Int32 = 78

    /// The one that says more to be mended, for a verb that did several things: a plain failure is the worst, then what
    /// needs a person, then what passes by itself.
    static func worse(_ left: Int32, _ right: Int32) -> Int32 {
        let order: [Int32] = [0, 6, 5, 2, 3, 4, badConfiguration, usage, failed]
        return (order.firstIndex(of: left) ?? order.count) >= (order.firstIndex(of: right) ?? order.count)
            ? left : right
    }

    static func of(_ error: RingbackError) -> Int32 {
        switch error.kind {
        case .noDaemon, .shuttingDown: 2
        case .signInRequired, .sessionExpired, .refreshRefused: 3
        case .accessDenied, .policyDenied, .cancelled, .flowCancelled, "consent_required", "consent_timeout",
            CodeEntry.inputNeeded:
            4
        case .providerUnreachable, .rateLimited, .invalidProviderResponse: 5
        case .timeout, .timedOut, .flowExpired: 6
        case .invalidConfiguration: badConfiguration
        // What was typed cannot be, and only the daemon could tell; what a provider does not like is its own no.
        case .validationFailed, "invalid_request":
            error.problem?.extensions["provider_code"] == nil ? usage : failed
        default: failed
        }
    }
}
