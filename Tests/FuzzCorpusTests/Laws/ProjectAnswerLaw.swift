import OAuth
import RingbackBase
import SupabaseAuth

/// Answers of a Supabase project that may bring a session. The first line of an input is the status, then words: `new`
/// for the header of the new shape of errors, `cut` for a body that broke off. What is wrong with an answer never ends
/// a session that its status does not end, and a refresh token is found or not, never another.
enum ProjectAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let words = line.split(separator: " ")
        let status = words.first.flatMap { Int($0) }.map { min(max($0, 200), 599) } ?? 200
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
