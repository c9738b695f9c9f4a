import OAuth
import RingbackBase

/// Token answers. The first line of an input is the answer's status with words for its kind (`form`, `html`, `cut`); the
/// rest is the body. What is saved from a broken answer is what the whole one says, or nothing.
enum TokenAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let words = line.split(separator: " ")
        let status = words.first.flatMap { Int($0) }.map { min(max($0, 200), 599) } ?? 200
        let kind: Kind = words.contains("form") ? .form : words.contains("html") ? .html : .json
        try check(body, status, kind, isCut: words.contains("cut"))
    }

    private enum Kind: String {
        case json = "application/json"
        case form = "application/x-www-form-urlencoded; charset=utf-8"
        case html = "text/html"
    }

    private static func response(_ body: [UInt8], _ status: Int, _ kind: Kind, isCut: Bool) -> HTTPResponse {
        HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", kind.rawValue)]), body: Secret(bytes: body),
            truncation: isCut ? .timedOut(host: "id.example.org") : nil)
    }

    private static func check(_ body: [UInt8], _ status: Int, _ kind: Kind, isCut: Bool) throws {
        let answer: TokenResponse
        do throws(OAuthError) {
            answer = try TokenResponse(reading: response(body, status, kind, isCut: isCut))
        } catch {
            try check(error, body, status)
            return
        }
        let isSuccess = (200..<300).contains(status)
        try hold("only a success gives tokens", isSuccess || (try? answer.tokenSet()) == nil)
        let object = kind == .form ? nil : (try? JSON(parsing: body))?.object
        if let token = answer.refreshToken {
            try hold("a refresh token is printable", token.revealed().isPrintableASCII && !token.isEmpty)
            if let object {
                try hold(
                    "a refresh token is the member, or of an unusable response",
                    object["refresh_token"]?.string == token.revealed()
                        || (object["refresh_token"] == nil && (try? answer.tokenSet()) == nil))
            } else if kind != .form, body.first == UInt8(ascii: "{"), body.dropFirst().first != 0 {
                try checkSalvage(body, status, kind)
            }
        }
        if let object { try checkCuts(of: object, body, status, kind) }
        guard let tokens = try? answer.tokenSet() else { return }
        try hold("half an answer is not believed", !isCut)
        try hold("an access token is printable", tokens.accessToken.revealed().isPrintableASCII)
        try hold("an access token is one word", !tokens.accessToken.revealed().contains(" "))
        try hold("both looks see one refresh token", tokens.refreshToken == answer.refreshToken)
        try hold("tokens are bearer tokens", tokens.tokenType == "Bearer")
        for seconds in [tokens.expiresIn, tokens.refreshExpiresIn] {
            try hold("a lifetime is at most a year", (0...31_536_000).contains(seconds ?? 0))
        }
        try hold("a scope is printable", tokens.scope?.isPrintableASCII != false)
        if let object {
            try hold("an access token is the member", object["access_token"]?.string == tokens.accessToken.revealed())
        }
    }

    private static func check(_ refusal: OAuthError.ErrorResponse) throws {
        try hold("an error's code is printable ASCII", refusal.code.isPrintableASCII)
        try hold("an error's text is one visible line", refusal.message?.isVisibleLine != false)
        try hold("an error's words are short", refusal.code.count <= 64 && (refusal.message ?? "").count <= 300)
    }

    private static func check(_ error: OAuthError, _ body: [UInt8], _ status: Int) throws {
        switch error {
        case .refused(let refusal):
            try hold("a server in trouble refuses nothing", status < 500 && ![408, 425, 429].contains(status))
            try check(refusal)
        case .unavailable(_, _, let seconds): try hold("a wait has an end", (0...86_400).contains(seconds ?? 0))
        case .failing(let refusal, let seconds):
            try hold("a server that fails says so with its status", status >= 500)
            try check(refusal)
            try hold("a wait has an end", (0...86_400).contains(seconds ?? 0))
        case .invalid, .misconfigured, .invalidIDToken, .otherSubject: break
        }
        if case .refused(let refusal) = error, refusal.endsGrant {
            try hold("a session ends by these words alone", [200, 400, 401, 403].contains(status))
        }
    }

    /// A whole answer, cut off anywhere, gives the token of the whole one or none.
    private static func checkCuts(of object: JSONObject, _ body: [UInt8], _ status: Int, _ kind: Kind) throws {
        let whole = object["refresh_token"]?.string
        for end in stride(from: 0, to: body.count, by: max(1, body.count / 64)) {
            for isCut in [false, true] {
                let answer = response(Array(body[..<end]), status, kind, isCut: isCut)
                guard let token = (try? TokenResponse(reading: answer))?.refreshToken else { continue }
                try hold("what is saved is what the whole says", token.revealed() == whole)
            }
        }
    }

    /// What was saved from a broken answer is not saved if the rest names another. The rest closes nothing, or it would
    /// be a nested object's.
    private static func checkSalvage(_ body: [UInt8], _ status: Int, _ kind: Kind) throws {
        let rests = [
            ",\"refresh_token\":\"other\"", ",\"refresh_token\"\u{301}", "\"refresh_token\"\u{200D}\u{301}:",
            ",\"refresh\\u005ftoken\":\"other\"", ",\"\\u0072efresh_toke\\u006E\":",
        ]
        for rest in rests {
            let answer = response(body + Array(rest.utf8), status, kind, isCut: false)
            let token = (try? TokenResponse(reading: answer))?.refreshToken
            try hold("of two tokens none is saved", token == nil)
        }
    }
}
