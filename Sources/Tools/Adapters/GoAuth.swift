internal import HTTPMessages

/// The protocol of the go command's GOAUTH (`go help goauth`, Go 1.24 and later): a URL as the program's argument, the
/// server's response on standard input, URLs with header fields as the answer. go first runs the program without a URL;
/// then nothing is answered, so a token is given only where a server asks for one.
public struct GoAuth: Sendable, Equatable {
    /// The most bytes of the response that are read.
    public static let maxInput = 1 << 20

    public let request: AdapterRequest
    /// The argument.
    private let url: String
    /// True if the server says that it refused a token (RFC 6750 section 3.1). Each go command's first request has none,
    /// and a 401 without `invalid_token` is the response to that.
    public let isRefused: Bool

    /// - Parameters:
    ///   - url: the argument.
    ///   - response: the status line and the header fields of the server's response.
    /// - Throws: for what go does not write: a URL that is not https, a line that is no field.
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
            if challenge.contains("bearer"),
                challenge.contains(#"error="invalid_token""#) || challenge.contains("error=invalid_token")
            {
                isRefused = true
            }
        }
        return isRefused && words[1].elementsEqual("401".utf8)
    }

    /// The rejection of the token that the daemon gives now. go does not say which one it sent.
    public func rejection(of credential: AdapterCredential) -> AdapterRequest {
        AdapterRequest(
            url: request.url, username: nil, rejected: SHA256.hex(Array(credential.secret.utf8)), isGuess: true)
    }

    /// The answer: the fields for this URL and everything below it. go compares with the query, so both forms are named.
    ///
    /// - Throws: for a token or a field that would add a line.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let fields = try credential.fields().map { "\($0.name): \($0.value)\n" }
        let urls = url == request.url ? [url] : [url, request.url]
        return Array("\(urls.joined(separator: "\n"))\n\n\(fields.joined())\n".utf8)
    }
}
