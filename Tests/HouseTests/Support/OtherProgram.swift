import RingbackBase
import Testing

/// Another program with the same session at a project: it signed in by itself, handed its session in, and goes on with
/// the refresh token that it had.
struct OtherProgram {
    let stage: Stage
    private(set) var accessToken = ""
    private(set) var refreshToken = ""

    private static let email = "mira@example.org"
    private static let password = "secret12"

    /// A person of the project, signed in by this program and through it by the daemon: which refreshed at once, so
    /// that this program's token is the parent of the daemon's.
    static func share(on stage: Stage) async throws -> OtherProgram {
        let person: JSON = ["email": .string(email), "password": .string(password)]
        try await stage.setProject(["users": .array([person])])
        var program = OtherProgram(stage: stage)
        try await program.signIn()
        try await program.handIn()
        return program
    }

    /// The daemon gets the session that is held here.
    func handIn() async throws {
        let answer = try await stage.api(
            "POST", "/v1/accounts/app/sign-in",
            ["method": "session", "access_token": .string(accessToken), "refresh_token": .string(refreshToken)])
        guard answer.status == 200, answer["state"] == "authenticated" else {
            throw Late(what: "a session, not \(answer)")
        }
    }

    mutating func signIn() async throws {
        let answer = try await call(
            "POST", "token?grant_type=password",
            ["email": .string(OtherProgram.email), "password": .string(OtherProgram.password)])
        take(answer)
        guard answer.status == 200 else { throw Late(what: "a session, not \(answer)") }
    }

    /// The server's answer to the refresh token that is held here.
    @discardableResult
    mutating func refresh() async throws -> Answer {
        let answer = try await call("POST", "token?grant_type=refresh_token", ["refresh_token": .string(refreshToken)])
        take(answer)
        return answer
    }

    /// A request to the project's Auth server, with the access token that is held here.
    func call(_ method: String, _ path: String, _ body: JSON? = nil) async throws -> Answer {
        try await stage.sandbox.request(
            method, "/supabase/auth/v1/\(path)", body,
            fields: [("apikey", "sb_publishable_sandbox")]
                + (accessToken.isEmpty ? [] : [("Authorization", "Bearer \(accessToken)")]))
    }

    private mutating func take(_ answer: Answer) {
        accessToken = answer["access_token"]?.string ?? accessToken
        refreshToken = answer["refresh_token"]?.string ?? refreshToken
    }
}
