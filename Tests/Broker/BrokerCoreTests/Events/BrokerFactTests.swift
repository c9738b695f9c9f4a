import RingbackBase
import SessionVault
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `What the records are told` {
    @Test func `comes in order`() async throws {
        let house = try await House()
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .status(503))
        #expect(await house.failure() != nil)
        house.clock.advance(by: 600)
        _ = try await house.token()
        try await house.signIn(as: "bob", switching: true)
        try await house.broker.lockVault()
        try await house.broker.unlockVault(passphrase: nil)
        try await house.broker.rekeyVault(to: .keyFile, passphrase: nil)
        _ = try await house.token()
        house.provider.script(.revocation, .status(503))
        _ = try await house.broker.signOut(House.name)
        try await house.signIn()
        house.clock.advance(by: 3_600)
        house.provider.script(.token, .invalidGrant)
        #expect(await house.failure() == .sessionExpired(House.name))
        #expect(
            house.facts.names == [
                "vaultOpened", "signInStarted", "sessionOpened", "signInEnded", "refreshStarted", "refreshFailed",
                "refreshStarted", "refreshSucceeded", "signInStarted", "sessionOpened", "signInEnded", "vaultLocked",
                "vaultOpened", "vaultRekeyed", "sessionClosed", "revocationPostponed", "signInStarted", "sessionOpened",
                "signInEnded", "refreshStarted", "sessionEnded",
            ])
    }

    @Test func `names who came and who went`() async throws {
        let house = try await House()
        try await house.signIn()
        try await house.signIn(as: "bob", switching: true)
        _ = try await house.broker.signOut(House.name)
        var told: [String] = []
        for fact in house.facts.all {
            switch fact {
            case .sessionOpened(_, let subject, let replacing): told.append("\(subject ?? "?") for \(replacing as Any)")
            case .sessionClosed(_, let subject): told.append("\(subject ?? "?") left")
            default: break
            }
        }
        #expect(told.count == 3)
        #expect(told.first == "alice for nil")
        #expect(told[1].hasPrefix("bob for") && told[1].contains("alice"))
        #expect(told.last == "bob left")
    }

    @Test func `every sign-in that starts ends once, however it ends`() async throws {
        let house = try await House()
        // Completed, failed, declined by the user, cancelled, expired, cancelled by a reload.
        try await house.signIn()
        // The code is sent once more after a failure that may pass.
        house.provider.script(.token, .status(500), .status(500))
        try await house.signIn()
        let denied = try await house.broker.signIn(House.name, SignInRequest()).flow
        let state = try #require(denied.authorizationURL.split(separator: "&").first { $0.contains("state=") })
        _ = await house.broker.receive(
            "\(denied.redirectURI)?error=access_denied&iss=https%3A%2F%2Fid.example&\(state.drop { $0 != "s" })")
        let cancelled = try await house.broker.signIn(House.name, SignInRequest()).flow
        _ = try await house.broker.cancel(cancelled.id, isForAll: true)
        let late = try await house.broker.signIn(House.name, SignInRequest()).flow
        house.clock.advance(by: 700)
        #expect(
            await house.broker.receive(try house.provider.consent(late.authorizationURL)) == .expired(flow: late.id))
        _ = try await house.broker.signIn(House.name, SignInRequest()).flow
        await house.broker.configure([])
        let outcomes = house.facts.all.compactMap { fact -> BrokerFact.Outcome? in
            if case .signInEnded(_, _, let outcome, _, _, _) = fact { outcome } else { nil }
        }
        #expect(outcomes == [.completed, .failed, .failed, .cancelled, .expired, .cancelled])
        #expect(
            house.facts.all.contains { fact in
                if case .signInEnded(_, .browser, .completed, _, _, endsElsewhere: true) = fact { true } else { false }
            })
        #expect(house.facts.names.count { $0 == "signInStarted" } == outcomes.count)
    }

    @Test func `every refresh that starts ends, and nothing ends that did not start`() async throws {
        let house = try await House()
        try await house.signIn()
        let turns: [FakeProvider.Turn] = [
            .status(503), .fail(.unreachable(host: "h", reason: "r")), .status(200, "{}"), .status(429),
            .setting("access_token", nil), .setting("token_type", "DPoP"), .status(400, #"{"error":"invalid_client"}"#),
        ]
        for turn in turns {
            house.clock.advance(by: 7_200)
            house.provider.script(.token, turn)
            _ = await house.failure()
        }
        // The discovery fails before there is anything to be started.
        house.clock.advance(by: 7_200)
        for _ in 0..<2 { house.provider.script(.metadata, .status(503)) }
        _ = await house.failure()
        var isRunning = false
        for name in house.facts.names where name.hasPrefix("refresh") {
            #expect(isRunning == (name != "refreshStarted"))
            isRunning = name == "refreshStarted"
        }
        #expect(!isRunning)
    }

    @Test func `holds no secret, even if a provider repeats one in its own words`() async throws {
        let house = try await House.expired()
        let echoes: [FakeProvider.Turn] = [
            .status(400, #"{"error":"invalid_request","error_description":"refresh-2 is not good"}"#),
            .status(400, #"{"error":"refresh-2"}"#),
            .status(503, #"{"error":"temporarily_unavailable","error_description":"refresh-2"}"#),
        ]
        for turn in echoes {
            house.provider.script(.token, turn)
            _ = await house.refreshFailure(isForced: true)
            house.clock.advance(by: 700)
        }
        house.provider.script(.revocation, .status(400, #"{"error":"x","error_description":"refresh-2"}"#))
        _ = try await house.broker.signOut(House.name)
        for fact in house.facts.all {
            var text = String(describing: fact)
            dump(fact, to: &text)
            for secret in ["refresh-", "access-2", "code-", "eyJ"] { #expect(!text.contains(secret), "\(fact)") }
        }
        let view = try await house.view
        #expect(!String(describing: view.error).contains("refresh-2"))
    }
}
