import Adapters
import RingbackBase

/// What kubectl writes to the variable of a credential plugin. The first line is the token of the answer, the rest the
/// variable.
enum KubectlCredentialLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (token, rest) = bytes.headLineAndRest
        guard let read = try? KubectlCredential(reading: rest) else { return }
        if let request = read.request {
            let url = try WebURL(parsing: request.url)
            try hold("a lookup names a host of the web", url.host?.isEmpty == false && url.scheme.hasPrefix("http"))
            try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
            try hold("a lookup has no user name and no rejection", request.username == nil && request.rejected == nil)
        }
        let credential = AdapterCredential(
            headers: ["Authorization: Bearer \(token)"], username: nil, secret: token, expiresAt: rest.count)
        guard let answer = try? read.answer(credential) else { return }
        let json = try JSON(parsing: answer)
        try hold("a token is printable ASCII", token.isPrintableASCII && !token.contains(" "))
        try hold("the answer has the token", json["status"]?["token"]?.string == token)
        try hold("the version is that of the question", json["apiVersion"] == (try JSON(parsing: rest))["apiVersion"])
        try hold("an answer is one line", answer.count { $0 == 0x0A } == 1 && answer.last == 0x0A)
    }
}
