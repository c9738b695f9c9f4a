internal import Encodings
internal import HTTPMessages
internal import Secrets
internal import StrictJSON

/// The clients that an issuer knows, and how they prove who they are (RFC 6749 sections 2.3 and 3.2.1).
struct Clients {
    private(set) var all: [SandboxClient]
    private var assertions = ClientAssertions()

    init(_ clients: [SandboxClient]) {
        all = clients
    }

    subscript(id: String) -> SandboxClient? {
        all.first { $0.id == id } ?? [AuthorizationServer.projectClient].first { $0.id == id }
    }

    /// A client with the id of another one replaces it.
    mutating func add(_ client: SandboxClient) {
        remove(client.id)
        all.append(client)
    }

    mutating func remove(_ id: String) {
        all.removeAll { $0.id == id }
    }

    /// The client, if it authenticated with the method, and only the method, that it is registered with.
    mutating func authenticate(
        _ request: SandboxRequest, _ parameters: Parameters, _ issuer: String, at now: Int
    ) throws(ErrorResponse) -> SandboxClient {
        let lines = request.fields[all: "Authorization"]
        guard let header = lines.first else {
            guard let assertion = parameters["client_assertion"] else { return try authenticateByForm(parameters) }
            return try assertions.client(assertion, parameters, among: all, issuer, at: now)
        }
        guard parameters["client_assertion"] == nil else {
            throw ErrorResponse("invalid_request", "the client authenticates in two ways")
        }
        guard lines.count == 1 else { throw ErrorResponse("invalid_request", "Authorization is repeated") }
        guard parameters["client_secret"] == nil else {
            throw ErrorResponse("invalid_request", "the client authenticates in two ways")
        }
        let failure = ErrorResponse(
            "invalid_client", "the client is not known by this secret", status: 401, challenge: "Basic")
        guard let (id, secret) = Clients.basicCredentials(header) else { throw failure }
        if let named = parameters["client_id"], named != id {
            throw ErrorResponse("invalid_request", "client_id is another client's")
        }
        guard let client = self[id], client.authentications.contains(.basic), client.secret == Secret(secret) else {
            throw failure
        }
        return client
    }

    private func authenticateByForm(_ parameters: Parameters) throws(ErrorResponse) -> SandboxClient {
        let failure = ErrorResponse("invalid_client", "the client is not known, or not by this secret", status: 401)
        guard let id = parameters["client_id"], let client = self[id] else { throw failure }
        if let secret = parameters["client_secret"] {
            guard client.authentications.contains(.post), client.secret == Secret(secret) else { throw failure }
        } else {
            guard client.authentications.contains(.none) else { throw failure }
        }
        return client
    }

    /// The client of a request for a service's token. With an assertion it need neither authenticate nor name itself
    /// (RFC 7521 section 4.1).
    mutating func authenticateService(
        _ request: SandboxRequest, _ parameters: Parameters, _ issuer: String, at now: Int
    ) throws(ErrorResponse) -> SandboxClient {
        let isByAssertion = Issuer.assertionGrants.contains(parameters["grant_type"] ?? "")
        let isNamed =
            request.fields.contains("Authorization") || parameters["client_id"] != nil
            || parameters["client_assertion"] != nil
        if isByAssertion, !isNamed { return SandboxClient(id: "") }
        return try authenticate(request, parameters, issuer, at: now)
    }

    /// Id and secret are encoded as in a form before they are joined (RFC 6749 section 2.3.1).
    private static func basicCredentials(_ header: String) -> (String, String)? {
        let words = header.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2, words[0].lowercased() == "basic", let bytes = Base64.decode(words[1]),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        guard let id = decode(bytes[..<colon]), let secret = decode(bytes[(colon + 1)...]) else { return nil }
        return (id, secret)
    }

    private static func decode(_ piece: ArraySlice<UInt8>) -> String? {
        let pairs = try? FormEncoding.parse(Array("v=".utf8) + piece)
        return pairs?.count == 1 ? pairs?.first?.value : nil
    }
}
