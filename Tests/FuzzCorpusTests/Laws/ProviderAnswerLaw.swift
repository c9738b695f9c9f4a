import OAuth
import RingbackBase

/// Answers of a provider that carry no tokens: pushed requests and revocations. The first line of an input is the status,
/// and after a space the `Retry-After`; the rest is the body.
enum ProviderAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let words = line.split(separator: " ", maxSplits: 1)
        let status = words.first.flatMap { Int($0) }.map { min(max($0, 200), 599) } ?? 200
        var fields = HTTPFields([("Content-Type", "application/json")])
        if words.count > 1 { fields.append("Retry-After", String(words[1])) }
        let response = HTTPResponse(status: status, fields: fields, body: Secret(bytes: body))
        try hold("a wait has an end", (0...86_400).contains(RetryAfter.seconds(in: fields) ?? 0))
        switch Result(catching: { () throws(OAuthError) in try PushedAuthorization(parsing: response) }) {
        case .success(let pushed): try check(pushed, body, status)
        case .failure(let error): try check(error, status)
        }
        switch Result(catching: { () throws(OAuthError) in try RevocationOutcome(parsing: response) }) {
        case .success(let outcome):
            try hold("a success is one", outcome == .revoked || !(200..<300).contains(status))
            try hold("a server in trouble has revoked nothing", !isLater(status) && !(300..<400).contains(status))
        case .failure(let error):
            try hold("what succeeded is no error", !(200..<300).contains(status))
            try check(error, status)
        }
    }

    private static func isLater(_ status: Int) -> Bool { status >= 500 || [408, 425, 429].contains(status) }

    private static func check(_ pushed: PushedAuthorization, _ body: [UInt8], _ status: Int) throws {
        let object = try JSON(parsing: body).object
        try hold("a request was made", [200, 201].contains(status) && pushed.expiresIn > 0)
        try hold("its name is the member", object?["request_uri"]?.string == pushed.requestURI)
        if let stated = object?["expires_in"]?.integer, (1...31_536_000).contains(stated) {
            try hold("its lifetime is the member", stated == pushed.expiresIn)
        }
        let name = pushed.requestURI
        try hold(
            "its name is one word", name.isPrintableASCII && !name.contains(" ") && (1...2_048).contains(name.count))
    }

    private static func check(_ refusal: OAuthError.ErrorResponse) throws {
        try hold("an error's code is printable ASCII", refusal.code.isPrintableASCII)
        try hold("an error's text is one visible line", refusal.message?.isVisibleLine != false)
        try hold("an error's words are short", refusal.code.count <= 64 && (refusal.message ?? "").count <= 300)
    }

    private static func check(_ error: OAuthError, _ status: Int) throws {
        switch error {
        case .refused(let refusal):
            try hold("a server in trouble refuses nothing", !isLater(status))
            try check(refusal)
        case .unavailable(_, _, let seconds): try hold("a wait has an end", (0...86_400).contains(seconds ?? 0))
        case .failing(let refusal, let seconds):
            try hold("a server that fails says so with its status", status >= 500)
            try check(refusal)
            try hold("a wait has an end", (0...86_400).contains(seconds ?? 0))
        case .invalid, .misconfigured, .invalidIDToken, .otherSubject: break
        }
    }
}
