internal import Cryptography
internal import Encodings
internal import StrictJSON

/// A signed JWT in its compact form (RFC 7515 section 7.1), taken apart. Its signature is checked elsewhere.
struct JSONWebToken {
    let header: JSONObject
    let claims: JSONObject
    let signature: [UInt8]
    /// What was signed.
    let message: [UInt8]

    /// Nil for anything but three parts, of which the first two are objects.
    init?(parsing text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header = JSONWebToken.object(parts[0]), let claims = JSONWebToken.object(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        message = Array("\(parts[0]).\(parts[1])".utf8)
    }

    /// Nil for one that is not known here.
    var algorithm: SignatureAlgorithm? { header["alg"]?.string.flatMap(SignatureAlgorithm.init(rawValue:)) }

    func isSigned(by key: PublicKey, _ algorithm: SignatureAlgorithm) -> Bool {
        key.verify(signature: signature, message: message, algorithm: algorithm)
    }

    /// Header and claims as they are signed.
    static func signingInput(_ header: JSON, _ claims: JSON) -> String {
        Base64URL.encode(header.serialized()) + "." + Base64URL.encode(claims.serialized())
    }

    private static func object(_ part: Substring) -> JSONObject? {
        Base64URL.decode(part).flatMap { try? JSON(parsing: $0) }?.object
    }
}
