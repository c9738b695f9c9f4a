import BrokerCore
import Synchronization

/// What people were told, as `VERDICT ACCOUNT MESSAGE`.
final class Told: Sendable {
    private let lines = Mutex<[String]>([])
    let isShown = Mutex(true)
    var all: [String] { lines.withLock { $0 } }

    @Sendable func tell(_ verdict: CallbackVerdict, _ account: AccountName?, _ message: String?) async -> Bool {
        let word = String("\(verdict)".prefix { $0 != "(" })
        lines.withLock { $0.append("\(word) \(account?.rawValue ?? "nil") \(message ?? "nil")") }
        return isShown.withLock { $0 }
    }
}
