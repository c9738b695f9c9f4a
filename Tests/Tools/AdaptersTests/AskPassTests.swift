import Testing

@testable import Adapters

@Suite struct `The prompt of an askpass program` {
    /// A prompt, the URL that the daemon is asked for, and the user name.
    private static let prompts: [(String, url: String, username: String?)] = [
        // git
        ("Username for 'https://git.example.org': ", "https://git.example.org", nil),
        ("Password for 'https://git.example.org': ", "https://git.example.org", nil),
        ("Password for 'https://ada@git.example.org': ", "https://git.example.org", "ada"),
        ("Password for 'https://ada%40x.org@git.example.org:8443': ", "https://git.example.org:8443", "ada@x.org"),
        ("Password for 'https://a%2Fb%25@[2001:db8::1]:8443': ", "https://[2001:db8::1]:8443", "a/b%"),
        ("Username for 'http://[::1]:8080': ", "http://[::1]:8080", nil),
        ("Username for 'https://[::1]/t%40eam/a%20b%2Bc.git': ", "https://[::1]/t%40eam/a%20b%2Bc.git", nil),
        ("Password for 'https://ada@h.example.org/a/b.git': ", "https://h.example.org/a/b.git", "ada"),
        ("Password for 'smtp://ada@mail.example.org:587': ", "smtp://mail.example.org:587", "ada"),
        // Older versions of git, which escape nothing.
        ("Password for 'https://ada l@h.example.org/a b?c': ", "https://h.example.org/a%20b%3Fc", "ada l"),
        // wget
        ("Password for 'https://ada@x.org@files.example.org': ", "https://files.example.org", "ada@x.org"),
        // git-lfs
        ("Username for \"https://git.example.org\"", "https://git.example.org", nil),
        ("Password for \"https://ada%40x.org@git.example.org/a.git\"", "https://git.example.org/a.git", "ada@x.org"),
    ]

    @Test(arguments: prompts) func `names a server as git does to its helper`(
        prompt: String, url: String, username: String?
    ) throws {
        let asked = try AskPass(prompt: prompt)
        #expect(asked.request == AdapterRequest(url: url, username: username))
        #expect(asked.wantsUsername == prompt.hasPrefix("U"))
    }

    @Test(arguments: [
        "", "Password: ", "Username for ", "Password for '': ", "Password for 'cert:///home/ada/key.pem': ",
        "Enter passphrase for key '/home/ada/.ssh/id_ed25519': ", "ada@git.example.org's password: ",
        "Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "[sudo] password for ada: ",
        "Password for user ada: ", "Passwort für Benutzer »https://ada@files.example.org«: ",
        "Token for 'https://h.example.org': ", "password for 'https://h.example.org': ",
        "Password  for 'https://h.example.org': ", "Password for 'https://h.example.org'", "Password for '",
        "Password for 'https://h.example.org': \n", "Password for \"https://h.example.org", "Password for \"",
        "Password for https://h.example.org: ", "Password for 'h.example.org': ", "Password for 'https:///a': ",
        "Password for 'https://:8443': ", "Password for 'https://h.example.org:99999': ",
        "Password for 'https://h.example.org\u{E9}': ", "Password for 'https://h%2Eexample.org': ",
        "Password for 'https://h.example.org?a': ", "Password for 'https://h.example.org\\a': ",
    ])
    func `for anything else gets no answer`(prompt: String) {
        #expect(throws: AdapterFailure.self) { try AskPass(prompt: prompt) }
    }

    @Test(arguments: [
        // A path that begins with `@`, or a user name that ends with a slash which is not escaped.
        "Password for 'https://evil.example/@git.example.org': ",
        "Password for 'https://git.example.org/@evil.example': ",
        "Password for 'https://evil.example/\u{301}@git.example.org': ",
        "Username for 'https://evil.example@git.example.org': ",
        "Password for 'https://ada%0Ahost=git.example.org@evil.example': ",
        "Password for 'https://evil.example/a%0Ausername=ada': ", "Password for 'https://evil.example/a%00': ",
        // wget decodes `%2F` in the name of a server.
        "Password for 'http://ada@127.0.0.1/.evil.example': ",
        "Password for 'https://ada%4@evil.example': ", "Password for 'https://a\tb@evil.example': ",
    ])
    func `that could name two servers or adds a line gets no answer`(prompt: String) {
        #expect(throws: AdapterFailure.self) { try AskPass(prompt: prompt) }
    }

    private func answer(_ question: String, _ username: String?) throws -> String {
        let asked = try AskPass(prompt: "\(question) for 'https://git.example.org': ")
        return String(decoding: try asked.answer(.bearer("t0ken", username: username)), as: UTF8.self)
    }

    @Test func `gets the user name or the token as a line`() throws {
        #expect(try answer("Username", nil) == "oauth2\n")
        #expect(try answer("Username", "ada@x.org") == "ada@x.org\n")
        #expect(try answer("Password", "ada") == "t0ken\n")
        #expect(throws: AdapterFailure.self) { try answer("Username", "a\nb") }
    }
}
