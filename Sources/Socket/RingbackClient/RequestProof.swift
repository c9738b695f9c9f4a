package import RingbackAPI
package import RingbackBase

/// A request to a server of an account, for which its token is wanted, and a proof if the token is bound to a key
/// (`POST /v1/accounts/{account}/proof`).
package struct ProofRequest: Sendable {
    package let method: String
    package let url: String
    /// The last `DPoP-Nonce` of the server.
    package var nonce: String?

    package init(method: String, url: String, nonce: String? = nil) {
        (self.method, self.url, self.nonce) = (method, url, nonce)
    }

    package var body: JSON { .object(["method": method, "url": url, "nonce": nonce]) }
}

extension BrokerCalls {
    package func proof(_ request: ProofRequest, of account: String) throws(RingbackError) -> JSON {
        // The daemon limits the wait itself. The seconds beyond that are for a daemon that hangs.
        try call(.makeProof, [account], body: request.body, timeout: .seconds(35))
    }
}
