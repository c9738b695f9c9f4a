import DeepLinks
import OAuth
import RingbackBase
import SupabaseAuth

/// Answers of a Supabase project that may bring a session. The first line of an input is the status, then words: `new`
/// for the header of the new shape of errors, `cut` for a body that broke off. What is wrong with an answer never ends
/// a session that its status does not end, and a refresh token is found or not, never another.
enum ProjectAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (status, words, body) = bytes.response()
        var fields = HTTPFields([("Content-Type", "application/json")])
        if words.contains("new") { fields.append("X-Supabase-Api-Version", "2024-01-01") }
        let response = HTTPResponse(
            status: status, fields: fields, body: Secret(bytes: body),
            truncation: words.contains("cut") ? .timedOut(host: "ref.supabase.co") : nil)
        switch Result(catching: { () throws(SupabaseError) in try SessionResponse(reading: response) }) {
        case .failure(let error):
            // Of half an answer only the status is believed.
            try hold("a no is not half an answer", !isRefused(error) || !words.contains("cut") || status == 429)
            try check(error, status)
        case .success(let answer):
            try hold("only a success brings something", (200..<300).contains(status))
            try check(answer, body, isCut: words.contains("cut"))
        }
    }

    private static func isRefused(_ error: SupabaseError) -> Bool {
        if case .refused = error { true } else { false }
    }

    private static func check(_ error: SupabaseError, _ status: Int) throws {
        try hold("a wait has an end", (0...86_400).contains(error.retryAfter ?? 0))
        let verdict = RefreshVerdict(error)
        switch verdict {
        case .dead, .reused:
            try hold("a session ends by a no alone", isRefused(error))
            try hold("a session ends by 4xx alone", (400..<500).contains(status))
            try hold("later ends no session", ![408, 409, 425, 429].contains(status))
        case .transient, .misconfigured: break
        }
        guard case .refused(let refusal) = error else { return }
        try hold("a no has its status", refusal.status == status)
        try hold("a code is short and plain", refusal.code.isPrintableASCII && (1...64).contains(refusal.code.count))
        try hold("weaknesses are plain", refusal.weaknesses.allSatisfy(\.isPrintableASCII))
        let words = refusal.message ?? ""
        try hold("words hold no control character", !words.unicodeScalars.contains { $0.value < 0x20 })
        try hold("a token is asked for anew, or the session is over", !refusal.asksForRefresh || !refusal.endsSession)
    }

    private static func check(_ answer: SessionResponse, _ body: [UInt8], isCut: Bool) throws {
        let object = (try? JSON(parsing: body))?.object
        if let token = answer.refreshToken?.revealed() {
            try hold("a refresh token is printable", token.isPrintableASCII && !token.isEmpty)
            if let object { try hold("a refresh token is the member", object["refresh_token"]?.string == token) }
        }
        guard let outcome = try? answer.outcome() else {
            return try hold("an answer without use is kept for its refresh token alone", answer.refreshToken != nil)
        }
        try hold("half an answer is not believed", !isCut)
        switch outcome {
        case .session(let session):
            try hold("both looks see one refresh token", session.refreshToken == answer.refreshToken)
            let token = session.accessToken.revealed()
            try hold("an access token is the member", object?["access_token"]?.string == token)
            try hold("an access token is one word", token.isPrintableASCII && !token.contains(" "))
            try hold("a session is one user's", session.user.map { $0.id == session.claims.subject } ?? true)
            for seconds in [session.expiresIn, session.lifetime(now: 1_800_000_000)] {
                try hold("a lifetime is at most a year", (0...31_536_000).contains(seconds ?? 0))
            }
        case .user(let user):
            try hold("a user alone comes without tokens", answer.refreshToken == nil)
            try hold("a user has a name", !user.id.isEmpty)
        case .accepted: try hold("what is only accepted brings nothing", answer.refreshToken == nil)
        }
    }
}

/// Callback URLs of a Supabase project: one code, one no or one message; tokens are refused wherever they stand; the
/// flow's key is the text's own.
enum ProjectCallbackLaw {
    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let url = try? WebURL(parsing: text), let callback = try? SupabaseCallback(parsing: url) else { return }
        let query = try FormEncoding.parse(
            Array((url.query ?? "").utf8), needed: ["code", "error", "error_code", "flow"])
        let fragment =
            (try? FormEncoding.parse(Array((url.fragment ?? "").utf8), needed: ["code", "error", "error_code", "flow"]))
            ?? []
        func values(_ name: String) -> [String] { query.filter { $0.name == name }.map(\.value) }

        let tokens: Set<String> = ["access_token", "refresh_token", "id_token", "provider_token"]
        try hold("no token arrives in a URL", !(query + fragment).contains { tokens.contains($0.name) })
        switch callback.outcome {
        case .code(let code):
            try hold("there is exactly one code, in the query", values("code") == [code.revealed()])
            try hold("there is no error beside a code", values("error").allSatisfy(\.isEmpty))
            try hold("a code is printable", code.revealed().isPrintableASCII)
            try hold("a code is not too long", (1...8_192).contains(code.count))
        case .error(let refusal):
            try hold("there is no code beside an error", values("code").allSatisfy(\.isEmpty))
            try hold("a no's code is short and plain", refusal.code.isPrintableASCII && refusal.code.count <= 64)
            try hold("a browser's redirect has no status", refusal.status == 0)
            try hold("a browser's redirect ends no session", !refusal.endsSession && !refusal.asksForRefresh)
            try checkWords(refusal.message)
        case .message(let words): try checkWords(words)
        }
        if let key = callback.queryKey { try hold("the key is the parameter", values("flow") == [key]) }
        if let key = callback.pathKey {
            try hold("the key is the end of the path", url.path.hasSuffix("/" + key) && !key.contains("/"))
        }
        let isLoopback = url.isLoopback && ["http", "https"].contains(url.scheme)
        let key = callback.key(at: url)
        try hold("on loopback the path has the key", key == (isLoopback ? callback.pathKey : callback.queryKey))
        if let key { try hold("a key's digest is of its length", SupabaseCallback.digest(ofKey: key).count == 32) }
    }

    /// A server's words have no control characters, and an end.
    private static func checkWords(_ words: String?) throws {
        guard let words else { return }
        try hold(
            "words hold no control character", !words.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
        try hold("words have an end", !words.isEmpty && words.count <= 500)
    }
}

/// URLs from outside: what may be of a sign-in is never an app's link, and no way of writing it makes it one.
enum DeepLinkLaw {
    private static let redirects = [
        "swisscoin://auth-callback", "com.example.app:/oauth/done", "https://app.example/done",
        "http://127.0.0.1:8400/callback",
    ]
    private static let rules = LinkRules(schemes: ["org.example.notes"], redirectURIs: redirects)
    private static let tokens: Set<String> = ["access_token", "refresh_token", "id_token"]

    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let url = try? WebURL(parsing: text) else { return }
        let kind = rules.kind(of: url)
        if url.scheme == "http" || url.scheme == "https" { try hold("a web page is no app's", kind == .callback) }
        try checkRewriting(url, kind)
        switch kind {
        case .callback: break
        case .foreign(let scheme):
            try hold("a foreign scheme is the URL's", scheme == url.scheme && !rules.schemes.contains(scheme))
        case .deepLink(let scheme):
            try hold("a link's scheme is the URL's", scheme == url.scheme && rules.schemes.contains(scheme))
            try checkInnocence(of: url)
        }
    }

    /// What the readers of callbacks make of it.
    private static func checkInnocence(of url: WebURL) throws {
        for part in [url.query, url.fragment] {
            let names = Set(((try? FormEncoding.parse(part ?? "")) ?? []).map(\.name))
            try hold("a link has no token", names.isDisjoint(with: tokens))
        }
        if let response = try? AuthorizationResponse(parsing: url), case .code = response.outcome {
            throw LawBroken(law: "a link has no code with a state")
        }
        if let callback = try? SupabaseCallback(parsing: url), case .code = callback.outcome {
            try hold("a link has no code with a key", callback.queryKey == nil)
        }
        for redirect in redirects.compactMap({ try? WebURL(parsing: $0) }) {
            let isThere =
                redirect.scheme == url.scheme && redirect.host == url.host && redirect.port == url.port
                && redirect.path == url.path
            try hold("a link is at no redirect URI", !isThere)
        }
    }

    private static func checkRewriting(_ url: WebURL, _ kind: LinkRules.Kind) throws {
        let (head, tail) = split(url)
        guard kind == .callback else {
            for name in tokens {
                for addition in ["#\(name)=x", "#a&%\(hex(name))=x", "#/\(name)=x", "#!\(name)[]=x"]
                where url.fragment == nil {
                    let spoilt = try? WebURL(parsing: url.text + addition)
                    try hold("a token spoils a link", spoilt.map { rules.kind(of: $0) == .callback } ?? true)
                }
            }
            return
        }
        // As long as it is a URL at all, nothing that is added or written in another way takes it back.
        let rewritten = [
            url.text + (url.fragment == nil ? "#a=b" : "&a=b"), head.scheme.uppercased() + head.rest + tail,
            url.path.isEmpty || url.path.hasPrefix("/") ? head.scheme + head.rest + "/" + tail : url.text,
        ]
        for text in rewritten {
            let other = try? WebURL(parsing: text)
            try hold("a callback stays one", other.map { rules.kind(of: $0) == .callback } ?? true)
        }
    }

    /// Scheme, the rest up to the query or fragment, and those.
    private static func split(_ url: WebURL) -> (head: (scheme: String, rest: String), tail: String) {
        let end = url.text.firstIndex { $0 == "?" || $0 == "#" } ?? url.text.endIndex
        let colon = url.text.firstIndex(of: ":") ?? url.text.startIndex
        return ((String(url.text[..<colon]), String(url.text[colon..<end])), String(url.text[end...]))
    }

    /// The name with its first letter as an escape, without the sign.
    private static func hex(_ name: String) -> String {
        (name.utf8.first.map { String($0, radix: 16) } ?? "") + name.dropFirst()
    }
}
