internal import Cryptography
public import Secrets

/// Proof that the one who redeems a code is the one who asked for it (RFC 7636), always by S256. The verifier stays
/// here until the token request; only its digest travels through the browser.
public struct PKCE: Sendable, Equatable {
    /// 256 random bits as 43 characters (RFC 7636 section 4.1).
    public let verifier: Secret

    /// A fresh verifier from the system's generator.
    public init() {
        self.init(verifier: RandomToken.base64URL(bits: 256))
    }

    /// A verifier made elsewhere: 43...128 unreserved characters, which is not checked.
    public init(verifier: Secret) {
        self.verifier = verifier
    }

    /// BASE64URL(SHA256(verifier)), 43 characters (RFC 7636 section 4.2).
    public var challenge: String { Base64URL.encode(Digest.sha256(verifier.revealedBytes())) }
}
