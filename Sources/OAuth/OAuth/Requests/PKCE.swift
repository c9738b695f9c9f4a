internal import Cryptography
public import RingbackBase

/// PKCE with S256 (RFC 7636): proof that the client that redeems a code is the one that requested it. The verifier is
/// sent only in the token request; the browser sees only its digest.
public struct PKCE: Sendable, Equatable {
    /// 256 random bits as 43 characters (RFC 7636 section 4.1).
    public let verifier: Secret

    public init() { self.init(verifier: RandomToken.base64URL(bits: 256)) }

    /// An existing verifier. It must have 43...128 unreserved characters, which is not checked.
    public init(verifier: Secret) { self.verifier = verifier }

    /// BASE64URL(SHA256(verifier)), 43 characters (RFC 7636 section 4.2).
    public var challenge: String { Base64URL.encode(Digest.sha256(verifier.revealedBytes())) }
}
