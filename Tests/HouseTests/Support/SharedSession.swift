import Glibc
import RingbackBase
import Testing

extension Stage {
    /// The two kinds of refresh tokens that projects give.
    static let tokenKinds = ["v1", "v2"]

    /// Plays with one kind of token, and with no patience for old ones unless it is said.
    static func playShared(
        _ kind: String, _ settings: [(String, JSON)] = [],
        _ test: (Stage, inout OtherProgram) async throws -> Void
    ) async throws {
        var members = JSONObject([.init("refresh_tokens", .string(kind)), .init("reuse_interval", 0)])
        for (name, value) in settings { members[name] = value }
        try await playProject(.object(members)) { stage in
            var program = try await OtherProgram.share(on: stage)
            try await test(stage, &program)
        }
    }

    func switchProject(_ switches: JSON) async throws { try await sandbox.control(switches, issuer: "/supabase") }

    func advance(_ seconds: Int) async throws { try await switchProject(["advance_clock": .integer(seconds)]) }

    /// What goes wrong at the project's token endpoint: once, or until it is cleared.
    func fault(_ members: JSON, isLasting: Bool = false) async throws {
        try await switchProject(["faults": .array([Stage.fault(members, isLasting: isLasting)])])
    }

    static func fault(_ members: JSON, isLasting: Bool) -> JSON {
        var fault = JSONObject([.init("endpoint", "supabase_token"), .init("grant_type", "refresh_token")])
        for member in members.object?.members ?? [] { fault[member.name] = member.value }
        if !isLasting { fault["count"] = 1 }
        return .object(fault)
    }

    /// How many refreshes the project was asked for, those that went wrong included.
    func refreshes() async throws -> Int { try await presented().count }

    func presented() async throws -> [String] {
        try await sandbox.log(issuer: "/supabase").filter { $0["endpoint"] == "supabase_token" }
            .compactMap { $0["document"]?["refresh_token"]?.string }
    }

    func refreshApp() async throws -> Answer { try await api("POST", "/v1/accounts/app/refresh", ["force": true]) }

    /// The daemon dies without a chance to write anything, and another one begins.
    func restartAfterKill() async throws {
        daemon?.send(SIGKILL)
        _ = try await daemon?.end()
        try await startDaemon()
    }

    func expectAlive(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let answer = try await refreshApp()
        #expect(answer.status == 200, "\(answer)", sourceLocation: sourceLocation)
        #expect(answer["state"] == "authenticated", sourceLocation: sourceLocation)
    }

    func expectDead(_ word: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let answer = try await refreshApp()
        #expect(answer.status == 401 && answer.code == "session_expired", "\(answer)", sourceLocation: sourceLocation)
        #expect(answer["provider_code"]?.string == word, "\(answer)", sourceLocation: sourceLocation)
        try await expectNobody(word, sourceLocation: sourceLocation)
    }

    func expectNobody(_ word: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let session = try await api("GET", "/v1/accounts/app/session")
        #expect(session.status == 401 && session.code == "session_expired", sourceLocation: sourceLocation)
        #expect(session["provider_code"]?.string == word, "\(session)", sourceLocation: sourceLocation)
        let account = try await account("app")
        #expect(account["state"] == "unauthenticated" && account["subject"] == nil, sourceLocation: sourceLocation)
        #expect(account["error"]?["code"] == "session_expired", sourceLocation: sourceLocation)
        #expect(account["error"]?["provider_code"]?.string == word, sourceLocation: sourceLocation)
    }

    func listen() async throws -> EventStream {
        let events = try await listen(to: "/v1/events?account=app")
        _ = try await events.next("initial_session")
        return events
    }
}
