internal import Cryptography
internal import HTTPMessages
internal import Secrets

/// The client at the token and revocation endpoints (RFC 6749 sections 2.3 and 3.2.1).
extension ProviderState {
    /// Reads a form request to such an endpoint. Credentials and tokens must not be in the URL.
    func formParameters(_ request: SandboxRequest) throws(ErrorResponse) -> Parameters {
        guard let form = request.form, request.isWellFormed else {
            throw ErrorResponse("invalid_request", "the body is not a form in application/x-www-form-urlencoded")
        }
        guard request.query.isEmpty else { throw ErrorResponse("invalid_request", "parameters belong into the body") }
        let parameters = Parameters(form)
        if let name = parameters.repeated.min() { throw ErrorResponse("invalid_request", "\(name) is repeated") }
        return parameters
    }

    /// The client, if it authenticated with the method, and only the method, that it is registered with.
    mutating func authenticate(
        _ request: SandboxRequest, _ parameters: Parameters, at now: Int
    ) throws(ErrorResponse) -> SandboxClient {
        let lines = request.fields[all: "Authorization"]
        guard let header = lines.first else {
            guard let assertion = parameters["client_assertion"] else { return try authenticateByForm(parameters) }
            return try authenticate(byAssertion: assertion, parameters, at: now)
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
        guard let (id, secret) = ProviderState.basicCredentials(header) else { throw failure }
        if let named = parameters["client_id"], named != id {
            throw ErrorResponse("invalid_request", "client_id is another client's")
        }
        guard let client = client(id), client.authentications.contains(.basic), client.secret == Secret(secret) else {
            throw failure
        }
        return client
    }

    private func authenticateByForm(_ parameters: Parameters) throws(ErrorResponse) -> SandboxClient {
        let failure = ErrorResponse("invalid_client", "the client is not known, or not by this secret", status: 401)
        guard let id = parameters["client_id"], let client = client(id) else { throw failure }
        if let secret = parameters["client_secret"] {
            guard client.authentications.contains(.post), client.secret == Secret(secret) else { throw failure }
        } else {
            guard client.authentications.contains(.none) else { throw failure }
        }
        return client
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
