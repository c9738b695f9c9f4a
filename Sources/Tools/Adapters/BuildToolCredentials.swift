internal import RingbackBase

/// The protocol of credential helpers that Bazel and other build tools run (the credential-helper-spec of EngFlow): the
/// word `get`, a URI as JSON on standard input, header fields as JSON. An error is a text on standard error and a status.
public struct BazelCredential: Sendable, Equatable {
    /// In bytes.
    public static let maxInput = 65_536

    public let request: AdapterRequest

    /// Reads the input of `get`. Members that are not known are left out, as the protocol says. Throws for input that
    /// is no JSON object, has a member twice or no URI of a web server.
    public init(reading input: [UInt8]) throws(AdapterFailure) {
        let json = try AdapterRequest.json(input, atMost: BazelCredential.maxInput, named: "The request")
        guard let uri = json["uri"]?.string else { throw AdapterFailure("The request has no member “uri”.") }
        request = try AdapterRequest(web: uri)
    }

    /// The answer: each field with its values, and until when they may be kept.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        var headers = JSONObject()
        for (name, value) in try credential.fields() {
            headers[name] = .array((headers[name]?.array ?? []) + [.string(value)])
        }
        let answer: JSONObject = ["headers": headers, "expires": credential.expiresAt.map(Timestamp.text)]
        return answer.line
    }
}

/// The protocol of cargo's credential providers, version 1 (cargo 1.74 and later): lines of JSON. The provider says which
/// versions it knows, and answers each request with a line.
public struct CargoCredential: Sendable, Equatable {
    /// In bytes.
    public static let maxLine = 65_536
    /// What the provider says first.
    public static let hello = Array(#"{"v":[1]}"#.utf8) + [0x0A]

    /// Why there is no token, as the protocol names it.
    public enum Refusal: Error, Sendable, Equatable {
        /// No origin is configured for the registry, or its URL is not one that a token may be sent to. cargo asks
        /// the next provider.
        case urlNotSupported
        /// `cargo login`, `cargo logout` and what later versions add. cargo asks no other provider.
        case operationNotSupported
        case other(String)
    }

    public let request: AdapterRequest
    /// False for `cargo login`, `cargo logout` and what later versions add.
    public let wantsToken: Bool

    /// Throws for a request that is answered without a token.
    public init(reading line: [UInt8]) throws(Refusal) {
        let json: JSON
        do throws(AdapterFailure) {
            json = try AdapterRequest.json(line, atMost: CargoCredential.maxLine, named: "The request")
        } catch {
            throw .other(error.reason)
        }
        guard json["v"]?.integer == 1 else {
            throw .other("The request has a version of the protocol that is not known.")
        }
        wantsToken = json["kind"] == "get"
        guard let index = json["registry"]?["index-url"]?.string else { throw .other("The request names no registry.") }
        let url = index.hasPrefix("sparse+") ? String(index.dropFirst("sparse+".count)) : index
        do throws(AdapterFailure) {
            request = try AdapterRequest(web: url)
        } catch {
            throw .urlNotSupported
        }
    }

    /// The answer with a token, which cargo sends as it is in the field `Authorization`.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let answer: JSONObject = [
            "kind": "get", "token": try credential.authorization(for: "cargo"),
            "cache": credential.expiresAt == nil ? "session" : "expires", "expiration": credential.expiresAt,
            "operation_independent": true,
        ]
        return (["Ok": answer] as JSONObject).line
    }

    public static func answer(_ refusal: Refusal) -> [UInt8] {
        let error: JSON =
            switch refusal {
            case .urlNotSupported: ["kind": "url-not-supported"]
            case .operationNotSupported: ["kind": "operation-not-supported"]
            case .other(let text): ["kind": "other", "message": .string(text), "caused-by": []]
            }
        return (["Err": error] as JSONObject).line
    }
}

/// The protocol of the credentials helpers of Terraform and OpenTofu: an action and a host as arguments, JSON on standard
/// output. An error is a text on standard error and a status.
public struct TerraformCredential: Sendable, Equatable {
    public enum Action: String, Sendable, CaseIterable {
        case get
        /// `terraform login`. Ringback stores no token.
        case store
        /// `terraform logout`. There is nothing to remove.
        case forget
    }

    /// Of what is to be stored, in bytes.
    public static let maxInput = 65_536
    /// The answer for a host that has no token.
    public static let none = Array("{}\n".utf8)

    public let request: AdapterRequest

    /// - Parameter host: a host, with a port where it is not 443.
    public init(host: String) throws(AdapterFailure) {
        let isHost = host.utf8.allSatisfy { $0.isLetterOrDigit || "-.:[]".utf8.contains($0) }
        guard !host.isEmpty, isHost else { throw AdapterFailure("The host has characters that no host has.") }
        request = try AdapterRequest(web: "https://\(host)/")
    }

    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        (["token": try credential.bearer(for: "Terraform")] as JSONObject).line
    }
}

/// The protocol of the go command's GOAUTH (`go help goauth`, Go 1.24 and later): a URL as the program's argument, the
/// server's response on standard input, URLs with header fields as the answer. go first runs the program without a URL;
/// then nothing is answered, so a token is given only where a server asks for one.
public struct GoAuth: Sendable, Equatable {
    /// Of the response, in bytes.
    public static let maxInput = 1 << 20

    public let request: AdapterRequest
    private let url: String
    /// True if the server says that it refused a token (RFC 6750 section 3.1). Each go command's first request has none,
    /// and a 401 without `invalid_token` is the response to that.
    public let isRefused: Bool

    /// Throws for what go does not write: a URL that is not https, a line that is no field.
    ///
    /// - Parameter response: the status line and the header fields of the server's response.
    public init(url: String, response: [UInt8]) throws(AdapterFailure) {
        let asked = try AdapterRequest(web: url)
        guard asked.url.hasPrefix("https://") else { throw AdapterFailure("go sends tokens to https only.") }
        guard response.count <= GoAuth.maxInput else { throw AdapterFailure("The server's response is too long.") }
        request = asked
        self.url = url
        isRefused = try GoAuth.isRefused(response)
    }

    private static func isRefused(_ response: [UInt8]) throws(AdapterFailure) -> Bool {
        var lines = response.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
            line.last == 0x0D ? line.dropLast() : line
        }[...]
        guard let status = lines.popFirst(), !status.isEmpty else { return false }
        let words = status.split(separator: 0x20, maxSplits: 2)
        guard words.count >= 2, words[0].starts(with: "HTTP/".utf8), words[1].count == 3,
            words[1].allSatisfy({ (0x30...0x39).contains($0) })
        else { throw AdapterFailure("The server's response does not begin with a status line.") }
        var isRefused = false
        for line in lines {
            guard !line.isEmpty else { break }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
                throw AdapterFailure("A line of the server's response is no header field.")
            }
            guard String(decoding: line[..<colon], as: UTF8.self).lowercased() == "www-authenticate" else { continue }
            let challenge = String(decoding: line[(colon + 1)...], as: UTF8.self).lowercased()
            let isInvalid = challenge.contains(#"error="invalid_token""#) || challenge.contains("error=invalid_token")
            isRefused = isRefused || challenge.contains("bearer") && isInvalid
        }
        return isRefused && words[1].elementsEqual("401".utf8)
    }

    /// The rejection of the token that the daemon gives now. go does not say which one it sent.
    public func rejection(of credential: AdapterCredential) -> AdapterRequest {
        AdapterRequest(
            url: request.url, username: nil, rejected: SHA256.hex(Array(credential.secret.utf8)), isGuess: true)
    }

    /// The answer: the fields for this URL and everything below it. go compares with the query, so both forms are named.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let fields = try credential.fields().map { "\($0.name): \($0.value)\n" }
        let urls = url == request.url ? [url] : [url, request.url]
        return Array("\(urls.joined(separator: "\n"))\n\n\(fields.joined())\n".utf8)
    }
}

/// pnpm's `tokenHelper`: a program without arguments, whose output is the value of the field `Authorization`. The registry
/// is in the program's name, since pnpm says it in no other way, and its scheme in none: `pnpm-ringback-npm.example.org`, with a port
/// `pnpm-ringback-npm.example.org:8443`, and with a path `pnpm-ringback-npm.example.org%2Fteam`.
public struct PnpmToken: Sendable, Equatable {
    public static let prefix = "pnpm-ringback-"

    public let request: AdapterRequest

    /// - Parameter name: the program's name, without its directory.
    public init(program name: String) throws(AdapterFailure) {
        let registry = name.dropFirst(PnpmToken.prefix.utf8.count)
        let place = registry.replacing("%2F", with: "/").replacing("%2f", with: "/")
        guard name.hasPrefix(PnpmToken.prefix), !registry.isEmpty, !place.hasPrefix("/"), !registry.contains("/"),
            !place.contains("@")
        else { throw AdapterFailure("The program's name says no registry.") }
        request = try AdapterRequest(withoutScheme: String(place))
    }

    /// The answer. Older versions of pnpm send it as it is; newer ones add `Bearer` only to a token without a scheme.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        Array("\(try credential.authorization(for: "pnpm"))\n".utf8)
    }
}

public enum TokenLine {
    /// A line of a netrc file, without a line break. Throws for a character that the readers of such files understand
    /// in different ways: a quote, a backslash, a byte outside 0x21 to 0x7E, or a number sign at the start.
    public static func netrc(host: String, user: String, token: String) throws(AdapterFailure) -> String {
        for (word, what) in zip([host, user, token], ["host", "user name", "token"]) {
            let isPlain = !word.isEmpty && word.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            guard isPlain, !word.contains(where: { "\"'\\".contains($0) }), !word.hasPrefix("#") else {
                throw AdapterFailure(
                    "The \(what) has a character that programs read from a netrc file in different ways.")
            }
        }
        return "machine \(host) login \(user) password \(token)"
    }

    /// An assignment to a variable, for a POSIX shell, without a line break.
    public static func assignment(to variable: String, _ token: String) -> String { "\(variable)=\(shellWord(token))" }

    /// The token as one word of a POSIX shell, in an assignment too.
    static func shellWord(_ token: String) -> String {
        let isPlain = token.utf8.allSatisfy { $0.isLetterOrDigit || "_-./+=:@%,".utf8.contains($0) }
        return isPlain ? token : "'" + token.replacing("'", with: #"'\''"#) + "'"
    }
}
