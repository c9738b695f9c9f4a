import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A message of a flow` {
    private let alice = SupabaseHouse.alice

    private func otp(_ house: SupabaseHouse) async throws -> FlowView {
        try #require(try await house.begin("otp") { $0.email = alice })
    }

    private func code(_ house: SupabaseHouse) -> Secret { Secret(house.project.code(for: alice)) }

    private func verify(_ house: SupabaseHouse, _ flow: FlowView, _ code: Secret) async -> BrokerError? {
        await error { try await house.broker.verify(flow.id, code: code) }
    }

    private func resend(_ house: SupabaseHouse, _ flow: FlowView) async -> BrokerError? {
        await error { try await house.broker.resend(flow.id) }
    }

    @Test func `is sent again, not before its time`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        let first = code(house)
        house.clock.advance(by: 20)
        // Our own bound, and it says so.
        #expect(await resend(house, flow) == .resendTooEarly(retryAfter: 40))
        #expect(house.project.count("POST /otp") == 1)
        house.clock.advance(by: 40)
        #expect(try await house.broker.resend(flow.id).resendAfter?.seconds == house.clock.now + 60)
        #expect(code(house) != first)
        #expect(await verify(house, flow, first)?.word == "otp_expired")
        #expect(try await house.broker.verify(flow.id, code: code(house)).status == .completed)
    }

    @Test func `waits as long as the server asks`() async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.sendInterval = 100 }
        let flow = try await otp(house)
        house.clock.advance(by: 61)
        #expect(await resend(house, flow)?.retryAfter == 39)
        #expect(try await house.broker.flow(flow.id).resendAfter?.seconds == house.clock.now + 39)
        #expect(await resend(house, flow) == .provider(.rateLimited(retryAfter: 39)))
        #expect(house.project.count("POST /otp") == 2)
    }

    @Test(arguments: ["magic_link", "sign_up", "recovery"])
    func `whose older link is followed leaves its flow waiting for the newest one`(method: String) async throws {
        let house = try await SupabaseHouse()
        house.project.behave { $0.confirmsItself = false }
        let address = method == "sign_up" ? "new@example.org" : alice
        let flow = try #require(
            try await house.begin(method) { fields in
                fields.email = address
                if method == "sign_up" { fields.password = SupabaseHouse.secret }
            })
        house.clock.advance(by: 61)
        _ = try await house.broker.resend(flow.id)
        let mark = flow.redirectURI.contains("?") ? "&" : "?"
        let older = "\(flow.redirectURI)\(mark)error=access_denied&error_code=otp_expired&error_description=expired"
        for _ in 0..<2 { #expect(await house.broker.receive(older) == .outdated(flow: flow.id)) }
        #expect(try await house.broker.flow(flow.id).status == .pending)
        #expect(try await house.view.error == nil)
        #expect(await house.broker.receive(house.project.click(address)) == .completed(flow: flow.id))
        #expect(await house.broker.receive(older) == .ended)
    }

    @Test func `that could not be sent is tried again at once`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        house.clock.advance(by: 60)
        house.project.script("POST /otp", .fail(.unreachable(host: "h", reason: "r")))
        #expect(await resend(house, flow)?.isTransient == true)
        #expect(await resend(house, flow) == nil)
    }

    @Test func `of a sign-up is sent again as what it was, to an address or to a number`() async throws {
        for (email, phone) in [("new@example.org", nil), (nil, "+49 151 234")] as [(String?, String?)] {
            let house = try await SupabaseHouse()
            house.project.behave { $0.confirmsItself = false }
            let flow = try #require(
                try await house.begin("sign_up") { fields in
                    fields.email = email
                    fields.phone = phone
                    fields.password = SupabaseHouse.secret
                })
            #expect(flow.waitingFor == (email == nil ? .code : .emailConfirmation))
            #expect(house.doors.opened == (email == nil ? 0 : 1))
            house.clock.advance(by: 60)
            _ = try await house.broker.resend(flow.id)
            let asked = try #require(house.project.last("POST /resend"))
            #expect(asked.body["type"]?.string == (email == nil ? "sms" : "signup"))
            #expect(asked.query["redirect_to"] == (email == nil ? nil : flow.redirectURI))
            #expect(asked.body["password"] == nil)
            let typed = Secret(house.project.code(for: email ?? "49151234"))
            #expect(try await house.broker.verify(flow.id, code: typed).status == .completed)
            #expect(house.project.last("POST /verify")?.body["type"]?.string == (email == nil ? "sms" : "email"))
        }
    }

    @Test func `to a user who forgot the password ends in a session that can set a new password`() async throws {
        for isByLink in [true, false] {
            let house = try await SupabaseHouse()
            let name = SupabaseHouse.name
            let flow = try #require(
                try await house.broker.supabase.resetPassword(name, email: " \(alice.uppercased())").flow)
            let events = try await house.events {
                if isByLink {
                    #expect(await house.broker.receive(house.project.click()) == .completed(flow: flow.id))
                } else {
                    _ = try await house.broker.verify(flow.id, code: code(house))
                }
            }
            #expect(events == [.passwordRecovery])
            var changes = UserChanges()
            changes.password = SupabaseHouse.secret
            let same = await error { try await house.broker.supabase.update(name, changes) }
            guard case .problem(let problem) = same else { throw Unexpected() }
            #expect(problem.code == "password_reset_failed")
            changes.password = Secret("another horse")
            _ = try await house.broker.supabase.update(name, changes)
        }
    }

    @Test func `to a user who forgot the password is a recovery even if the token does not say so`() async throws {
        let house = try await SupabaseHouse()
        let flow = try #require(try await house.broker.supabase.resetPassword(SupabaseHouse.name, email: alice).flow)
        let body = house.project.behave { server in
            let user = server.user(email: SupabaseHouse.alice)?.id ?? ""
            return server.open(user, "otp", at: 1_800_000_000).body
        }
        house.project.script("POST /verify", .answer(200, body.text, []))
        let events = try await house.events {
            _ = try await house.broker.verify(flow.id, code: Secret("123456"))
        }
        #expect(events == [.passwordRecovery])
    }

    @Test func `to an unknown person tells nothing`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await house.broker.supabase.resetPassword(SupabaseHouse.name, email: "nobody@example.org").flow
        #expect(flow?.status == .pending)
    }

    @Test func `whose code is being redeemed is not ended by its deadline`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        let typed = code(house)
        house.project.hold("POST /verify")
        let verifying = Task { try await house.broker.verify(flow.id, code: typed) }
        #expect(await house.project.arrived("POST /verify"))
        house.clock.advance(by: SupabaseFlow.messageTimeout.wholeSeconds + 1)
        #expect(try await house.broker.flow(flow.id).status == .pending)
        house.project.release("POST /verify")
        #expect(try await verifying.value.status == .completed)
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `whose code was wrong ends by its deadline all the same`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        house.project.hold("POST /verify")
        let verifying = Task { await verify(house, flow, Secret("000000")) }
        #expect(await house.project.arrived("POST /verify"))
        house.clock.advance(by: SupabaseFlow.messageTimeout.wholeSeconds + 1)
        house.project.release("POST /verify")
        _ = await verifying.value
        guard case .expired = try await house.broker.flow(flow.id).status else { throw Unexpected() }
    }

    @Test func `takes a second code once the first has turned out wrong`() async throws {
        let house = try await SupabaseHouse()
        let flow = try await otp(house)
        let typed = code(house)
        house.project.hold("POST /verify")
        let first = Task { await verify(house, flow, Secret("000000")) }
        #expect(await house.project.arrived("POST /verify"))
        let second = Task { try await house.broker.verify(flow.id, code: typed) }
        house.project.release("POST /verify")
        // Nobody knows which of the two reads the flow first afterwards: it may be completed by then.
        let word = await first.value?.word
        #expect(word == nil || word == "otp_expired")
        #expect(try await second.value.status == .completed)
        #expect(house.project.count("POST /verify") == 2)
    }
}
