import CurlTransport
import MCPBridge
import OAuth
import RingbackBase
import RingbackClient
import Synchronization

/// The last nonces of the servers for proofs (RFC 9449 section 9), by origin. They are learned from every response to a
/// request with a proof, but for one after which the request is sent again: its nonce may be good once, and is for that
/// request. A nonce that is lost costs one request more.
final class ResourceNonces: Sendable {
    private static let most = 256
    private let nonces = Mutex<[String: String]>([:])

    subscript(url: WebURL) -> String? { nonces.withLock { $0[url.origin] } }

    func learn(from fields: HTTPFields, of url: WebURL) {
        guard let stated = DPoPNonce.stated(in: fields) else { return }
        nonces.withLock { nonces in
            if nonces.count >= ResourceNonces.most { nonces = [:] }
            nonces[url.origin] = stated
        }
    }
}

/// The body of a request with a proof, as far as it was sent, as long as the request can be sent once more with another nonce.
struct RepeatableBody {
    /// Of a longer request the server's refusal is passed on.
    private static let most = 1 << 20
    private(set) var bytes: [UInt8]

    /// Nil for a body that is too long.
    init?(_ bytes: [UInt8]) {
        guard bytes.count <= RepeatableBody.most else { return nil }
        self.bytes = bytes
    }

    /// Adds a piece. False if the body is too long then.
    mutating func add(_ piece: [UInt8]) -> Bool {
        guard bytes.count + piece.count <= RepeatableBody.most else { return false }
        bytes += piece
        return true
    }
}

extension DPoPRefusal {
    /// What the head of a response says of a proof.
    init?(_ status: Int, _ fields: HTTPFields) { self.init(in: HTTPResponse(status: status, fields: fields)) }
}

extension RelayRequest {
    /// Where it goes.
    func url(at server: WebURL) -> WebURL { togglesSlash ? RedirectRule.toggled(server) ?? server : server }

    /// The proof that it needs.
    ///
    /// - Parameter nonce: what the server has answered the same request with; nil for the last one that is known.
    func proof(at server: WebURL, nonce: String?, _ nonces: ResourceNonces) -> ProofRequest {
        let url = url(at: server)
        return ProofRequest(method: method, url: url.text, nonce: nonce ?? nonces[url])
    }
}
