public import HTTPMessages

extension OAuthError {
    /// The code of an error response that has a text and no code.
    public static let unspecified = "unspecified_error"

    /// The text for people in an error response whose form is not OAuth's, checked; nil if there is none.
    public static func statedText(in response: HTTPResponse) -> String? {
        guard !response.isTruncated, let object = try? ResponseReader.object(in: response, of: .token) else {
            return nil
        }
        return ResponseReader.statedText(in: object)
    }

    /// True if an error text says that the server does not know the client, such as "Client not found" or "invalid
    /// client_id".
    public static func saysClientIsUnknown(_ text: String) -> Bool {
        let words = text.lowercased().split { !$0.isLetter && !$0.isNumber && $0 != "_" }.map(String.init)
        return words.indices.contains { place in
            guard words[place].hasPrefix("client") else { return false }
            let before = words[..<place].suffix(2)
            let after = words[(place + 1)...].prefix(6).prefix { !otherThings.contains($0) }
            return before.contains { adjectives.contains($0) } || after.contains { adjectives.contains($0) }
                || zip(after, after.dropFirst()).contains { denials.contains($0) && verbs.contains($1) }
        }
    }

    private static let adjectives: Set = [
        "unknown", "invalid", "unrecognized", "unrecognised", "unregistered", "nonexistent", "deleted", "such",
        "find", "recognize", "recognise",
    ]
    private static let denials: Set = ["not", "t", "no", "be"]
    private static let verbs: Set = ["found", "exist", "exists", "registered", "recognized", "recognised", "known"]
    /// What follows is not about the client itself.
    private static let otherThings: Set = [
        "token", "grant", "code", "scope", "scopes", "redirect", "redirect_uri", "uri", "authentication",
        "credentials", "secret", "assertion", "for",
    ]

    /// True if the response to a well-formed authorization request is an error about the client or its redirect URI:
    /// status 400 or 401, or a redirect whose parameters or a body whose text say that the client is unknown.
    public static func rejectsAuthorization(in response: HTTPResponse) -> Bool {
        if [400, 401].contains(response.status) { return true }
        if (300..<400).contains(response.status) {
            let query = response.fields["Location"].flatMap { $0.split(separator: "?", maxSplits: 1).dropFirst().first }
            let pairs = query.flatMap { try? FormEncoding.parse($0.prefix { $0 != "#" }.utf8) } ?? []
            return pairs.contains { pair in
                (pair.name == "error" && ["invalid_client", "unauthorized_client"].contains(pair.value))
                    || (pair.name.hasPrefix("error") && saysClientIsUnknown(pair.value))
            }
        }
        guard (400..<500).contains(response.status), ResponseReader.mediaType(of: response) != "text/html" else {
            return false
        }
        return rejectsClient(in: response) || statedText(in: response).map(saysClientIsUnknown) == true
    }

    /// True if the response of an endpoint that authenticates clients rejects the client (RFC 6749 section 5.2): status
    /// 401, or an error with one of these codes at a status below 500.
    public static func rejectsClient(
        in response: HTTPResponse, codes: Set<String> = ["invalid_client", "incorrect_client_credentials"]
    ) -> Bool {
        if response.status == 401 { return true }
        guard (200..<500).contains(response.status), let object = try? ResponseReader.tokenObject(in: response),
            let errorResponse = try? ResponseReader.errorResponse(in: object, status: response.status, of: .token)
        else { return false }
        return codes.contains(errorResponse.code)
    }
}
