import Glibc
import RingbackBase
import Testing

/// Which program is at the other end of a connection.
@Suite struct `The program of a caller` {
    @Test func `is verified in the audit log where the kernel proves which process has connected`() async throws {
        try await Stage.playSignedIn { stage in
            let doctor = try await stage.ringback("doctor", "--json")
            let checks = try doctor.json["checks"]?.array ?? []
            let told = try #require(checks.first { $0["check"] == "peers" }, "\(doctor)")
            #expect(told["level"] == "ok")
            let isProved = told["message"]?.string?.hasPrefix("The kernel proves") == true
            let peer = try await stage.api("GET", "/v1/peer")
            #expect(peer["confidence"]?.string == (isProved ? "verified" : "unverified"))

            try await stage.ringback("token", "work", status: 0)
            let audit = try await stage.ringback("audit", "--json")
            let entries = try audit.lines.map { try JSON(parsing: $0.utf8) }
            let taken = entries.filter { $0["event"] == "issued_token" }
            #expect(!taken.isEmpty, "\(audit)")
            for entry in taken {
                #expect(entry["verified"]?.bool == isProved, "\(entry)")
                #expect(entry["executable"]?.string == Programs.path("ringback"), "\(entry)")
            }
        }
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    /// Gets a token, then becomes another program.
    private static let becoming = """
        import os, socket, sys
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(sys.argv[1])
        client.sendall(b"GET /v1/accounts/work/session HTTP/1.1\\r\\nHost: r\\r\\nConnection: close\\r\\n\\r\\n")
        answer = b""
        while piece := client.recv(65536):
            answer += piece
        assert b" 200 " in answer, answer
        client.close()
        os.execv(sys.argv[2], sys.argv[2:])
        """

    @Test func `is the one that it runs when it connects, though it was another one a moment ago`() async throws {
        try await Stage.playSignedIn { stage in
            let python = try #require(Self.resolved("/usr/bin/python3"))
            let ringback = Programs.path("ringback")
            let isProved = try await stage.api("GET", "/v1/peer")["confidence"] == "verified"
            for _ in 0..<3 {
                let program = try stage.start(
                    "/usr/bin/python3", ["-c", Self.becoming, stage.socket, ringback, "token", "work"])
                let ended = try await program.end().expect(0)
                #expect(!ended.out.isEmpty, "\(ended)")
                let audit = try await stage.ringback("audit", "--json")
                let entries = try audit.lines.map { try JSON(parsing: $0.utf8) }
                let taken = entries.filter { $0["event"] == "issued_token" && $0["pid"]?.integer == Int(program.pid) }
                #expect(taken.map { $0["executable"]?.string } == [python, ringback], "\(audit)")
                #expect(taken.allSatisfy { $0["count"]?.integer == 1 && $0["verified"]?.bool == isProved }, "\(taken)")
            }
        }
    }
}
