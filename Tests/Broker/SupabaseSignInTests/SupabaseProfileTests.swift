import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

@Suite(.timeLimit(.minutes(1))) struct `The app's own row` {
    private let name = SupabaseHouse.name
    private let look = "GET /rest/v1/profiles"
    private let make = "POST /rest/v1/rpc/get_or_create_profile"

    private func house(makes: Bool = false) async throws -> SupabaseHouse {
        try await SupabaseHouse { _, rules in
            rules.profile = SupabaseAccount.Profile(table: "profiles", key: "id")
            if makes { rules.profileFunction = "get_or_create_profile" }
        }
    }

    private func rows(_ rows: JSON...) -> FakeProvider.Turn {
        .answer(200, JSON.array(rows).text, [("Content-Type", "application/json")])
    }

    private func active(_ row: JSON, _ isActive: Bool = true) -> SupabaseProfile {
        .row(row.object ?? JSONObject(), isActive: isActive)
    }

    private func profile(_ house: SupabaseHouse) async throws -> SupabaseProfile? {
        try await house.broker.supabase.profile(name)
    }

    @Test func `is fetched after the sign-in with the user's token, and cached`() async throws {
        let house = try await house()
        house.project.script(look, rows(["id": "u", "points": 7]))
        try await house.signIn()
        #expect(await house.project.arrived(look))
        #expect(try await profile(house) == active(["id": "u", "points": 7]))
        #expect(house.project.count(look) == 1)
        let asked = try #require(house.project.last(look))
        #expect(asked.query["id"] == "eq.\(try await house.view.subject ?? "")")
        #expect(asked.bearer == (try await house.token()))
        // Nothing of it is kept with the session.
        let record = SessionRecord.encode(try #require(try await house.held), bootID: "b").revealed()
        #expect(!record.contains("points"))
    }

    @Test func `is fetched anew after a start and after a change of the user`() async throws {
        let house = try await house()
        house.project.script(look, rows(["n": 1]), rows(["n": 2]), rows(["n": 3]))
        try await house.signIn()
        #expect(await eventually { (try? await self.profile(house)) == active(["n": 1]) })
        var changes = UserChanges()
        changes.data = JSONObject([.init("color", "blue")])
        _ = try await house.broker.supabase.update(name, changes)
        #expect(await eventually { (try? await self.profile(house)) == active(["n": 2]) })
        let reborn = try await house.rebirth()
        #expect(await eventually { (try? await reborn.supabase.profile(self.name)) == active(["n": 3]) })
    }

    @Test func `is fetched anew after a function was called, which may have changed it`() async throws {
        let house = try await house()
        house.project.script(look, rows(["is_active": true]), rows(["is_active": false]))
        try await house.signIn()
        #expect(await eventually { (try? await self.profile(house)) == active(["is_active": true]) })
        _ = try await house.broker.supabase.call(name, function: "touch", arguments: JSONObject())
        #expect(await eventually { (try? await self.profile(house)) == active(["is_active": false], false) })
    }

    /// As after a function such as `reactivate_account`: the row of before must not be shown as the one of after.
    @Test func `of before a function's call is not shown after it, while the new one is fetched`() async throws {
        let house = try await house()
        house.project.script(look, rows(["n": 1]), rows(["n": 2]))
        try await house.signIn()
        #expect(await eventually { (try? await self.profile(house)) == active(["n": 1]) })
        house.project.hold(look)
        _ = try await house.broker.supabase.call(name, function: "touch", arguments: JSONObject())
        #expect(await house.project.arrived(look, 2))
        let reading = Task { try await profile(house) }
        house.project.release(look)
        #expect(try await reading.value == active(["n": 2]))
    }

    @Test func `whose fetch was overtaken by a function's call is not shown`() async throws {
        let house = try await house()
        house.project.script(look, rows(["n": 1]), rows(["n": 2]))
        house.project.hold(look)
        try await house.signIn()
        #expect(await house.project.arrived(look))
        let readings = (0..<20).map { _ in Task { try await profile(house) } }
        for _ in 0..<100 { await Task.yield() }
        _ = try await house.broker.supabase.call(name, function: "touch", arguments: JSONObject())
        #expect(await house.project.arrived(look, 2))
        house.project.release(look)
        for reading in readings { #expect(try await reading.value == active(["n": 2])) }
    }

    @Test func `that is missing is so told, and made by the function where there is one`() async throws {
        let without = try await house()
        without.project.script(look, rows())
        try await without.signIn()
        #expect(await eventually { (try? await self.profile(without)) == .missing })

        let house = try await house(makes: true)
        house.project.script(look, rows())
        house.project.script(make, .answer(200, #"{"id":"u","is_active":true}"#, []))
        try await house.signIn()
        let made = active(["id": "u", "is_active": true])
        #expect(await eventually { (try? await self.profile(house)) == made })
        #expect(house.project.count(make) == 1)
    }

    @Test func `made by a function without a result is fetched once more`() async throws {
        let house = try await house(makes: true)
        house.project.script(look, rows(), rows(["id": "u"]))
        house.project.script(make, .answer(204, "", []))
        try await house.signIn()
        #expect(await eventually { (try? await self.profile(house)) == active(["id": "u"]) })
        #expect(house.project.count(look) == 2)
    }

    @Test func `may say that it is not active`() async throws {
        let house = try await house()
        house.project.script(look, rows(["id": "u", "is_active": false]))
        try await house.signIn()
        #expect(
            await eventually {
                (try? await self.profile(house)) == active(["id": "u", "is_active": false], false)
            })
    }

    @Test func `of one user is not shown to the next user who signs in`() async throws {
        let house = try await house()
        house.project.script(look, rows(["n": 1]), rows(["n": 2]))
        try await house.signIn()
        #expect(await eventually { (try? await self.profile(house)) == active(["n": 1]) })
        _ = try await house.broker.signOut(name)
        await #expect(throws: BrokerError.self) { try await self.profile(house) }
        house.project.behave { _ = $0.addUser(email: "bob@example.org", password: SupabaseHouse.secret.revealed()) }
        try await house.signIn(email: "bob@example.org")
        #expect(await eventually { (try? await self.profile(house)) == active(["n": 2]) })
    }

    @Test func `that cannot be fetched does not change the session`() async throws {
        let house = try await house()
        let no = FakeProvider.Turn.answer(404, #"{"code":"42P01","message":"relation does not exist"}"#, [])
        house.project.script(look, no, no)
        try await house.signIn()
        #expect(await house.project.arrived(look))
        await #expect(throws: BrokerError.self) { try await self.profile(house) }
        #expect(try await house.view.state == .authenticated)
    }

    @Test func `is nil if the account names no table`() async throws {
        let house = try await SupabaseHouse.signedIn()
        #expect(try await profile(house) == nil)
        #expect(house.project.count(look) == 0)
    }
}
