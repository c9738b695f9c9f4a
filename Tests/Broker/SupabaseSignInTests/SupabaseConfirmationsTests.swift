import RingbackBase
import SessionVault
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `A changed address or number` {
    private let name = SupabaseHouse.name
    private let alice = SupabaseHouse.alice
    private let new = "new@example.org"

    private func change(
        _ house: SupabaseHouse, email: String? = nil, phone: String? = nil,
        _ fill: (inout UserChanges) -> Void = { _ in }
    ) async throws -> FlowView {
        var changes = UserChanges()
        changes.email = try email.map { text throws(FieldError) in try EmailAddress(parsing: text) }
        changes.phone = try phone.map { text throws(FieldError) in try PhoneNumber(parsing: text) }
        fill(&changes)
        return try #require(try await house.broker.supabase.update(name, changes).flow)
    }

    private func verify(
        _ house: SupabaseHouse, _ flow: FlowView, _ code: String, _ origin: CodeOrigin = CodeOrigin()
    ) async throws(BrokerError) -> FlowView {
        try await house.broker.verify(flow.id, code: Secret(code), origin: origin)
    }

    @Test func `awaits the codes of both addresses, in either order, and says from where`() async throws {
        for first in [alice, new] {
            let house = try await SupabaseHouse.signedIn()
            let former = house.session
            let flow = try await change(house, email: " New@Example.org")
            #expect(flow.waitingFor == .code && flow.changesUser)
            #expect(flow.details.codes.compactMap(\.email) == [new, alice])
            #expect(try await house.view.user?["new_email"]?.string == new)
            #expect(try await house.view.flow?.id == flow.id)
            let asked = try #require(house.project.last("PUT /user"))
            #expect(asked.query["redirect_to"] == flow.redirectURI && asked.body["code_challenge"] != nil)

            let half = try await verify(house, flow, house.project.code(for: first))
            #expect(half.status == .pending && half.details.isHalfConfirmed)
            #expect(half.details.codes.compactMap(\.email) == [first == new ? alice : new])
            #expect(try await house.view.user?["email"]?.string == alice)

            let events = try await house.events {
                let ended = try await verify(house, flow, house.project.code(for: first == new ? alice : new))
                #expect(ended.status == .completed)
            }
            #expect(events == [.userUpdated])
            #expect(try await house.view.user?["email"]?.string == new)
            #expect(try await house.view.flow == nil)
            // One session: the one before is ended at the server, and the new one lives on in the same lane.
            #expect(await eventually { !house.project.sessions.contains(former) })
            #expect(try await house.held?.project?.sessionID == house.session)
            #expect(await house.refresh() == nil)
        }
    }

    @Test func `needs one code where the project asks the new address alone`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.behave { $0.securesEmailChange = false }
        let flow = try await change(house, email: new)
        #expect(try await verify(house, flow, house.project.code(for: new)).status == .completed)
        #expect(try await house.view.user?["email"]?.string == new)
    }

    @Test func `ends the session before at the server once the new one is written, or after a restart`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.behave { $0.securesEmailChange = false }
        let former = house.session
        let flow = try await change(house, email: new)
        await house.vault.fail(with: VaultError.unwritable(.diskFull))
        #expect(try await verify(house, flow, house.project.code(for: new)).status == .completed)
        await house.vault.fail(with: nil)
        let broker = try await house.rebirth()
        #expect(try await broker.refresh(name, isForced: true).error == nil)
        #expect(house.project.sessions.contains(former))
    }

    @Test func `takes a code from where it is said to be, and nothing for a wrong one`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        for (code, origin, word) in [
            ("999999", CodeOrigin(), "otp_expired"),
            (house.project.code(for: new), CodeOrigin(email: alice), "otp_expired"),
        ] {
            let refused = await error { try await verify(house, flow, code, origin) }
            #expect(refused?.word == word)
        }
        for (origin, field) in [
            (CodeOrigin(email: "other@example.org"), "email"), (CodeOrigin(phone: "+4915100"), "phone"),
            (CodeOrigin(kind: "phone_change"), "type"),
        ] {
            let refused = await error { try await verify(house, flow, "123456", origin) }
            guard case .invalid(field: field, _) = refused else { throw Unexpected() }
        }
        #expect(try await house.view.flow?.id == flow.id)
        let half = try await verify(
            house, flow, house.project.code(for: alice), CodeOrigin(email: alice.uppercased(), kind: "email_change"))
        #expect(half.details.isHalfConfirmed)
    }

    @Test func `may be a number, and both at once are both awaited`() async throws {
        let house = try await SupabaseHouse.signedIn()
        house.project.behave { $0.securesEmailChange = false }
        let flow = try await change(house, email: new, phone: "+49 151234")
        #expect(flow.details.codes.compactMap(\.kind) == ["email_change", "email_change", "phone_change"])
        let phone = try await verify(house, flow, house.project.code(for: "49151234"))
        #expect(phone.status == .pending && phone.details.codes.compactMap(\.phone) == [])
        #expect(try await house.view.user?["phone"] == "+49151234")
        #expect(house.project.last("POST /verify")?.body["type"] == "phone_change")
        #expect(try await verify(house, flow, house.project.code(for: new)).status == .completed)
        #expect(try await house.view.user?["email"]?.string == new)
        #expect(await house.refresh() == nil)
    }

    @Test func `is confirmed by the hash of a link too`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        for (address, status) in [(new, FlowView.Status.pending), (alice, .completed)] {
            let hash = Secret("hash-" + house.project.code(for: address))
            #expect(try await house.broker.verify(flow.id, tokenHash: hash).status == status)
        }
    }

    @Test func `is confirmed by the links, of which the first one says no more than that`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        #expect(await house.broker.receive(house.project.click(new)) == .noted(flow: flow.id))
        #expect(try await house.broker.flow(flow.id).status == .pending)
        let events = try await house.events {
            #expect(await house.broker.receive(house.project.click(alice)) == .completed(flow: flow.id))
        }
        #expect(events == [.userUpdated])
        #expect(try await house.view.user?["email"]?.string == new)
    }

    @Test func `is confirmed by a link and a code`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        _ = await house.broker.receive(house.project.click(new))
        #expect(try await verify(house, flow, house.project.code(for: alice)).status == .completed)
    }

    @Test func `is sent again by the present address, and by asking anew where there is none`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        _ = try await verify(house, flow, house.project.code(for: alice))
        let early = await error { try await house.broker.resend(flow.id) }
        #expect(early?.retryAfter == 60)
        house.clock.advance(by: 61)
        let again = try await house.broker.resend(flow.id)
        #expect(!again.details.isHalfConfirmed && again.details.codes.count == 2)
        #expect(house.project.last("POST /resend")?.body["email"]?.string == alice)
        #expect(house.project.last("POST /resend")?.query["redirect_to"] == flow.redirectURI)
        for address in [alice, new] { _ = try await verify(house, flow, house.project.code(for: address)) }
        #expect(try await house.view.user?["email"]?.string == new)

        let nobody = try await SupabaseHouse()
        try await nobody.begin("anonymous")
        let first = try await change(nobody, email: new, phone: "+49151234")
        let codes = [new, "49151234"].map(nobody.project.code)
        nobody.clock.advance(by: 61)
        _ = try await nobody.broker.resend(first.id)
        #expect(nobody.project.count("PUT /user") == 3 && nobody.project.count("POST /resend") == 0)
        #expect(codes != [new, "49151234"].map(nobody.project.code))
    }

    @Test func `joins the same change, and takes the place of another one`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        let same = try await change(house, email: new) { $0.data = JSONObject([.init("a", 1)]) }
        #expect(same.id == flow.id && house.project.count("PUT /user") == 2)
        #expect(try await house.view.user?["user_metadata"] == ["a": 1])
        house.clock.advance(by: 61)
        let other = try await change(house, email: "third@example.org")
        #expect(other.id != flow.id)
        #expect(try await house.broker.flow(flow.id).status == .cancelled)
        #expect(try await house.view.user?["new_email"] == "third@example.org")
    }

    @Test func `is no flow where nothing is awaited`() async throws {
        let house = try await SupabaseHouse.signedIn()
        var changes = UserChanges()
        changes.email = try EmailAddress(parsing: alice)
        #expect(try await house.broker.supabase.update(name, changes).flow == nil)
        changes.email = try EmailAddress(parsing: new)
        house.project.behave { server in _ = server.addUser(email: "new@example.org") }
        let taken = await error { try await house.broker.supabase.update(name, changes) }
        #expect(taken?.word == "email_exists")
        #expect(try await house.view.flow == nil)
        #expect(house.doors.opened == house.doors.closed.count)
    }

    @Test func `stands in the way of no sign-in, and is no sign-in to anybody`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        #expect(!house.facts.names.dropFirst(3).contains("signInStarted"))
        let browser = try #require(try await house.begin("browser"))
        #expect(try await house.broker.flow(flow.id).status == .pending)
        #expect(try await house.view.flow?.id == browser.id)
        // And the other way round, as for any other sign-in.
        let refused = await error {
            var changes = UserChanges()
            changes.email = try? EmailAddress(parsing: "third@example.org")
            _ = try await house.broker.supabase.update(name, changes)
        }
        guard case .conflict = refused else { throw Unexpected() }
    }

    @Test func `ends with a sign-out, which keeps nobody from being asked again`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        _ = try await house.broker.signOut(name)
        #expect(try await house.broker.flow(flow.id).status == .cancelled)
        #expect(try await house.view.state == .unauthenticated)
        #expect(await !house.broker.flowRegistry.wasRefused(name))
        let none = await error {
            var changes = UserChanges()
            changes.email = try? EmailAddress(parsing: "third@example.org")
            _ = try await house.broker.supabase.update(name, changes)
        }
        #expect(none == .signInRequired(name))
    }

    @Test func `that nobody confirms ends without a word to the account`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new)
        house.clock.advance(by: 3_601)
        #expect(await eventually { (try? await house.broker.flow(flow.id))?.status != .pending })
        guard case .expired = try await house.broker.flow(flow.id).status else { throw Unexpected() }
        #expect(try await house.view.error == nil)
    }

    @Test func `takes nothing from a session that proved a second factor`() async throws {
        let house = try await SupabaseHouse.signedIn()
        try await house.addFactor()
        house.project.behave { $0.securesEmailChange = false }
        let mine = house.session
        let flow = try await change(house, email: new)
        #expect(try await verify(house, flow, house.project.code(for: new)).status == .completed)
        #expect(try await house.view.assurance == "aal2")
        #expect(try await house.view.user?["email"]?.string == new)
        #expect(await eventually { house.project.sessions == [mine] })
        #expect(await house.refresh() == nil)
    }

    @Test func `of an anonymous person makes somebody of them`() async throws {
        let house = try await SupabaseHouse()
        try await house.begin("anonymous")
        let subject = try await house.view.subject
        let flow = try await change(house, email: new) { $0.password = SupabaseHouse.secret }
        #expect(flow.details.codes.compactMap(\.email) == [new])
        _ = try await verify(house, flow, house.project.code(for: new))
        #expect(try await house.view.subject == subject)
        #expect(try await house.view.user?["is_anonymous"] == false)
        try await house.signIn(email: new)
        #expect(try await house.view.subject == subject)
    }

    @Test func `keeps no password with its flow`() async throws {
        let house = try await SupabaseHouse.signedIn()
        let flow = try await change(house, email: new) { $0.password = Secret("another horse") }
        let kept = await house.broker.flowRegistry.entries[flow.id]?.flow.request.project?.changes
        #expect(kept?.password == nil && kept?.email?.text == new)
    }
}
