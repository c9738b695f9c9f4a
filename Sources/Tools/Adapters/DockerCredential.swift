public import RingbackBase

/// The protocol of Docker's credential helpers, which docker, podman and skopeo run: an action as the program's argument,
/// a server's URL on standard input, JSON as the answer. An error is a text on standard output and status 1.
public struct DockerCredential: Sendable, Equatable {
    public enum Action: String, Sendable, CaseIterable {
        case get
        /// The tool has a password to store. Ringback stores none.
        case store
        /// `docker logout`. There is nothing to remove.
        case erase
        case list
        case version
    }

    /// In bytes.
    public static let maxInput = 65_536
    /// The texts by which tools recognize that a helper has no credential for a server, and an input without a server.
    public static let notFound = "credentials not found in native keychain"
    static let noServer = "no credentials server URL"
    /// The answer to ``Action/store``.
    public static let storesNothing =
        "Ringback stores no passwords for registries. It gives the token of the account that the configuration names."

    let server: String
    public let request: AdapterRequest

    /// Reads the input of ``Action/get``: a URL, or a host with an optional port and path. Without a scheme it is https.
    public init(reading input: [UInt8]) throws(AdapterFailure) {
        guard input.count <= DockerCredential.maxInput else { throw AdapterFailure("The server's URL is too long.") }
        var line = input[...]
        if line.last == UInt8(ascii: "\n") { line.removeLast() }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        guard !line.isEmpty else { throw AdapterFailure(DockerCredential.noServer) }
        // `WebURL` refuses these too. Here they are refused before the bytes become text.
        guard line.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw AdapterFailure("The server's URL has characters that no URL has.")
        }
        server = String(decoding: line, as: UTF8.self)
        let text = server.contains("://") ? server : "https://\(server)"
        guard let url = WebURL.server(text), url.query == nil, url.fragment == nil else {
            throw AdapterFailure("The server's URL is not valid.")
        }
        request = AdapterRequest(url: text, username: nil)
    }

    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let answer: JSONObject = [
            "ServerURL": server, "Username": try credential.basicUsername(), "Secret": credential.secret,
        ]
        return answer.line
    }

    /// The answer to ``Action/list``: servers with their user names.
    ///
    /// - Parameter origins: the patterns of the table of origins with the user names that it states. Those that are no
    ///   web servers are left out.
    public static func list(_ origins: [(pattern: OriginPattern, username: String?)]) -> [UInt8] {
        var servers = JSONObject()
        for (pattern, username) in origins where ["https", "http"].contains(pattern.scheme) {
            servers[String(pattern.text.dropLast(2))] = .string(username ?? AdapterCredential.usualName)
        }
        return servers.line
    }

    public static func version(_ version: String) -> [UInt8] {
        Array("docker-credential-ringback (ringback) \(version)\n".utf8)
    }
}
