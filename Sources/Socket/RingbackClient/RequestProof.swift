internal import RingbackAPI
package import RingbackBase

/// What one request to a server of an account carries. Descriptions and reflection leave token and proof out.
public struct RequestProof: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The value of the field `Authorization`.
    public var authorization: String
    /// The value of the field `DPoP` (RFC 9449), which the server takes once; nil for a Bearer token, which needs none.
    public var dpop: String?
    public var accessToken: String

    public var description: String { "RequestProof" }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension BrokerClient {
    /// The token of an account with a proof that it is ours, for one request to a server of the account: its MCP server, or what
    /// the table of origins in the configuration names for it.
    ///
    /// - Parameters:
    ///   - nonce: the last `DPoP-Nonce` of the server, of whatever response. A response 401 with `use_dpop_nonce` has a new
    ///     one: ask again with it.
    ///   - digest: the SHA-256, in hexadecimal digits, of a token that the server refused: it is refreshed first.
    /// - Throws: `policy_denied` for another URL, and for an endpoint of the account's issuer; otherwise as
    ///   ``session(_:minValid:timeout:scope:audience:resource:subject:signIn:)``.
    public func proof(
        _ account: String, method: String, url: String, nonce: String? = nil, rejectedSHA256 digest: String? = nil
    ) async throws(RingbackError) -> RequestProof {
        let request = ProofRequest(method: method, url: url, nonce: nonce, rejected: digest)
        return try await run { calls throws(RingbackError) in
            let answer = try calls.proof(request, of: account)
            return RequestProof(
                authorization: try answer.text("authorization", of: "proof"), dpop: answer["dpop"]?.string,
                accessToken: try answer.text("access_token", of: "proof"))
        }
    }
}

/// A request for which ``RequestProof`` is wanted (`POST /v1/accounts/{account}/proof`).
package struct ProofRequest: Sendable {
    package let method: String
    package let url: String
    /// The last `DPoP-Nonce` of the server.
    package let nonce: String?
    /// The SHA-256, in hexadecimal digits, of a token that the server refused.
    package let rejected: String?

    package init(method: String, url: String, nonce: String? = nil, rejected: String? = nil) {
        (self.method, self.url, self.nonce, self.rejected) = (method, url, nonce, rejected)
    }

    package var body: JSON {
        .object(["method": method, "url": url, "nonce": nonce, "rejected_sha256": rejected])
    }
}

extension BrokerCalls {
    package func proof(_ request: ProofRequest, of account: String) throws(RingbackError) -> JSON {
        // The daemon limits the wait itself. The seconds beyond that are for a daemon that hangs.
        try call(.makeProof, [account], body: request.body, timeout: .seconds(35))
    }
}
