import StrictJSON
import Testing

/// Which program is at the other end of a connection.
@Suite struct `The program of a caller` {
    @Test func `is verified in the audit log where the kernel proves which process has connected`() async throws {
        try await Stage.play { stage in
            try await stage.signIn()
            let doctor = try await stage.ringback("doctor", "--json")
            let checks = try JSON(parsing: doctor.out.utf8)["checks"]?.array ?? []
            let told = try #require(checks.first { $0["check"] == "peers" }, "\(doctor)")
            #expect(told["level"] == "ok")
            let isProved = told["message"]?.string?.hasPrefix("The kernel proves") == true
            let peer = try await stage.api("GET", "/v1/peer")
            #expect(peer["confidence"]?.string == (isProved ? "verified" : "unverified"))

            #expect(try await stage.ringback("token", "work").status == 0)
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
}
