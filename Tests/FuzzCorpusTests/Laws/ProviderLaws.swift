import Cryptography
import OAuth
import RingbackBase

private func isLater(_ status: Int) -> Bool { status >= 500 || [408, 425, 429].contains(status) }

private func hold(_ error: OAuthError, _ status: Int) throws {
    switch error {
    case .refused(let refusal):
        try hold("a server in trouble refuses nothing", !isLater(status))
        try hold(refusal)
    case .unavailable(_, _, let seconds): try hold("a wait has an end", (0...86_400).contains(seconds ?? 0))
    case .failing(let refusal, let seconds):
        try hold("a server that fails says so with its status", status >= 500)
        try hold(refusal)
        try hold("a wait has an end", (0...86_400).contains(seconds ?? 0))
    case .invalid, .misconfigured, .invalidIDToken, .otherSubject: break
    }
}

private func hold(_ refusal: OAuthError.ErrorResponse) throws {
    try hold("an error's code is printable ASCII", refusal.code.isPrintableASCII)
    try hold("an error's text is one visible line", refusal.message?.isVisibleLine != false)
    try hold("an error's words are short", refusal.code.count <= 64 && (refusal.message ?? "").count <= 300)
}

/// The laws of a place that a server names: it is no place of this machine unless the server is here.
func hold(_ text: String, namedBy home: WebURL) throws {
    let url = try WebURL(parsing: text)
    try hold("secrets may go to a place", url.isSecure && url.fragment == nil)
    try hold("a place at home needs a server at home", !url.isLoopback || home.isLoopback)
    let last = url.host?.split(separator: ".").last?.utf8.first ?? 0
    let isAddress = url.host?.contains(":") == true || (0x30...0x39).contains(last)
    let isNear = url.host == home.host || (url.isLoopback && home.isLoopback)
    try hold("an address is the server's own", !isAddress || isNear)
}

/// Metadata documents. The first line of an input is the configured issuer, the rest the document: it speaks for that
/// issuer alone, and names no place that secrets must not go to.
enum MetadataLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let issuer = line.isEmpty ? "https://id.example.org/realms/main" : line
        if let requests = try? ProviderMetadata.discoveryRequests(issuer: issuer) {
            for request in requests {
                let url = try WebURL(parsing: request.url)
                try hold("the issuer's own host is asked", url.origin == (try WebURL(parsing: issuer)).origin)
                try hold("nothing but a place is asked for", url.query == nil && url.fragment == nil && url.isSecure)
            }
        }
        let response = HTTPResponse(status: 200, body: Secret(bytes: body))
        guard let metadata = try? ProviderMetadata(parsing: response, issuer: issuer) else { return }
        let home = try WebURL(parsing: issuer)
        guard let document = try? JSON(parsing: body) else { return }
        try hold("the issuer stays as configured", metadata.issuer == issuer)
        try hold("tokens name what the document states", metadata.idTokenIssuer == document["issuer"]?.string)
        if metadata.idTokenIssuer?.contains("{tenantid}") != true {
            try hold("a document speaks for its issuer", metadata.idTokenIssuer == issuer)
        }
        let endpoints = [
            metadata.authorizationEndpoint, metadata.tokenEndpoint, metadata.jwksURI, metadata.userinfoEndpoint,
            metadata.revocationEndpoint, metadata.endSessionEndpoint, metadata.deviceAuthorizationEndpoint,
            metadata.pushedAuthorizationRequestEndpoint, metadata.registrationEndpoint,
        ]
        for endpoint in endpoints.compactMap(\.self) where !endpoint.isEmpty { try hold(endpoint, namedBy: home) }
        if (try? metadata.checkAuthorizationRequests()) != nil {
            try hold("S256 is offered, or nothing is said", metadata.codeChallengeMethods?.contains("S256") != false)
        }
        try hold("it has nothing to add to itself", metadata.completed(by: metadata) == metadata)
    }
}

/// Token answers. The first line of an input is the answer's status with words for its kind (`form`, `html`, `cut`); the
/// rest is the body. What is saved from a broken answer is what the whole one says, or nothing.
enum TokenAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (status, words, body) = bytes.response()
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
            try hold(error, status)
            if case .refused(let refusal) = error, refusal.endsGrant {
                try hold("a session ends by these words alone", [200, 400, 401, 403].contains(status))
            }
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
        case .failure(let error): try hold(error, status)
        }
        switch Result(catching: { () throws(OAuthError) in try RevocationOutcome(parsing: response) }) {
        case .success(let outcome):
            try hold("a success is one", outcome == .revoked || !(200..<300).contains(status))
            try hold("a server in trouble has revoked nothing", !isLater(status) && !(300..<400).contains(status))
        case .failure(let error):
            try hold("what succeeded is no error", !(200..<300).contains(status))
            try hold(error, status)
        }
    }

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
}

/// Answers to a registration. The first line of an input is the status, and `public` for a client that asked to be one.
/// What manages the registration is found in broken answers too, and is sent to the provider alone.
enum RegistrationAnswerLaw {
    private static let issuer = "https://id.example.org/realms/main"

    static func check(_ bytes: [UInt8]) throws {
        let (status, words, body) = bytes.response(status: 201)
        let response = HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(bytes: body))
        let request = try ClientRegistrationRequest(
            redirectTemplate: "http://127.0.0.1:{port}/callback/work", scopes: ["openid"],
            authentication: words.contains("public") ? .none : .clientSecretBasic)
        guard let answer = try? RegistrationResponse(reading: response, issuer: issuer) else { return }
        try hold("only a success registers", (200..<300).contains(status))
        let object = (try? JSON(parsing: body))?.object
        if let management = answer.management {
            let token = management.token.revealed()
            try hold("a management token is one word", token.isPrintableASCII && !token.isEmpty && !token.contains(" "))
            if let object {
                try hold("a management token is the member", object["registration_access_token"]?.string == token)
            }
            if let uri = management.uri {
                let url = try WebURL(parsing: uri)
                try hold("it is sent encrypted", url.scheme == "https")
                try hold("it is sent to no address of this machine", !url.isLoopback)
            }
        }
        guard let client = try? answer.client(asked: request) else { return }
        try hold("a client is the member", object?["client_id"]?.string == client.clientID)
        try hold("a client is not too long", (1...1_024).contains(client.clientID.utf8.count))
        if let secret = client.secret {
            try hold("a secret is the member", object?["client_secret"]?.string == secret.revealed())
            try hold("a secret breaks out of no header", secret.revealed().isPrintableASCII)
            try hold("a public client keeps no secret", client.authentication != .none)
        } else {
            try hold("without a secret a client is public", client.authentication == .none)
        }
        try hold("an end is a time", (1...253_402_300_799).contains(client.secretExpiresAt ?? 1))
    }
}

/// Answers to a device's requests. The first line of an input is the status, and `here` for a provider on this machine;
/// the rest is read as the codes and as the answer to a question. What a person is shown can be typed and opened, and
/// leads nobody home; "not yet" is never read out of an answer that has tokens.
enum DeviceAnswerLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (status, words, body) = bytes.response()
        let isHere = words.contains("here")
        let response = HTTPResponse(
            status: status, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(bytes: body))
        let endpoint = isHere ? "http://127.0.0.1:8080/device_authorization" : "https://id.example.org/device"
        if let codes = try? DeviceAuthorization(parsing: response, from: endpoint) {
            try hold("only a success has codes", (200..<300).contains(status))
            try check(codes, isHere: isHere)
        }
        guard case .waiting(let event)? = try? DeviceTokenResponse(reading: response) else { return }
        try hold("a server that is down says nothing", status < 500)
        let object = try JSON(parsing: body).object
        try hold("tokens are not waited for", object?["access_token"] == nil && object?["refresh_token"] == nil)
        let word = object?["error"]?.string
        switch event {
        case .pending: try hold("it says so", word == "authorization_pending")
        case .slowDown: try hold("it says so", word == "slow_down")
        case .unanswered: try hold("an answer is one", false)
        }
    }

    private static func check(_ codes: DeviceAuthorization, isHere: Bool) throws {
        try hold("the device code is printable", codes.deviceCode.revealed().isPrintableASCII)
        let userCode = codes.userCode
        try hold("a code can be typed", userCode.isPrintableASCII && (1...32).contains(userCode.utf8.count))
        try hold("no code is markup", !userCode.contains { "<>&\"'%=/\\".contains($0) })
        for address in [codes.verificationURI, codes.verificationURIComplete].compactMap(\.self) {
            let url = try WebURL(parsing: address)
            try hold("a page is safe to open", url.isSecure && address.utf8.count <= 2_048)
            try hold("a page at home needs a provider at home", !url.isLoopback || isHere)
        }
        try hold("codes live for a while", (1...1_800).contains(codes.expiresIn))
        try hold("nobody asks more often than every five seconds", codes.interval >= 5)
        try hold("an interval is not longer than the life", codes.interval <= max(5, codes.expiresIn))
    }
}

/// A person's claims. The first line of an input is the answer's status, with the word `signed` where an issuer of our
/// own signs the rest; the rest are the claims. They are the person's of the ID token or nobody's.
enum UserinfoLaw {
    private static let issuer = "https://id.example.org/realms/main"
    private static let now = 1_800_000_000

    static func check(_ bytes: [UInt8]) throws {
        let (status, words, body) = bytes.response()
        if words.contains("signed") { return try checkSigned(body) }
        let fields = HTTPFields([("Content-Type", "application/json")])
        let response = HTTPResponse(status: status, fields: fields, body: Secret(bytes: body))
        try hold("what is not signed is not read as signed", Userinfo.signedToken(in: response) == nil)
        let open = try? Userinfo(parsing: response, subject: nil)
        let bound = try? Userinfo(parsing: response, subject: "ann")
        if let open {
            try hold("only a success has claims", status == 200)
            try hold("the claims are the body", JSON(parsing: body).object == open.claims)
            try hold("the subject is the claim", open.claims["sub"]?.string == open.subject)
            try hold("a subject is 1 to 255 bytes", (1...255).contains(open.subject?.utf8.count ?? 1))
        }
        let isAnn = open?.subject.map { $0.utf8.elementsEqual("ann".utf8) } ?? false
        try hold("a person's claims are that person's", bound == (isAnn ? open : nil))
    }

    private static func checkSigned(_ claims: [UInt8]) throws {
        let token = try IDTokenLaw.issuer.token(Array(#"{"alg":"EdDSA"}"#.utf8), claims)
        let keys = try IDTokenLaw.issuer.keys()
        var expected = IDTokenExpectations(
            issuer: issuer, clientID: "ringback", now: now, allowedAlgorithms: [.edDSA])
        expected.subject = "ann"
        func read(_ token: [UInt8], _ keys: JSONWebKeySet) -> Userinfo? {
            try? Userinfo(verifying: Secret(bytes: token), keys: keys, expecting: expected)
        }
        guard let userinfo = read(token, keys) else { return }
        let object = try JSON(parsing: claims)
        func isText(_ claim: String, _ text: String) -> Bool {
            object[claim]?.string.map { $0.utf8.elementsEqual(text.utf8) } ?? false
        }
        try hold("the claims are what was signed", JSON.object(userinfo.claims) == object)
        try hold("the subject is ours", isText("sub", "ann") && userinfo.subject == "ann")
        try hold("the issuer is ours", isText("iss", issuer))
        let audience = object["aud"]?.array?.compactMap(\.string) ?? [object["aud"]?.string].compactMap(\.self)
        try hold("they are for us", audience.contains { $0.utf8.elementsEqual("ringback".utf8) })
        try hold("without a key they are nobody's", read(token, JSONWebKeySet(json: ["keys": []])) == nil)
        for index in stride(from: 0, to: token.count, by: max(1, token.count / 8)) {
            var forged = token
            forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            try hold("no change is believed", read(forged, keys) == nil)
        }
        expected.clientID = "another"
        try hold("another client reads what is for it too", read(token, keys) == nil || audience.contains("another"))
        expected.allowedAlgorithms = [.rs256]
        try hold("the header chooses no algorithm", read(token, keys) == nil)
    }
}
