import ArgumentParser
import RingbackBase
import RingbackClient

/// A verb's exit status, as in the manual page. Error codes that only a newer daemon has give 1.
enum ExitStatus {
    static let failed: Int32 = 1
    static let usage: Int32 = 64
    static let badConfiguration: Int32 = 78

    static func end(with status: Int32) throws {
        if status != 0 { throw ExitCode(status) }
    }

    static let usageKind: RingbackError.Kind = "usage"

    /// True if every mistake is in an option of the command line, and none in a file.
    private static func isOfOptions(_ error: RingbackError) -> Bool {
        let errors = error["errors"]?.array ?? []
        return !errors.isEmpty && errors.allSatisfy { $0["place"]?.string?.hasPrefix("--") == true }
    }

    /// The more important one, for a verb that did several things. A plain failure counts most, then what needs the
    /// user, then what ends by itself.
    static func worse(_ left: Int32, _ right: Int32) -> Int32 {
        let order: [Int32] = [0, 6, 5, 2, 3, 4, badConfiguration, usage, failed]
        return (order.firstIndex(of: left) ?? order.count) >= (order.firstIndex(of: right) ?? order.count)
            ? left : right
    }

    static func of(_ error: RingbackError) -> Int32 {
        switch error.kind {
        case .noDaemon, .foreignServer, .shuttingDown: 2
        case .signInRequired, .sessionExpired, .refreshRefused: 3
        case .accessDenied, .policyDenied, .cancelled, .flowCancelled, "consent_required", "consent_timeout",
            CodeEntry.inputNeeded:
            4
        case .providerUnreachable, .rateLimited, .invalidProviderResponse, .vaultUnreachable: 5
        case .timeout, .timedOut, .flowExpired: 6
        case .invalidConfiguration: isOfOptions(error) ? usage : badConfiguration
        case AccountChoice.kind, .accountNotFound, ExitStatus.usageKind: usage
        // What was typed is invalid, and only the daemon could tell. A provider's error response is a plain failure.
        case .validationFailed, "invalid_request": error["provider_code"] == nil ? usage : failed
        default: failed
        }
    }
}
