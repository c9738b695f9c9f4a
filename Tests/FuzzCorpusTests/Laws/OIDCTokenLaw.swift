import Adapters

/// The command line of `oidc-token`: a word in each line, up to an empty line; the rest is the token.
enum OIDCTokenLaw {
    static func check(_ bytes: [UInt8]) throws {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        let words = lines.prefix { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) }
        guard let read = try? OIDCToken(words), read.page == nil else { return }
        try hold("a span is not negative", (read.minValid ?? 0) >= 0)
        let rest = Array(lines.dropFirst(words.count + 1).joined(separator: [0x0A]))
        let token = String(decoding: rest, as: UTF8.self)
        let facts = OIDCToken.Facts(token: token, issuer: "https://id.example.org", expiresAt: 1)
        guard let answer = try? read.answer(facts) else { return }
        try hold("an answer has 1 to 3 lines", (1...3).contains(answer.count { $0 == 0x0A }))
        try hold("an answer ends with a line break", answer.last == 0x0A)
        try hold("an answer is printable ASCII", answer.allSatisfy { $0 == 0x0A || (0x20...0x7E).contains($0) })
    }
}
