import RingbackBase

struct Token: Hashable, Sendable {
    let value: String

    init(value: String) { self.value = value }

    /// Of a session's text; nil if that says that the session has ended.
    init?(of text: String) {
        let parts = text.split(separator: " ")
        guard parts.count >= 2 else { return nil }
        value = String(parts[0])
    }

    /// - Parameter note: what an edit has added.
    func text(expiring expiry: Duration, note: String = "") -> Secret {
        Secret("\(value) \(expiry.components.seconds)\(note)")
    }

    static func expiry(of text: String) -> Duration {
        .seconds(text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0)
    }
}

/// It replaces the refresh token with each refresh, and ends the session when one is presented that was replaced.
final class RotatingProvider {
    static let lifetime: Duration = .seconds(300)
    static let margin: Duration = .seconds(60)

    private(set) var current: Token?
    private(set) var isEnded = false
    private(set) var refreshCount = 0
    /// Sent, and received by nobody.
    private(set) var lost: Set<Token> = []
    private(set) var unexplained: [String] = []
    /// Which token came for which.
    private(set) var successors: [Token: Token] = [:]
    private var serial = 0
    /// The database lost commits since the last lease was taken, or ever.
    var isFailedOver = false { didSet { if isFailedOver { wasFailedOver = true } } }
    private(set) var wasFailedOver = false

    func signIn() -> Token {
        let token = next()
        current = token
        return token
    }

    private func next() -> Token {
        serial += 1
        return Token(value: "r\(serial)")
    }

    func lose(_ token: Token) { lost.insert(token) }

    /// Nil is `invalid_grant`.
    ///
    /// - Parameter isExplained: if the token was replaced already, that is known to be no fault of the vault.
    func refresh(_ token: Token, isExplained: Bool) -> Token? {
        refreshCount += 1
        guard !isEnded else { return nil }
        guard token == current else {
            isEnded = true
            if !isExplained { unexplained.append("\(token.value) was presented again though its successor was known") }
            return nil
        }
        let fresh = next()
        successors[token] = fresh
        current = fresh
        return fresh
    }
}
