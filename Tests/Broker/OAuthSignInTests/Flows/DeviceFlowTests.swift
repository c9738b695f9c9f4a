import OAuth
import RingbackBase
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import OAuthSignIn

@Suite(.timeLimit(.minutes(1))) struct `Flows on another device` {
    @Test func `DEV-03: a flow shows the code and its addresses, and waits for the device`() async throws {
        let house = try await DeviceHouse()
        let flow = try await house.begin()
        #expect(flow.method == OAuthMethod.device.method && flow.waitingFor == .device && flow.status == .pending)
        #expect(flow.authorizationURL.isEmpty && flow.redirectURI.isEmpty)
        #expect(
            flow.details.device
                == DeviceCode(
                    userCode: "WDJB-MJHT", verificationURI: "https://id.example/device",
                    verificationURIComplete: "https://id.example/device?user_code=WDJB-MJHT"))
        // Its own bound is shorter than the codes' life.
        #expect(flow.expiresAt == flow.startedAt + .seconds(600))
    }

    @Test func `a client with a secret proves itself in both requests, and is asked for it once`() async throws {
        let fetched = Counter()
        let house = try await DeviceHouse { account in
            account.oauth.clientSecret = Account.SecretSource { () throws(BrokerError) in
                await fetched.add()
                return Secret("hush")
            }
            account.oauth.clientAuthentication = .clientSecretBasic
        }
        house.server.script([.pending, .pending, .yes()])
        let flow = try await house.begin()
        await house.live(flow.id)
        #expect(house.server.questions.allSatisfy { $0.hasCredentials && $0.form["client_id"] == "ringback" })
        #expect(await fetched.count == 1)
    }

    @Test func `a yes becomes a session`() async throws {
        let house = try await DeviceHouse()
        house.server.script([.pending, .yes("bob")])
        let flow = try await house.begin()
        await house.live(flow.id)
        #expect(try await house.status(flow.id) == .completed)
        let view = try await house.broker.account(House.name)
        #expect(view.state == .authenticated && view.subject == "bob")
        #expect(try await house.broker.session(House.name, SessionQuery()).token.value == Secret("access-of-bob"))
        #expect(house.facts.names.filter { $0 != "vaultOpened" } == ["signInStarted", "sessionOpened", "signInEnded"])
        // The program that shows the code waits for it.
        guard case .signInEnded(_, let method, .completed, _, _, endsElsewhere: false)? = house.facts.all.last
        else { throw Unexpected() }
        #expect(method == OAuthMethod.device.method)
    }

    @Test func `an ID token that is not good ends it, and nothing is held`() async throws {
        let house = try await DeviceHouse()
        house.server.provider.behave { $0.claims["aud"] = "somebody-else" }
        house.server.script([.yes()])
        let flow = try await house.begin()
        await house.live(flow.id)
        guard case .failed(.provider(.invalidResponse)) = try await house.status(flow.id) else { throw Unexpected() }
        #expect(try await house.broker.account(House.name).state == .unauthenticated)
    }

    @Test func `an answer that is no answer ends it`() async throws {
        for answer in [DeviceServer.Answer.body(200, "<html>"), .body(200, "{}"), .body(302, ""), .body(404, "no")] {
            let house = try await DeviceHouse()
            house.server.script([answer])
            let flow = try await house.begin()
            await house.live(flow.id)
            guard case .failed(.provider(.invalidResponse)) = try await house.status(flow.id)
            else { throw Unexpected() }
            #expect(house.server.questions.count == 1)
        }
    }

    @Test func `another person than the one who is signed in changes nothing, unless it is meant`() async throws {
        let house = try await DeviceHouse()
        house.server.script([.yes("alice"), .yes("bob"), .yes("bob")])
        let first = try await house.begin()
        await house.live(first.id)
        let second = try await house.begin()
        await house.live(second.id)
        guard case .failed(.conflict) = try await house.status(second.id) else { throw Unexpected() }
        #expect(try await house.broker.account(House.name).subject == "alice")
        let third = try await house.begin(switching: true)
        await house.live(third.id)
        #expect(try await house.status(third.id) == .completed)
        #expect(try await house.broker.account(House.name).subject == "bob")
    }

    @Test func `equal sign-ins join, another way is told of it`() async throws {
        let house = try await DeviceHouse()
        let first = try await house.begin()
        #expect(try await house.begin().id == first.id)
        #expect(house.server.asked.count == 1)
        let conflict = await thrown(by: try await house.broker.signIn(House.name, SignInRequest()))
        guard case .conflict(let reason, .signInPending(House.name))? = conflict else { throw Unexpected() }
        #expect(reason == .anotherPending(House.name, method: SignInMethod(rawValue: "device"), age: 0))
        #expect(try await house.broker.cancel(first.id, isForAll: false).status == .pending)
        #expect(try await house.broker.cancel(first.id, isForAll: false).status == .cancelled)
    }

    @Test func `a sign-in that was cancelled asks no more`() async throws {
        let house = try await DeviceHouse()
        let flow = try await house.begin()
        await house.live(flow.id, questions: 1)
        #expect(await house.settles(flow.id))
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        for _ in 0..<10 {
            house.clock.advance(by: 30)
            await Task.yield()
        }
        #expect(await eventually { house.clock.wakes.isEmpty })
        #expect(house.server.questions.count == 1)
    }

    @Test func `an approval that comes after the flow was cancelled is revoked`() async throws {
        let house = try await DeviceHouse()
        house.server.script([.yes()])
        house.server.hold()
        let flow = try await house.begin()
        #expect(await house.settles(flow.id))
        house.clock.advance(by: 6)
        #expect(await eventually { house.server.arrivals == 1 })
        _ = try await house.broker.cancel(flow.id, isForAll: true)
        house.server.release()
        #expect(await eventually { house.server.provider.revoked.contains("refresh-of-alice") })
        #expect(try await house.status(flow.id) == .cancelled)
        #expect(try await house.broker.account(House.name).state == .unauthenticated)
    }

    @Test func `a locked vault is no reason to lose a yes`() async throws {
        let house = try await DeviceHouse()
        house.server.script([.yes()])
        let flow = try await house.begin()
        try await house.broker.lockVault()
        for _ in 0..<4 {
            #expect(await house.settles(flow.id))
            house.clock.advance(by: 5)
        }
        #expect(house.server.questions.isEmpty)
    }

    @Test func `a provider without an endpoint for it is told with what to do`() async throws {
        for isByHand in [false, true] {
            let house = try await DeviceHouse(offersDevices: false) { account in
                guard isByHand else { return }
                let metadata = try? ProviderMetadata(
                    authorizationEndpoint: "https://id.example/authorize", tokenEndpoint: "https://id.example/token")
                if let metadata { account.oauth.endpoints = .fixed(metadata) }
                account.scopes = []
            }
            let refusal = await thrown(by: try await house.begin())
            guard case .methodUnsupported(let reason, method: "device")? = refusal else { throw Unexpected() }
            #expect(reason.oauth == .noDeviceEndpoint(House.name, isConfigured: isByHand))
            #expect(await house.broker.flows().isEmpty)
        }
    }

    @Test func `endpoints by hand may have one`() async throws {
        let house = try await DeviceHouse { account in
            let metadata = try? ProviderMetadata(
                authorizationEndpoint: "https://id.example/authorize", tokenEndpoint: "https://id.example/token",
                deviceAuthorizationEndpoint: "https://id.example/device_authorization")
            if let metadata { account.oauth.endpoints = .fixed(metadata) }
            account.scopes = ["mail"]
        }
        house.server.script([.yes()])
        let flow = try await house.begin()
        await house.live(flow.id)
        #expect(try await house.status(flow.id) == .completed)
    }

    @Test func `DEV-11: the device code is in nothing that can be shown`() async throws {
        let house = try await DeviceHouse()
        house.server.script([.body(400, #"{"error":"device-1","error_description":"device-1 is wrong"}"#)])
        let flow = try await house.begin()
        await house.live(flow.id)
        let view = try await house.broker.flow(flow.id)
        #expect(!String(reflecting: view).contains("device-1"))
        #expect(!String(describing: house.facts.all).contains("device-1"))
    }
}

private actor Counter {
    private(set) var count = 0
    func add() { count += 1 }
}
