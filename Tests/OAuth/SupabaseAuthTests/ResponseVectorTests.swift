import RingbackBase
import Testing

@testable import SupabaseAuth

private let vectors = SupabaseVector.all(in: "answers")

@Suite struct `The answers of the protocol` {
    @Test func `the vectors are there, of every kind`() {
        #expect(vectors.count >= 150)
        #expect(Set(vectors.compactMap { $0["reads"]?.string }) == Set(AnswerReadings.table.keys))
    }

    @Test(arguments: vectors) func `an answer is read as its vector says`(vector: SupabaseVector) throws {
        let expected = try #require(vector["expect"]?.object)
        let reading = try #require(vector["reads"]?.string.flatMap { AnswerReadings.table[$0] })
        do {
            try reading.read(vector.response, expected)
            #expect(expected["outcome"] != "error")
        } catch let error as SupabaseError {
            #expect(expected["outcome"] == "error", "\(error)")
            try check(error, expected, reading.occasion)
        }
    }

    private func check(
        _ error: SupabaseError, _ expected: JSONObject, _ occasion: SupabaseProblem.Occasion
    ) throws {
        switch error {
        case .refused(let refusal):
            #expect(expected["error"] == "refused")
            #expect(refusal.code == expected["code"]?.string)
            if let message = expected["message"]?.string { #expect(refusal.message == message) }
            #expect(refusal.weaknesses == expected["weaknesses"]?.array?.compactMap(\.string) ?? [])
            #expect(refusal.databaseCode == expected["database_code"]?.string)
            #expect(refusal.asksForRefresh == (expected["asks_for_refresh"] == true))
            if expected["ends_session"] == true { #expect(refusal.endsSession) }
        case .unavailable: #expect(expected["error"] == "unavailable")
        case .invalid(let reason):
            #expect(expected["error"] == "invalid", "\(reason)")
            #expect(!reason.isEmpty)
        case .misconfigured(let reason):
            #expect(expected["error"] == "misconfigured", "\(reason)")
            #expect(reason.hasSuffix("."))
        }
        #expect(error.retryAfter == expected["retry_after"]?.integer)
        if let verdict = expected["refresh"]?.string { #expect(text(RefreshVerdict(error)) == verdict) }
        let problem = SupabaseProblem(error, on: occasion)
        if let code = expected["problem"]?.string { #expect(problem.code.rawValue == code) }
        if let person = expected["person"]?.string { #expect(problem.message?.rawValue == person) }
        if let recovery = expected["recovery"]?.string { #expect(problem.recovery.rawValue == recovery) }
        #expect(problem.retryAfter == error.retryAfter)
    }

    private func text(_ verdict: RefreshVerdict) -> String {
        switch verdict {
        case .dead(let cause): "dead \(cause.rawValue)"
        case .reused: "reused"
        case .transient: "transient"
        case .misconfigured: "misconfigured"
        }
    }
}

/// The readers of answers by the names that the vectors give them.
enum AnswerReadings {
    struct Reading: Sendable {
        let occasion: SupabaseProblem.Occasion
        let read: @Sendable (HTTPResponse, JSONObject) throws -> Void
    }

    static let table: [String: Reading] = [
        "session": Reading(occasion: .signIn, read: session), "refresh": Reading(occasion: .refresh, read: session),
        "credential": Reading(occasion: .credential, read: session),
        "sign_up": Reading(occasion: .signIn, read: signUp),
        "user": Reading(occasion: .account) { response, expected in
            let answer = try SupabaseUser(reading: response)
            #expect(answer.id == expected["user"]?.string)
        },
        "sign_out": Reading(occasion: .account) { response, expected in
            let outcome: SignOutResponse = expected["outcome"] == "ended" ? .ended : .unknownSession
            let answer = try SignOutResponse(reading: response)
            #expect(answer == outcome)
        },
        "url": Reading(occasion: .account) { response, expected in
            let answer = try URLResponse(reading: response)
            #expect(answer.url == expected["url"]?.string)
        },
        "authorize": Reading(occasion: .authorization) { response, expected in
            let answer = try ProviderRedirect(reading: response)
            #expect(answer.url == expected["url"]?.string)
        },
        "enroll": Reading(occasion: .account) { response, expected in
            let factor = try FactorEnrolment(reading: response)
            #expect(factor.kind == expected["kind"]?.string)
            #expect(factor.phone == expected["phone"]?.string)
            #expect(factor.totp?.secret.revealed() == expected["totp"]?.string)
        },
        "challenge": Reading(occasion: .account) { response, expected in
            let challenge = try FactorChallenge(reading: response)
            #expect(challenge.expiresAt == expected["expires_at"]?.integer)
            #expect(challenge.webAuthn?.ceremony.rawValue == expected["webauthn_type"]?.string)
            #expect(challenge.webAuthn?.options == expected["webauthn_options"]?.object)
        },
        "passkey_challenge": Reading(occasion: .signIn) { response, expected in
            let challenge = try PasskeyChallenge(reading: response)
            #expect(challenge.id == expected["id"]?.string)
            #expect(challenge.options == expected["options"]?.object)
            #expect(challenge.expiresAt == expected["expires_at"]?.integer)
        },
        "passkey": Reading(occasion: .account) { response, expected in
            let passkey = try Passkey(reading: response)
            #expect(passkey.id == expected["id"]?.string)
            for member in ["name": "friendly_name", "created_at": "created_at", "last_used_at": "last_used_at"] {
                #expect(passkey.json[member.value]?.string == expected[member.key]?.string)
            }
        },
        "passkeys": Reading(occasion: .account) { response, expected in
            let list = try SupabaseList<Passkey>(reading: response)
            #expect(list.entries.map(\.id) == expected["ids"]?.array?.compactMap(\.string))
        },
        "consents": Reading(occasion: .account) { response, expected in
            let list = try SupabaseList<Consent>(reading: response)
            #expect(list.entries.map { .object($0.json) } == expected["consents"]?.array ?? [])
        },
        "removal": Reading(occasion: .account) { response, _ in _ = try EmptyResponse(reading: response) },
        "message": Reading(occasion: .signIn) { response, _ in _ = try EmptyResponse(reading: response) },
        "settings": Reading(occasion: .account) { response, expected in
            let settings = try SupabaseSettings(reading: response)
            #expect(settings.open.sorted() == expected["open"]?.array?.compactMap(\.string))
            #expect(settings.signUpIsClosed)
        },
        "profile": Reading(occasion: .account) { response, expected in
            let profile = try ProfileResponse(reading: response)
            #expect((profile == .missing) == (expected["outcome"] == "missing"))
            #expect(profile.isActive == (expected["outcome"] != "inactive"))
        },
        "function": Reading(occasion: .account) { response, expected in
            let answer = try FunctionResponse(reading: response)
            #expect(answer.value == expected["value"])
        },
        "edge_function": Reading(occasion: .account) { response, expected in
            let answer = try EdgeFunctionResponse(reading: response)
            #expect(answer.value == expected["value"])
        },
    ]

    @Sendable private static func session(_ response: HTTPResponse, _ expected: JSONObject) throws {
        let answer = try SessionResponse(reading: response)
        #expect(answer.refreshToken?.revealed() == expected["refresh_token"]?.string)
        guard expected["outcome"] != "unusable" else {
            #expect(throws: SupabaseError.self) { try answer.outcome() }
            return
        }
        switch try answer.outcome() {
        case .accepted(let message):
            #expect(expected["outcome"] == "accepted")
            #expect(message == expected["message"]?.string)
            #expect(throws: SupabaseError.self) { try answer.session() }
        case .user: Issue.record("a bare user")
        case .session(let session): try check(session, expected)
        }
    }

    private static func check(_ session: SupabaseSession, _ expected: JSONObject) throws {
        #expect(expected["outcome"] == "session")
        #expect(session.claims.subject == expected["subject"]?.string)
        #expect(session.claims.sessionID == expected["session_id"]?.string)
        #expect(session.lifetime(now: 1_787_396_400) == expected["lifetime"]?.integer)
        #expect(session.user?.id == expected["user"]?.string)
        #expect(session.providerToken?.revealed() == expected["provider_token"]?.string)
        #expect(session.claims.isRecovery == (expected["recovery"] == true))
        #expect(session.claims.assurance?.rawValue == expected["assurance"]?.string ?? "aal1")
    }

    @Sendable private static func signUp(_ response: HTTPResponse, _ expected: JSONObject) throws {
        switch try SignUpResponse(reading: response) {
        case .session(let answer):
            #expect(expected["outcome"] == "session")
            #expect(answer.refreshToken?.revealed() == expected["refresh_token"]?.string)
        case .confirmationAwaited(let user):
            #expect(expected["outcome"] == "awaited")
            #expect(user.id == expected["user"]?.string)
        case .addressTaken: #expect(expected["outcome"] == "taken")
        }
    }
}
