internal import Cryptography
internal import Encodings
internal import HTTPMessages
internal import StrictJSON

/// A request to a project, as its endpoints read it, with the settings that apply to it.
struct SupabaseCall {
    let request: SandboxRequest
    let settings: SupabaseSettings
    /// The project's URL, without a final slash.
    let projectURL: String
    let now: Int
    /// The path below `/auth/v1` or `/rest/v1`, decoded.
    let parts: [String]
    /// The query, without what the server cannot read.
    let pairs: [FormEncoding.Pair]

    init(_ request: SandboxRequest, settings: SupabaseSettings, projectURL: String, at now: Int) {
        self.request = request
        self.settings = settings
        self.projectURL = projectURL
        self.now = now
        pairs = SupabaseURL.pairs(of: request.rawQuery)
        let below = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(3)
        parts = below.map { piece in
            // A plus sign in a path is not a space.
            let text = piece.split(separator: "+", omittingEmptySubsequences: false).joined(separator: "%2B")
            return (try? FormEncoding.parse(text))?.first?.name ?? String(piece)
        }
    }

    var method: String { request.method }

    var authURL: String { projectURL + "/auth/v1" }

    func instant() -> SupabaseInstant { .next(now) }

    /// The first value of a query parameter; nil without one and for an empty one.
    func query(_ name: String) -> String? {
        pairs.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    func field(_ name: String) -> String? { request.fields[name] }

    /// The API version of the request, which selects the form of an error.
    var version: String? { field("X-Supabase-Api-Version") }

    /// The client's address, as proxies report it.
    var address: String { field("X-Forwarded-For")?.split(separator: ",").first.map(String.init) ?? "127.0.0.1" }

    /// The token of `Authorization: Bearer …`, whatever the scheme's letter case.
    var bearer: String? {
        guard let line = field("Authorization") else { return nil }
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercased() == "bearer", !words[1].isEmpty else { return nil }
        return String(words[1])
    }

    /// Where the user is redirected in the end.
    var redirectTarget: String {
        let rules = settings.redirectRules
        let asked = field("redirect_to") ?? query("redirect_to") ?? ""
        if rules.accepts(asked) { return asked }
        let referrer = field("Referer") ?? ""
        return rules.accepts(referrer) ? referrer : settings.siteURL
    }

    /// The JSON body, which needs no `Content-Type`.
    func body() throws(SupabaseErrorResponse) -> SupabaseBody {
        let value: JSON
        do {
            value = try JSON(parsing: request.body)
        } catch {
            let reason = request.body.isEmpty ? "unexpected end of JSON input" : "\(error)"
            throw SupabaseErrorResponse(400, "bad_json", "Could not parse request body as JSON: \(reason)")
        }
        guard let members = value.object else {
            throw SupabaseErrorResponse(400, "bad_json", "Could not parse request body as JSON: it is not an object")
        }
        return SupabaseBody(members: members)
    }
}

/// The members of a JSON body. A wrong type refuses the request, an absent member counts as empty.
struct SupabaseBody {
    var members: JSONObject

    func text(_ name: String) throws(SupabaseErrorResponse) -> String {
        guard let value = members[name], value != .null else { return "" }
        guard let text = value.string else { throw mistake(name, "string") }
        return text
    }

    func flag(_ name: String) throws(SupabaseErrorResponse) -> Bool? {
        guard let value = members[name], value != .null else { return nil }
        guard let flag = value.bool else { throw mistake(name, "bool") }
        return flag
    }

    func object(_ name: String) throws(SupabaseErrorResponse) -> JSONObject? {
        guard let value = members[name], value != .null else { return nil }
        guard let object = value.object else { throw mistake(name, "map") }
        return object
    }

    private func mistake(_ name: String, _ type: String) -> SupabaseErrorResponse {
        SupabaseErrorResponse(
            400, "bad_json",
            "Could not parse request body as JSON: json: cannot unmarshal \(name) into a value of type \(type)")
    }

    /// A challenge and its method, both or neither.
    func challenge() throws(SupabaseErrorResponse) -> SupabaseChallenge? {
        try SupabaseChallenge(
            value: text("code_challenge"), method: text("code_challenge_method"), isBrowserRequest: false)
    }
}

/// The PKCE challenge with which a flow begins (RFC 7636).
struct SupabaseChallenge: Equatable {
    let value: String
    let isPlain: Bool

    /// Nil without a challenge.
    init?(value: String, method: String, isBrowserRequest: Bool) throws(SupabaseErrorResponse) {
        if value.isEmpty, method.isEmpty { return nil }
        guard !value.isEmpty, !method.isEmpty else {
            throw .validation("PKCE flow requires code_challenge_method and code_challenge")
        }
        guard ["s256", "plain"].contains(method.lowercased()) else {
            // The endpoints that send mail do not handle an unknown method.
            guard isBrowserRequest else { throw .failure }
            throw .validation("Invalid code_challenge_method")
        }
        guard (43...128).contains(value.utf8.count) else {
            throw .validation("code challenge has to be between 43 and 128 characters")
        }
        guard value.utf8.allSatisfy(\.isUnreserved) else {
            throw .validation(
                "code challenge can only contain alphanumeric characters, hyphens, periods, underscores and tildes")
        }
        self.value = value
        isPlain = method.lowercased() == "plain"
    }

    func isMet(by verifier: String) -> Bool {
        value == (isPlain ? verifier : Base64URL.encode(Digest.sha256(verifier)))
    }
}
