import Adapters
import RingbackBase

private func holdLookup(_ request: AdapterRequest) throws {
    let url = try WebURL(parsing: request.url)
    try hold("a lookup names a host of the web", url.host?.isEmpty == false && url.scheme.hasPrefix("http"))
    try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
    try hold("a lookup has no rejection", request.rejected == nil)
}

private func holdLine(_ answer: [UInt8]) throws {
    try hold("an answer is one line", answer.count { $0 == 0x0A } == 1 && answer.last == 0x0A)
}

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
            try holdLookup(read.request)
            try checkLine(try read.answer(credential(word)), has: ["Ok", "token"], "Bearer t0ken")
        case "bazel":
            guard let read = try? BazelCredential(reading: input) else { return }
            try holdLookup(read.request)
            let answer = try JSON(parsing: try read.answer(credential(word)))
            try hold("the answer has one field", answer["headers"] == ["Authorization": ["Bearer t0ken"]])
        case "go":
            guard let read = try? GoAuth(url: word, response: input) else { return }
            try holdLookup(read.request)
            let text = String(decoding: try read.answer(credential("ada")), as: UTF8.self)
            let parts = text.split(separator: "\n\n", omittingEmptySubsequences: false)
            try hold("URLs, a field and an end", parts.count == 3 && parts[1] == "Authorization: Bearer t0ken")
            let urls = parts[0].split(separator: "\n")
            try hold("the URLs are the one that go named", urls.allSatisfy { word.hasPrefix($0) })
        case "terraform":
            guard let read = try? TerraformCredential(host: word) else { return }
            try holdLookup(read.request)
            try hold("the lookup has no path", try WebURL(parsing: read.request.url).path == "/")
        case "pnpm":
            guard let read = try? PnpmToken(program: word) else { return }
            try holdLookup(read.request)
        case "google":
            try checkGoogle(type: word, token: String(decoding: input, as: UTF8.self))
        case "keyring":
            let arguments = input.split(separator: 0x0A, omittingEmptySubsequences: false)
            guard let read = KeyringCommand(arguments.map { String(decoding: $0, as: UTF8.self) }) else { return }
            try holdLookup(read.request)
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

    private static func checkLine(_ answer: [UInt8], has path: [String], _ value: String) throws {
        try holdLine(answer)
        var json: JSON? = try JSON(parsing: answer)
        for name in path { json = json?[name] }
        try hold("the answer has the token", json?.string == value)
    }
}

/// What git writes to a credential helper. The first line is the action, the rest git's input.
enum GitCredentialLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, rest) = bytes.headLineAndRest
        guard let action = GitCredential.Action(rawValue: line), let read = try? GitCredential(action, reading: rest)
        else { return }
        if let request = read.request {
            let url = try WebURL(parsing: request.url)
            try hold("a lookup names a host", url.host?.isEmpty == false)
            try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
            try hold("a rejection is of erase", (request.rejected != nil) == (action == .erase))
            try hold("a digest has 64 digits", request.rejected?.utf8.count ?? 64 == 64)
            let name = request.username ?? "x"
            try hold("a user name has no control character", name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        }
        let text = String(decoding: rest, as: UTF8.self)
        let credential = AdapterCredential(
            headers: ["Authorization: Bearer \(text)"], username: text, secret: text, expiresAt: nil)
        if let answer = try? read.answer(credential) {
            let lines = answer.split(separator: 0x0A)
            try hold("an answer has 3 to 4 lines", (3...4).contains(lines.count))
            try hold("an answer ends with a line break", answer.last == 0x0A)
        }
    }
}

/// The prompt of an askpass program.
enum AskPassLaw {
    static func check(_ bytes: [UInt8]) throws {
        let prompt = String(decoding: bytes, as: UTF8.self)
        guard let read = try? AskPass(prompt: prompt) else { return }
        let url = try WebURL(parsing: read.request.url)
        try hold("a lookup names a host", url.host?.isEmpty == false)
        try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
        let server = read.request.url.dropFirst(url.scheme.utf8.count + 3).prefix { $0 != "/" }
        let ends = ["/", "'", "\""].flatMap { end in ["@\(server)\(end)", "://\(server)\(end)"] }
        try hold("the prompt has the server as it is", ends.contains { Array(prompt.utf8).contains($0.utf8) })
        let name = read.request.username ?? "x"
        try hold("a user name has no control character", name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        let credential = AdapterCredential(headers: [], username: prompt, secret: "t0ken", expiresAt: nil)
        guard let answer = try? read.answer(credential) else { return }
        try holdLine(answer)
    }
}

/// What kubectl writes to the variable of a credential plugin. The first line is the token of the answer, the rest the
/// variable.
enum KubectlCredentialLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (token, rest) = bytes.headLineAndRest
        guard let read = try? KubectlCredential(reading: rest) else { return }
        if let request = read.request {
            try holdLookup(request)
            try hold("a lookup has no user name", request.username == nil)
        }
        let credential = AdapterCredential(
            headers: ["Authorization: Bearer \(token)"], username: nil, secret: token, expiresAt: rest.count)
        guard let answer = try? read.answer(credential) else { return }
        let json = try JSON(parsing: answer)
        try hold("a token is printable ASCII", token.isPrintableASCII && !token.contains(" "))
        try hold("the answer has the token", json["status"]?["token"]?.string == token)
        try hold("the version is that of the question", json["apiVersion"] == (try JSON(parsing: rest))["apiVersion"])
        try holdLine(answer)
    }
}

/// What docker, podman and skopeo write to a credential helper's `get`. The first line is the user name of the answer, the
/// rest the tool's input.
enum DockerCredentialLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (name, rest) = bytes.headLineAndRest
        guard let read = try? DockerCredential(reading: rest) else { return }
        try holdLookup(read.request)
        try hold("a lookup has no user name", read.request.username == nil)
        let credential = AdapterCredential(headers: [], username: name, secret: "t0ken", expiresAt: nil)
        guard let answer = try? read.answer(credential) else { return }
        let json = try JSON(parsing: answer)
        try hold("a user name has no colon", !name.utf8.contains(UInt8(ascii: ":")))
        try hold(
            "the answer has the user name and the token", json["Username"]?.string == name && json["Secret"] == "t0ken")
        let server = json["ServerURL"]?.string ?? ""
        try hold("the answer has the tool's server", rest.starts(with: server.utf8) && server.isPrintableASCII)
        try holdLine(answer)
    }
}

/// docker's `config.json` with an entry added and removed. The first line is the registry, the rest the file.
enum DockerConfigurationLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (registry, text) = bytes.headLineAndRest
        guard var configuration = try? DockerConfiguration(reading: text) else { return }
        let document = try JSON(parsing: text)
        let former = configuration.helpers.map(\.registry)
        try hold(
            "the registries are the members of credHelpers", former == document["credHelpers"]?.object?.names ?? [])
        let isNew = !former.contains(registry)
        configuration.add(registry)
        guard isNew else { return try hold("a known registry stays as it is", configuration.bytes == text) }
        var expected = document.object ?? JSONObject()
        var helpers = expected["credHelpers"]?.object ?? JSONObject()
        helpers[registry] = "ringback"
        expected["credHelpers"] = .object(helpers)
        // The entry may be one value more than is read.
        try hold(
            "only the entry is added", try JSON(parsing: configuration.bytes, maxValues: 30_000) == .object(expected))
        configuration.remove(registry)
        if former.isEmpty { expected["credHelpers"] = nil } else { expected["credHelpers"] = document["credHelpers"] }
        try hold("only the entry is removed", try JSON(parsing: configuration.bytes) == .object(expected))
    }
}

/// An AI tool's list of MCP servers with one added and removed. The first line names the tool, the rest is the file.
enum AIToolListLaw {
    private static let name = "law"
    private static let program = "/usr/bin/ringback"
    private static let other = "/opt/\"r\"/ringback"
    private static let arguments = ["mcp", "law"]

    static func check(_ bytes: [UInt8]) throws {
        let (word, text) = bytes.headLineAndRest
        guard let tool = AITool(rawValue: word) else { return }
        switch tool.form {
        case .toml: try check(codex: text)
        case .json(let member): try check(text, of: tool, member)
        }
    }

    private static func check(_ text: [UInt8], of tool: AITool, _ member: String) throws {
        guard var list = try? MCPServerList(reading: text, member: member), list.entry(name) == nil else { return }
        let entry = tool.entry(program, arguments)
        let former = comments(of: list.bytes)
        list.add(name, entry)
        try hold("the entry is added", list.entry(name) == .object(entry))
        try hold("it names the program", tool.words(of: .object(entry)) == [program] + arguments)
        try hold("comments stay when one is added", comments(of: list.bytes) == former)
        let again = try? MCPServerList(reading: list.bytes, member: member)
        try hold("the result can be read", again == list)
        list.setProgram(of: name, to: other)
        try hold("the entry has the other program", list.entry(name).flatMap(tool.words) == [other] + arguments)
        try hold("comments stay when the program is replaced", comments(of: list.bytes) == former)
        list.setProgram(of: name, to: program)
        try hold("the former program gives the former text", list == again)
        list.remove(name)
        try hold("the entry is removed", list.entry(name) == nil)
        try hold("comments stay when one is removed", comments(of: list.bytes) == former)
        let left = try? MCPServerList(reading: list.bytes, member: member)
        try hold("what is left can be read", left == list)
    }

    private static func check(codex text: [UInt8]) throws {
        var list = CodexServerList(reading: text)
        guard !list.mentions(name) else { return }
        list.add(name, program, arguments)
        try hold("the table is added", list.has(name, program, arguments) && list.bytes.starts(with: text))
        if String(validating: list.bytes, as: UTF8.self) != nil, list.servers.contains(where: { $0.name == name }) {
            let added = list
            list.setProgram(of: name, to: other)
            try hold("the table has the other program", list.has(name, other, arguments))
            list.setProgram(of: name, to: program)
            try hold("the former program gives the former table", list == added)
        }
        list.remove(name, program, arguments)
        let end = [[], Array("\n".utf8)]
        try hold("only the table is removed", end.contains { list.bytes == text + $0 })
    }

    /// The comments of a text that is JSON with comments, in order.
    private static func comments(of bytes: [UInt8]) -> [[UInt8]] { MCPServerList.comments(of: bytes) }
}

/// The command line of `oidc-token`: a word in each line, up to an empty line; the rest is the token.
enum OIDCTokenLaw {
    static func check(_ bytes: [UInt8]) throws {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        let words = lines.prefix { !$0.isEmpty }.map { String(decoding: $0, as: UTF8.self) }
        guard let read = try? OIDCToken(words), read.page == nil else { return }
        try hold("a span is not negative", (read.minValid ?? 0) >= 0)
        let rest = Array(lines.dropFirst(words.count + 1).joined(separator: [0x0A]))
        let token = String(decoding: rest, as: UTF8.self)
        let facts: OIDCToken.Facts = (token: token, issuer: "https://id.example.org", expiresAt: 1)
        guard let answer = try? read.answer(facts) else { return }
        try hold("an answer has 1 to 3 lines", (1...3).contains(answer.count { $0 == 0x0A }))
        try hold("an answer ends with a line break", answer.last == 0x0A)
        try hold("an answer is printable ASCII", answer.allSatisfy { $0 == 0x0A || (0x20...0x7E).contains($0) })
    }
}

/// The list of what `ringback setup` wrote, as it rests in the user's home.
enum SetupLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard var entries = SetupEntries(reading: bytes) else { return }
        try hold("what is written is read as the same", SetupEntries(reading: entries.bytes) == entries)
        let former = entries
        let isNew = !entries.remove(link: "/a")
        entries.add(link: "/a")
        try hold("an entry is there once", entries.remove(link: "/a") && !entries.remove(link: "/a"))
        try hold("the others stay", !isNew || entries == former)
        entries.add(file: "/a/b/c", in: ["/a", "/a/b"])
        try hold(
            "a file is there once, with its directories",
            entries.remove(file: "/a/b/c") == ["/a/b", "/a"] && entries.remove(file: "/a/b/c") == nil)
    }
}
