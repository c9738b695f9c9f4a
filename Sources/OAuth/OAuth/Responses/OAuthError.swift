internal import Glibc
public import RingbackBase

/// Why a provider's response cannot be used. Contains names, statuses and checked codes, never a body, URL or token.
public enum OAuthError: Error, Sendable, Equatable {
    /// The kind of response.
    public enum Response: String, Sendable {
        case metadata, keys, authorization, token, userinfo, revocation, registration
        case pushedAuthorization = "pushed authorization"
        case deviceAuthorization = "device authorization"
        case protectedResource = "protected resource metadata"
    }

    /// The response is malformed or contradicts the metadata; `reason` is our own text.
    case invalid(Response, reason: String)
    /// An ID token failed a check of OpenID Connect Core section 3.1.3.7 or 12.2; `claim` names the failed part.
    case invalidIDToken(claim: String, reason: String)
    /// An ID token, which the provider signed for this client, is of another subject than the session.
    case otherSubject
    /// An OAuth error response (RFC 6749 sections 4.1.2.1 and 5.2).
    case refused(ErrorResponse)
    /// Try later: status 408, 425, 429 or 5xx, or an error code with that meaning. `retryAfter` in seconds.
    case unavailable(Response, status: Int, retryAfter: Int?)
    /// Try later: status 5xx with an OAuth error. `retryAfter` in seconds.
    case failing(ErrorResponse, retryAfter: Int?)
    /// The configuration does not fit this provider; `reason` is our own text.
    case misconfigured(reason: String)

    /// An error response with checked texts (printable ASCII, limited length).
    public struct ErrorResponse: Error, Sendable, Equatable {
        /// `invalid_grant`, `access_denied`, ...
        public let code: String
        public let message: String?
        /// The HTTP status; 0 for an authorization response.
        public let status: Int

        public init(code: String, message: String?, status: Int) {
            self.code = code
            self.message = message
            self.status = status
        }

        /// True if the grant is not valid any more. Only the token endpoint itself can prove that (RFC 6749 section
        /// 5.2; some send it with 200). An authorization response in the browser or a status that a proxy may create is
        /// no proof.
        public var endsGrant: Bool { code == "invalid_grant" && [200, 400, 401, 403].contains(status) }
    }
}

extension OAuthError {
    /// The code of an error response that has a text and no code.
    public static let unspecified = "unspecified_error"

    /// The checked text for people in an error response that does not have OAuth's form; nil if there is none.
    public static func statedText(in response: HTTPResponse) -> String? {
        guard !response.isTruncated, let object = try? ResponseReader.object(in: response, of: .token) else {
            return nil
        }
        return ResponseReader.statedText(in: object)
    }

    /// True if an error text says that the server does not know the client, such as "Client not found".
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
    /// status 400 or 401, or a text that says that the client is unknown, in a redirect or a body.
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
    /// 401 unless it refuses a proof, or an error with one of these codes at a status below 500.
    public static func rejectsClient(
        in response: HTTPResponse, codes: Set<String> = ["invalid_client", "incorrect_client_credentials"]
    ) -> Bool {
        if response.status == 401 { return DPoPRefusal(in: response) == nil }
        guard (200..<500).contains(response.status), let object = try? ResponseReader.tokenObject(in: response),
            let errorResponse = try? ResponseReader.errorResponse(in: object, status: response.status, of: .token)
        else { return false }
        return codes.contains(errorResponse.code)
    }
}

/// `Retry-After` (RFC 9110 section 10.2.3), limited to a day, so that no response can stop an account for good.
public enum RetryAfter {
    public static let longest = 86_400

    /// Seconds from now, 0...86400; nil if there is no usable value. A date is compared with the response's own `Date`,
    /// because the provider's clock may differ from ours; only without that with our clock.
    public static func seconds(in fields: HTTPFields) -> Int? {
        guard let text = fields["Retry-After"] else { return nil }
        if let date = HTTPDate.seconds(of: text) {
            let now = fields["Date"].flatMap { HTTPDate.seconds(of: $0) } ?? time(nil)
            return min(max(date - now, 0), longest)
        }
        let digits = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }
        let end = digits.firstIndex { $0 < 0x30 || $0 > 0x39 } ?? digits.endIndex
        guard end > digits.startIndex, digits[end...].allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { return nil }
        var seconds = 0
        for digit in digits[..<end] { seconds = min(seconds * 10 + Int(digit - 0x30), longest) }
        return seconds
    }
}
