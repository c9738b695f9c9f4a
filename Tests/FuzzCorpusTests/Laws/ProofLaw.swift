import OAuth
import RingbackBase

/// Nonces for proofs (RFC 9449). The first line of an input is the method and the URL of a request, the rest a field of the
/// server's response: whatever it holds, the request's field is one line that says what was asked for.
enum ProofLaw {
    private static let key = try? DPoPKey()

    static func check(_ bytes: [UInt8]) throws {
        let (line, rest) = bytes.headLineAndRest
        let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        let text = String(decoding: rest, as: UTF8.self)
        let fields = HTTPFields([("DPoP-Nonce", text), ("WWW-Authenticate", text)])
        let stated = DPoPNonce.stated(in: fields)
        if let stated {
            try hold("a nonce is what the server has stated", stated == text)
            let isAllowed = stated.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"\\".utf8.contains($0) }
            try hold("a nonce has the characters of RFC 9449", isAllowed)
        }
        let response = HTTPResponse(status: 401, fields: fields, body: Secret(bytes: rest))
        let isSuccess = DPoPRefusal(in: HTTPResponse(status: 200, fields: fields, body: response.body)) == nil
        try hold("a success refuses nothing", isSuccess)
        _ = DPoPRefusal(in: response)
        let method = words.first ?? ""
        guard text.utf8.count <= 4_096, let key,
            let proof = key.proof(of: method, to: words.last ?? "", accessToken: response.body, nonce: text, now: 1)
        else { return }
        let value = proof.revealed()
        try hold("a proof is one word", value.isPrintableASCII && !value.contains(" "))
        try hold("a proof is of its type", try JSONWebSignature(parsing: proof).type == "dpop+jwt")
        let parts = value.split(separator: ".")
        let claims = Base64URL.decode(parts[1]).flatMap { try? JSON(parsing: $0) }
        try hold("a proof repeats the nonce", claims?["nonce"]?.string == text && claims?["htm"]?.string == method)
        let place = claims?["htu"]?.string ?? "?"
        try hold("a proof is for a place", !place.contains("?") && !place.contains("#"))
    }
}
