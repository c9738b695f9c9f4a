import BrokerCore
import OAuthSignIn

extension Reason {
    /// A reason for tests that do not depend on which one it is.
    static let any = Reason.flow(.notURL)

    /// True if it holds a value or a text with these characters. Its sentence is not here: see `SentenceTests`.
    func holds(_ value: String) -> Bool {
        switch self {
        case .both(let first, let second): first.holds(value) || second.holds(value)
        default: "\(self)".contains(value)
        }
    }

    var flow: FlowReason? { if case .flow(let reason) = self { reason } else { nil } }
    var oauth: OAuthReason? { if case .kind(let fact) = self { fact.reason as? OAuthReason } else { nil } }

    /// What became of the registration that failed.
    var leftover: OAuthReason.Leftover? {
        guard case .both(_, let second) = self, case .leftover(let leftover)? = second.oauth else { return nil }
        return leftover
    }
}
