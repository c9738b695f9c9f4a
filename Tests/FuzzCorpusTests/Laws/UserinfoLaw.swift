import Cryptography
import OAuth
import RingbackBase

/// A person's claims. The first line of an input is the answer's status, with the word `signed` where an issuer of our
/// own signs the rest; the rest are the claims. They are the person's of the ID token or nobody's.
enum UserinfoLaw {
    private static let issuer = "https://id.example.org/realms/main"
    private static let now = 1_800_000_000

    static func check(_ bytes: [UInt8]) throws {
        let (line, body) = bytes.headLineAndRest
        let words = line.split(separator: " ")
        let status = words.first.flatMap { Int($0) }.map { min(max($0, 200), 599) } ?? 200
        if words.contains("signed") { return try checkSigned(body) }
        let fields = HTTPFields([("Content-Type", "application/json")])
        let response = HTTPResponse(status: status, fields: fields, body: Secret(bytes: body))
        try hold("what is not signed is not read as signed", Userinfo.signedToken(in: response) == nil)
        let open = try? Userinfo(parsing: response, subject: nil)
        let bound = try? Userinfo(parsing: response, subject: "ann")
        if let open {
            try hold("only a success has claims", status == 200)
            try hold("the claims are the body", JSON(parsing: body).object == open.claims)
            try hold("the subject is the claim", open.claims["sub"]?.string == open.subject)
            try hold("a subject is 1 to 255 bytes", (1...255).contains(open.subject?.utf8.count ?? 1))
        }
        let isAnn = open?.subject.map { $0.utf8.elementsEqual("ann".utf8) } ?? false
        try hold("a person's claims are that person's", bound == (isAnn ? open : nil))
    }

    private static func checkSigned(_ claims: [UInt8]) throws {
        let token = try IDTokenLaw.issuer.token(Array(#"{"alg":"EdDSA"}"#.utf8), claims)
        let keys = try IDTokenLaw.issuer.keys()
        var expected = IDTokenExpectations(
            issuer: issuer, clientID: "ringback", now: now, allowedAlgorithms: [.edDSA])
        expected.subject = "ann"
        func read(_ token: [UInt8], _ keys: JSONWebKeySet) -> Userinfo? {
            try? Userinfo(verifying: Secret(bytes: token), keys: keys, expecting: expected)
        }
        guard let userinfo = read(token, keys) else { return }
        let object = try JSON(parsing: claims)
        func isText(_ claim: String, _ text: String) -> Bool {
            object[claim]?.string.map { $0.utf8.elementsEqual(text.utf8) } ?? false
        }
        try hold("the claims are what was signed", JSON.object(userinfo.claims) == object)
        try hold("the subject is ours", isText("sub", "ann") && userinfo.subject == "ann")
        try hold("the issuer is ours", isText("iss", issuer))
        let audience = object["aud"]?.array?.compactMap(\.string) ?? [object["aud"]?.string].compactMap(\.self)
        try hold("they are for us", audience.contains { $0.utf8.elementsEqual("ringback".utf8) })
        try hold("without a key they are nobody's", read(token, JSONWebKeySet(json: ["keys": []])) == nil)
        for index in stride(from: 0, to: token.count, by: max(1, token.count / 8)) {
            var forged = token
            forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            try hold("no change is believed", read(forged, keys) == nil)
        }
        expected.clientID = "another"
        try hold("another client reads what is for it too", read(token, keys) == nil || audience.contains("another"))
        expected.allowedAlgorithms = [.rs256]
        try hold("the header chooses no algorithm", read(token, keys) == nil)
    }
}
