import RingbackBase
import SupabaseAuth
import Testing

@testable import BrokerCore
@testable import BrokerTestSupport
@testable import SupabaseSignIn

/// A browser on the sign-in page of one flow, without a socket.
private struct PageVisit {
    let house: SupabaseHouse
    let session: PageSession
    let entry: String
    private let site: @Sendable (HTTPRequest) async -> HTTPResponse
    private var cookie = ""
    private var token = ""
    private(set) var path = "/"
    private(set) var text = ""

    init(_ house: SupabaseHouse) async throws {
        self.house = house
        let settings = #"{"external":{"email":true,"phone":true,"google":true,"github":true}}"#
        house.project.script("GET /settings", .answer(200, settings, [("Content-Type", "application/json")]))
        let flow = try #require(try await house.begin("page"))
        session = try #require(await house.broker.flowRegistry.entries[flow.id]?.flow.awaited as? PageFlow).session
        site = try #require(house.doors.site(at: session.address))
        entry = String(try #require(await house.broker.ownPage(of: flow.id)).dropFirst(session.origin.count))
        cookie = String(try #require(await ask("GET", entry).fields["Set-Cookie"]).prefix { $0 != ";" })
        await load("/")
        token = try #require(value(after: "name=\"token\" value=\""))
    }

    func code(for contact: String) -> (String, String) { ("code", house.project.code(for: contact)) }
    func value(after text: String) -> String? {
        self.text.split(separator: text).dropFirst().first.map { String($0.prefix { $0 != "\"" }) }
    }

    func ask(_ method: String, _ path: String, form: String = "") async -> HTTPResponse {
        let type = "application/x-www-form-urlencoded"
        let fields = HTTPFields([("Cookie", cookie), ("Origin", session.origin), ("Content-Type", type)])
        return await site(HTTPRequest(method: method, url: path, fields: fields, body: Secret(form)))
    }

    /// Loads a screen and follows its redirects, of which there are only a few.
    mutating func load(_ start: String) async {
        path = start
        for _ in 0..<8 {
            _ = await session.snapshot.running?.done.wait()
            let response = await ask("GET", path)
            text = response.body.revealed()
            guard let next = response.fields["Location"] else { return }
            path = next
        }
    }

    /// Sends a form, and expects the screen that follows and a text on it.
    mutating func send(
        _ action: String, _ values: (String, String)..., leadsTo screen: String, says sentence: String = "<h1>",
        at place: SourceLocation = #_sourceLocation
    ) async {
        let form = FormEncoding.encode([("action", action), ("token", token)] + values)
        await load(await ask("POST", path, form: form).fields["Location"] ?? "/no-redirect")
        #expect(path == screen && text.contains(sentence), sourceLocation: place)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The sign-in page without a browser` {
    private let alice = ("email", SupabaseHouse.alice)
    private let bob = ("email", "bob@example.org")
    private let password = ("password", SupabaseHouse.secret.revealed())

    @Test func `the sign-in page names a wrong password, and uses no form after the right one`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        #expect(visit.text.contains(visit.session.words) && visit.text.contains("GitHub"))
        await visit.send("password", ("email", "0151"), password, leadsTo: "/", says: "id=\"email-wrong\">Please enter")
        await visit.send("password", alice, ("password", "no"), leadsTo: "/", says: "Wrong email, phone number or")
        await visit.send("password", alice, password, leadsTo: "/done", says: SupabaseHouse.alice)
        await visit.send("code", ("code", "123456"), leadsTo: "/unused")
    }

    @Test func `the sign-in page takes the code of a mail and sends another mail after a minute`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        await visit.send("mail", alice, leadsTo: "/code", says: SupabaseHouse.alice)
        await visit.send("resend", leadsTo: "/resend", says: "A message was sent already.")
        visit.house.clock.advance(by: 61)
        await visit.send("resend", leadsTo: "/code")
        await visit.send("code", ("code", "000000"), leadsTo: "/code", says: "The code is wrong, or used up")
        await visit.send("code", visit.code(for: SupabaseHouse.alice), leadsTo: "/done")
    }

    @Test func `the sign-in page signs a new user up after the code for the address`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        visit.house.project.behave { $0.confirmsItself = false }
        await visit.send("sign_up", bob, ("password", "x"), leadsTo: "/sign-up", says: "too weak")
        await visit.send("sign_up", bob, password, leadsTo: "/code", says: bob.1)
        await visit.send("code", visit.code(for: bob.1), leadsTo: "/done")
    }

    @Test func `the sign-in page asks for a new password after a forgotten one`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        await visit.send("forgotten", alice, leadsTo: "/code")
        await visit.send("code", visit.code(for: SupabaseHouse.alice), leadsTo: "/new-password")
        await visit.send("new_password", ("password", "x"), leadsTo: "/new-password", says: "too weak")
        await visit.send("new_password", ("password", "another horse"), leadsTo: "/done")
        #expect(visit.house.project.behave { $0.user(email: SupabaseHouse.alice)?.password } == "another horse")
    }

    @Test(arguments: ["totp", "phone"])
    func `the sign-in page asks for the second factor after the password`(kind: String) async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        let factor = ("factor", "00000000-0000-4000-8000-00000000000f")
        let verified = SupabaseServer.Factor(id: factor.1, kind: kind, name: "mine", isVerified: true)
        visit.house.project.behave { for id in $0.users.keys { $0.users[id]?.factors = [verified] } }
        await visit.send("password", alice, password, leadsTo: "/factor", says: "mine")
        if kind == "phone" {
            await visit.send("challenge", factor, leadsTo: "/factor", says: "name=\"code\"")
            await visit.send("challenge", factor, leadsTo: "/factor", says: "A message was sent already.")
        }
        await visit.send("factor", factor, ("code", "000000"), leadsTo: "/factor", says: "Invalid code.")
        await visit.send("factor", factor, ("code", "123456"), leadsTo: "/done")
        #expect(try await visit.house.held?.project?.assurance == .aal2)
    }

    @Test func `the sign-in page asks before another user replaces the account's`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse.signedIn())
        visit.house.project.behave { _ = $0.addUser(email: bob.1, password: password.1) }
        await visit.send("password", bob, password, leadsTo: "/", says: "The account is signed in as another user.")
        await visit.send("switch_user", leadsTo: "/done", says: bob.1)
    }

    @Test func `a link of the sign-in page leads once to its provider`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        let link = "/go/" + (try #require(visit.value(after: "href=\"/go/")))
        let page = try #require(await visit.ask("GET", link).fields["Location"])
        #expect(await visit.ask("GET", link).fields["Location"] == "/")
        _ = await visit.house.broker.receive(try visit.house.project.consent(page))
        await visit.load("/")
        #expect(visit.path == "/done")
    }

    @Test func `the sign-in page lets one browser in, until the sign-in is cancelled`() async throws {
        var visit = try await PageVisit(try await SupabaseHouse())
        #expect(await visit.ask("GET", visit.entry).status == 410)
        #expect(await visit.ask("POST", "/", form: "action=resend").status == 403)
        _ = try await visit.house.broker.cancel(try #require(visit.session.snapshot.flowID), isForAll: true)
        await visit.load("/")
        #expect(visit.path == "/ended" && visit.text.contains("It was cancelled."))
    }
}
