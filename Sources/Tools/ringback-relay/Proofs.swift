import CurlTransport
import MCPBridge
import OAuth
import RingbackBase
import RingbackClient
import Synchronization

/// The last nonces of the servers for proofs (RFC 9449 section 9), by origin. They are learned from every response to a
/// request with a proof. One that is lost costs one request more.
final class ResourceNonces: Sendable {
    private static let most = 256
    private let nonces = Mutex<[String: String]>([:])

    subscript(url: WebURL) -> String? { nonces.withLock { $0[url.origin] } }

    /// True if the response states one.
    @discardableResult
    func learn(from fields: HTTPFields, of url: WebURL) -> Bool {
        guard let stated = DPoPNonce.stated(in: fields) else { return false }
        nonces.withLock { nonces in
            if nonces.count >= ResourceNonces.most { nonces = [:] }
            nonces[url.origin] = stated
        }
        return true
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
    func proof(at server: WebURL, _ nonces: ResourceNonces) -> ProofRequest {
        let url = url(at: server)
        return ProofRequest(method: method, url: url.text, nonce: nonces[url])
    }
}
