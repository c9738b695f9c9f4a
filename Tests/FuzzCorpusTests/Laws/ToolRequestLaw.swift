import Adapters
import RingbackBase

/// What cargo, go, Bazel, Terraform, pnpm, pip and uv, and Google's libraries give the programs that they ask for tokens. The
/// first line is the tool's name, the second the user name or the argument, the rest the tool's input; for `google` it is the
/// token.
enum ToolRequestLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (tool, rest) = bytes.headLineAndRest
        let (word, input) = rest.headLineAndRest
        switch tool {
        case "cargo":
            guard let read = try? CargoCredential(reading: input) else { return }
            try checkLookup(read.request)
            try checkLine(try read.answer(credential(word)), has: ["Ok", "token"], "Bearer t0ken")
        case "bazel":
            guard let read = try? BazelCredential(reading: input) else { return }
            try checkLookup(read.request)
            let answer = try JSON(parsing: try read.answer(credential(word)))
            try hold("the answer has one field", answer["headers"] == ["Authorization": ["Bearer t0ken"]])
        case "go":
            guard let read = try? GoAuth(url: word, response: input) else { return }
            try checkLookup(read.request)
            let text = String(decoding: try read.answer(credential("ada")), as: UTF8.self)
            let parts = text.split(separator: "\n\n", omittingEmptySubsequences: false)
            try hold("URLs, a field and an end", parts.count == 3 && parts[1] == "Authorization: Bearer t0ken")
            let urls = parts[0].split(separator: "\n")
            try hold("the URLs are the one that go named", urls.allSatisfy { word.hasPrefix($0) })
        case "terraform":
            guard let read = try? TerraformCredential(host: word) else { return }
            try checkLookup(read.request)
            try hold("the lookup has no path", try WebURL(parsing: read.request.url).path == "/")
        case "pnpm":
            guard let read = try? PnpmToken(program: word) else { return }
            try checkLookup(read.request)
        case "google":
            try checkGoogle(type: word, token: String(decoding: input, as: UTF8.self))
        case "keyring":
            let arguments = input.split(separator: 0x0A, omittingEmptySubsequences: false)
            guard let read = KeyringCommand(arguments.map { String(decoding: $0, as: UTF8.self) }) else { return }
            try checkLookup(read.request)
            guard let answer = try? read.answer(credential(word)) else { return }
            try hold("the answer ends with the token", answer.contains("t0ken".utf8) && answer.last == 0x0A)
            try hold("an answer has at most two lines", answer.count { $0 == 0x0A } <= 2)
        default: break
        }
    }

    /// An empty type stands for a variable that is not set.
    private static func checkGoogle(type: String, token: String) throws {
        let failure = GoogleCredential.failure(code: type, message: token)
        try checkLine(failure, has: ["message"], token)
        let found = AdapterCredential(headers: [], username: nil, secret: token, expiresAt: type.utf8.count)
        guard let asked = try? GoogleCredential(type: type.isEmpty ? nil : type), let answer = try? asked.answer(found)
        else { return }
        try checkLine(answer, has: ["id_token"], token)
        try hold("a token is printable ASCII", token.utf8.allSatisfy { (0x21...0x7E).contains($0) })
        let kind = try JSON(parsing: answer)["token_type"]?.string
        try hold("the type is the one that was asked for", type.isEmpty || kind == type)
    }

    private static func credential(_ username: String) -> AdapterCredential {
        AdapterCredential(
            headers: ["Authorization: Bearer t0ken"], username: username, secret: "t0ken",
            expiresAt: username.utf8.count)
    }

    private static func checkLookup(_ request: AdapterRequest) throws {
        let url = try WebURL(parsing: request.url)
        try hold("a lookup names a host of the web", url.host?.isEmpty == false && url.scheme.hasPrefix("http"))
        try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
        try hold("a lookup has no rejection", request.rejected == nil)
    }

    private static func checkLine(_ answer: [UInt8], has path: [String], _ value: String) throws {
        try hold("an answer is one line", answer.count { $0 == 0x0A } == 1 && answer.last == 0x0A)
        var json: JSON? = try JSON(parsing: answer)
        for name in path { json = json?[name] }
        try hold("the answer has the token", json?.string == value)
    }
}
