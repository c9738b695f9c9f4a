// A machine whose loopback interface has one address family.

import Testing

@Suite(.enabled(if: NetworkNamespace.isPossible, NetworkNamespace.reason))
struct `A machine with one address family` {
    /// Tells how two sign-ins ended there: at the usual redirect URI, and at one on [::1].
    private func expect(_ usual: String, _ six: String, family: String) async throws {
        try await Stage.play("", startsDaemon: false) { stage in
            let place = "\(stage.directory)/family"
            FileTree.makeDirectory(place)
            let run = try await NetworkNamespace.run("one_family.py", Programs.directory, place, family, on: stage)
            #expect(run.status == 0, "\(run)")
            let told = run.lines.filter { !$0.hasPrefix(" ") }
            #expect(told == [usual, six], "\(run)")
            #expect(run.lines.count { $0.contains("Signed in to work as alice@example.org") } == 1, "\(run)")
            // What cannot be listened for is said before anybody is sent to a page.
            #expect(run.lines.count { $0.contains("cannot be listened for") } == 1, "\(run)")
        }
    }

    @Test func `NAT-06: signs in over IPv4 where there is no IPv6`() async throws {
        try await expect("usual 0 opened", "six 1 unopened", family: "4")
    }

    @Test func `NAT-06: signs in over IPv6 where there is no IPv4, if the redirect URI says so`() async throws {
        try await expect("usual 1 unopened", "six 0 opened", family: "6")
    }
}
