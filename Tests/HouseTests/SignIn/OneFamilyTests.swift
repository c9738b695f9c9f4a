import Testing

@Suite(.enabled(if: NetworkNamespace.isPossible, NetworkNamespace.reason))
struct `A machine with one address family` {
    /// Tells how sign-ins ended there: at the usual redirect URI, at one on [::1], and by links of a scheme, which nothing
    /// delivers here. Returns what they printed.
    @discardableResult
    private func expect(_ usual: String, _ six: String, _ scheme: String, family: String) async throws -> [String] {
        var printed: [String] = []
        try await Stage.play("", startsDaemon: false) { stage in
            let place = "\(stage.directory)/family"
            FileTree.makeDirectory(place)
            let run = try await NetworkNamespace.run("one_family.py", Programs.directory, place, family, on: stage)
            #expect(run.status == 0, "\(run)")
            let told = run.lines.filter { !$0.hasPrefix(" ") }
            #expect(told == [usual, six, scheme], "\(run)")
            let signedIn = run.lines.count { $0.contains("Signed in to work as alice@example.org") }
            // What cannot be listened for is said before anybody is sent to a page.
            let refused = run.lines.count { $0.contains("The callback cannot be listened for") }
            #expect(signedIn + refused == 2 && signedIn == (family == "none" ? 0 : 1), "\(run)")
            printed = run.lines
        }
        return printed
    }

    @Test func `NAT-06: sign-in works on a machine with IPv4 only`() async throws {
        try await expect(
            "usual 0 http://127.0.0.1:PORT/start/KEY", "six 1 unopened",
            "scheme 6 http://127.0.0.1:PORT/start/KEY", family: "4")
    }

    @Test func `NAT-06: sign-in works on a machine with IPv6 only if the redirect URI is at [::1]`() async throws {
        try await expect(
            "usual 1 unopened", "six 0 http://[::1]:PORT/start/KEY", "scheme 6 http://[::1]:PORT/start/KEY",
            family: "6")
    }

    @Test func `login on a machine without a loopback address starts no browser and prints the page`() async throws {
        let printed = try await expect("usual 1 unopened", "six 1 unopened", "scheme 6 unopened", family: "none")
        #expect(printed.contains { $0.contains("No browser was started. No address for a browser") }, "\(printed)")
        #expect(printed.contains { $0.contains("/authorize?") && $0.contains("state=") }, "\(printed)")
    }
}
