import RingbackBase
import Testing

@testable import Adapters

@Suite struct `kubectl's configuration` {
    private let text = """
        {"kind": "Config", "current-context": "c",
         "contexts": [{"name": "c", "context": {"cluster": "k", "user": "ringback"}},
                      {"name": "d", "context": {"cluster": "k", "user": "ada"}},
                      {"name": "e", "context": {"cluster": "gone", "user": "hand"}}],
         "clusters": [{"name": "k", "cluster": {"server": "https://k8s.example.org:6443"}}],
         "users": [{"name": "ringback", "user": {"exec": {"command": "/usr/bin/ringback", "args": ["kubectl-credential"]}}},
                   {"name": "ada", "user": {"token": "REDACTED"}},
                   {"name": "hand", "user": {"exec": {"command": "kubectl-ringback", "args": null}}},
                   {"name": "ringback-work",
                    "user": {"exec": {"command": "/opt/ringback", "args": ["kubectl-credential", "--account=work"]}}}]}
        """

    @Test func `says which contexts ask Ringback`() throws {
        let read = try #require(KubectlConfiguration(view: text.utf8))
        #expect(read.contexts.filter(read.isAsked).map(\.name) == ["c", "e"])
        let origin = try OriginPattern(parsing: "https://k8s.example.org:6443/*")
        #expect(read.contexts(for: [origin]).map(\.name) == ["c", "d"])
        #expect(read.contexts(for: [try OriginPattern(parsing: "https://k8s.example.org")]).isEmpty)
    }

    @Test func `only the users that setup made are ours`() throws {
        let read = try #require(KubectlConfiguration(view: text.utf8))
        #expect(read.written(account: nil).map(\.name) == ["ringback", "ringback-work"])
        #expect(read.written(account: "work").map(\.name) == ["ringback-work"])
        #expect(KubectlConfiguration.plugin("/opt/ringback", account: "work") == read.users.last?.plugin)
    }

    @Test func `another name or another argument is somebody's own`() throws {
        func isWritten(_ name: String, _ arguments: String...) throws -> Bool {
            let list = arguments.map { "\"\($0)\"" }.joined(separator: ", ")
            let view =
                #"{"users": [{"name": "\#(name)", "user": {"exec": {"command": "/usr/bin/ringback", "#
                + #""args": [\#(list)]}}}]}"#
            return try #require(KubectlConfiguration(view: view.utf8)?.users.first).isWritten
        }
        let verb = "kubectl-credential"
        #expect(try isWritten("ringback", verb) && isWritten("ringback-work", verb, "--account=work"))
        #expect(try !isWritten("me-at-corp", verb) && !isWritten("me-at-corp", verb, "--account=work"))
        #expect(try !isWritten("ringback-work", verb, "--account=work", "--kind=access_token"))
        #expect(try !isWritten("ringback-work", verb, "--account=home") && !isWritten("ringback-work", verb))
        #expect(try !isWritten("ringback", verb, "--account=work") && !isWritten("ringback"))
    }

    @Test func `the certificate authorities of clusters are read from data, or a file is named`() {
        let list = #"""
            [{"name": "a", "cluster": {"server": "https://a", "certificate-authority-data": "YWJj", "certificate-authority": "/x"}},
             {"name": "b", "cluster": {"server": "https://b", "certificate-authority": "/b.pem"}},
             {"name": "c", "cluster": {"server": "https://c", "certificate-authority-data": ""}}, {"name": "d", "cluster": {}}]
            """#
        let clusters = KubectlConfiguration.clusters(list.utf8)
        #expect(clusters.map(\.server) == ["https://a", "https://b", "https://c"])
        #expect(clusters.map(\.authority) == [Array("abc".utf8), nil, nil])
        #expect(clusters.map(\.authorityFile) == [nil, "/b.pem", nil])
        #expect(KubectlConfiguration.clusters("map[a:b]".utf8).isEmpty)
    }

    @Test func `an empty kubeconfig has no users`() throws {
        let empty = try #require(KubectlConfiguration(view: #"{"users": null, "contexts": null}"#.utf8))
        #expect(empty.users.isEmpty && empty.contexts.isEmpty)
        #expect(KubectlConfiguration(view: "no kubeconfig".utf8) == nil)
    }
}
