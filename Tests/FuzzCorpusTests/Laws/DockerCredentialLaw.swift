import Adapters
import RingbackBase

/// What docker, podman and skopeo write to a credential helper's `get`. The first line is the user name of the answer, the
/// rest the tool's input.
enum DockerCredentialLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (name, rest) = bytes.headLineAndRest
        guard let read = try? DockerCredential(reading: rest) else { return }
        let url = try WebURL(parsing: read.request.url)
        try hold("a lookup names a host of the web", url.host?.isEmpty == false && url.scheme.hasPrefix("http"))
        try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
        try hold(
            "a lookup has no user name and no rejection", read.request.username == nil && read.request.rejected == nil)
        let credential = AdapterCredential(headers: [], username: name, secret: "t0ken", expiresAt: nil)
        guard let answer = try? read.answer(credential) else { return }
        let json = try JSON(parsing: answer)
        try hold("a user name has no colon", !name.utf8.contains(UInt8(ascii: ":")))
        try hold(
            "the answer has the user name and the token", json["Username"]?.string == name && json["Secret"] == "t0ken")
        let server = json["ServerURL"]?.string ?? ""
        try hold("the answer has the tool's server", rest.starts(with: server.utf8) && server.isPrintableASCII)
        try hold("an answer is one line", answer.count { $0 == 0x0A } == 1 && answer.last == 0x0A)
    }
}
