import RingbackBase
import Synchronization
import Testing

@testable import APIServer
@testable import BrokerCore
@testable import BrokerTestSupport

/// A desk, what it told, and programs that ask it.
private final class Office: Sendable {
    let clock = TestClock()
    let desk: ConsentDesk
    let work: AccountName
    private let log = Log()

    init(_ mode: ConsentMode = .ask, programs: Set<String> = []) throws {
        work = try #require(AccountName("work"))
        desk = ConsentDesk(file: nil, clock: clock.clock, tell: log.add)
        desk.configure([work: ConsentDesk.Rule(mode, programs: programs)])
    }

    var told: [String] { log.lines.withLock { $0 } }

    final class Log: Sendable {
        let lines = Mutex<[String]>([])

        @Sendable func add(_ news: ConsentNews) {
            let line =
                switch news {
                case .used(_, _, let program): "used \(program.executable ?? "")"
                case .requested(let question): "requested \(question.program.executable ?? "")"
                case .decided(_, let decision, let remember, _): "\(decision) \(remember)"
                case .lapsed: "lapsed"
                case .flooded: "flooded"
                }
            lines.withLock { $0.append(line) }
        }
    }

    func request(
        _ executable: String = "/usr/bin/git", session: String = "one", use: ConsentUse = .token,
        unit: String? = nil, isRootOwned: Bool = true
    ) -> ConsentDesk.Request {
        ConsentDesk.Request(
            account: work, use: use, scope: nil,
            program: ProgramIdentity(executable: executable, unit: unit, isRootOwned: isRootOwned),
            origin: ProgramOrigin(session: session))
    }

    /// Asks in a task of its own, and returns when the question is open.
    func ask(_ request: ConsentDesk.Request) async throws -> (id: String, answer: Task<ConsentDesk.Ruling, Never>) {
        let before = Set(desk.questions.map(\.id))
        let task = Task { await desk.admit(request, within: .seconds(60)) }
        #expect(await eventually { desk.questions.contains { !before.contains($0.id) } })
        return (try #require(desk.questions.first { !before.contains($0.id) }).id, task)
    }

    static let other = ProgramOrigin(session: "of the user")

    @discardableResult
    func answer(
        _ id: String, _ decision: ConsentDecision = .allow, _ remembering: ConsentDesk.Remembering = .once,
        at origin: ProgramOrigin? = other
    ) throws -> ConsentQuestion {
        try desk.answer(id, decision, remembering, by: .notice, at: origin)
    }

    /// What a program gets without a question.
    func ruling(_ request: ConsentDesk.Request) async -> ConsentDesk.Ruling {
        await desk.admit(request, within: .seconds(60), mayAsk: false)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A request for consent` {
    @Test(arguments: [
        (ConsentMode.allow, ConsentDesk.Ruling.allowed), (.notify, .allowed), (.deny, .denied),
        (.ask, .required(isFlooded: false)),
    ])
    func `is decided by the account's consent`(mode: ConsentMode, ruling: ConsentDesk.Ruling) async throws {
        let office = try Office(mode)
        #expect(await office.ruling(office.request()) == ruling)
        #expect(office.desk.isFree("work") == (mode == .allow) && office.desk.isFree("other"))
        #expect(office.desk.allowsAtOnce(office.request()) == (ruling == .allowed))
    }

    @Test(arguments: [ConsentMode.ask, .deny]) func `of a program in the list is allowed`(mode: ConsentMode)
        async throws
    {
        let office = try Office(mode, programs: ["/usr/bin/git", "unit:backup.service"])
        #expect(await office.ruling(office.request()) == .allowed)
        #expect(await office.ruling(office.request("/bin/x", unit: "backup.service")) == .allowed)
        #expect(await office.ruling(office.request("/bin/x", unit: "other.service")) != .allowed)
        #expect(await office.ruling(office.request("/usr/bin/gitk")) != .allowed)
    }

    @Test func `with notify is told once for each program`() async throws {
        let office = try Office(.notify)
        for _ in 0..<3 {
            #expect(await office.desk.admit(office.request(), within: .zero) == .allowed)
        }
        #expect(await office.desk.admit(office.request(session: "two"), within: .zero, mayAsk: false) == .allowed)
        #expect(await office.desk.admit(office.request("/bin/x"), within: .zero) == .allowed)
        #expect(office.told == ["used /usr/bin/git", "used /bin/x"])
    }

    @Test func `waits for the answer, which holds for all that wait`() async throws {
        let office = try Office()
        let (id, first) = try await office.ask(office.request())
        let second = Task { await office.desk.admit(office.request(use: .idToken), within: .seconds(60)) }
        #expect(await eventually { office.desk.questions.first?.requests == 2 })
        #expect(try office.answer(id).id == id)
        #expect(await first.value == .allowed)
        #expect(await second.value == .allowed)
        #expect(office.told == ["requested /usr/bin/git", "allow once"])
        // Once is once.
        #expect(await office.ruling(office.request()) == .required(isFlooded: false))
        #expect(throws: ConsentDesk.Refusal.unknown) { try office.answer(id) }
    }

    @Test func `ends at its own time, and the question with the last request`() async throws {
        let office = try Office()
        #expect(await office.desk.admit(office.request(), within: .milliseconds(20)) == .timedOut)
        #expect(office.desk.questions.isEmpty && office.told == ["requested /usr/bin/git", "lapsed"])
    }

    @Test func `of a program whose question nobody answered times out for five minutes without another`() async throws {
        let office = try Office()
        #expect(await office.desk.admit(office.request(), within: .milliseconds(20)) == .timedOut)
        office.clock.advance(by: 299)
        #expect(await office.desk.admit(office.request(session: "two"), within: .seconds(60)) == .timedOut)
        #expect(office.told == ["requested /usr/bin/git", "lapsed"])
        let (other, first) = try await office.ask(office.request("/bin/x"))
        try office.answer(other)
        #expect(await first.value == .allowed)
        office.clock.advance(by: 1)
        let (id, second) = try await office.ask(office.request())
        try office.answer(id)
        #expect(await second.value == .allowed)
    }

    @Test func `that is cancelled leaves the question to the others`() async throws {
        let office = try Office()
        let (id, first) = try await office.ask(office.request())
        let second = Task { await office.desk.admit(office.request(), within: .seconds(60)) }
        #expect(await eventually { office.desk.questions.first?.requests == 2 })
        first.cancel()
        #expect(await first.value == .cancelled)
        #expect(office.desk.questions.map(\.requests) == [1])
        try office.answer(id)
        #expect(await second.value == .allowed)
    }

    @Test func `for an exposed socket is asked about apart`() async throws {
        let office = try Office()
        let (id, token) = try await office.ask(office.request())
        let socket = Task { await office.desk.admit(office.request(use: .exposedSocket), within: .seconds(60)) }
        #expect(await eventually { office.desk.questions.first?.requests == 2 })
        try office.answer(id, .allow, .session)
        #expect(await token.value == .allowed)
        #expect(await eventually { office.desk.questions.first.map { $0.id != id } ?? false })
        let next = try #require(office.desk.questions.first)
        #expect(next.use == .exposedSocket)
        try office.answer(next.id, .deny)
        #expect(await socket.value == .denied)
        #expect(await office.ruling(office.request()) == .allowed)
    }

    @Test func `about an MCP server's secrets lets its next request for a token pass once`() async throws {
        let office = try Office()
        let (id, waiting) = try await office.ask(office.request())
        try office.answer(id)
        #expect(await waiting.value == .allowed)
        office.desk.letPass(office.request())
        #expect(await office.ruling(office.request()) == .required(isFlooded: false))
        let token = office.request(use: .idToken)
        #expect(await office.desk.admit(token, within: .zero) == .allowed)
        #expect(await office.desk.admit(token, within: .zero) == .timedOut)
        office.desk.letPass(office.request())
        office.clock.advance(by: 5)
        #expect(await office.desk.admit(token, within: .zero) == .timedOut)
    }

    @Test func `is decided anew by a reload`() async throws {
        let office = try Office()
        let (_, first) = try await office.ask(office.request())
        office.desk.configure([office.work: ConsentDesk.Rule(.deny)])
        #expect(await first.value == .denied)
        office.desk.configure([office.work: ConsentDesk.Rule(.ask)])
        let (_, second) = try await office.ask(office.request())
        office.desk.configure([:])
        #expect(await second.value == .allowed)
        #expect(office.desk.isFree("work"))
    }
}

@Suite(.timeLimit(.minutes(1))) struct `An answer to a question of consent` {
    private static let here = ProgramOrigin(group: "app", session: "s", process: "7 1")

    @Test(arguments: [
        (ProgramOrigin(group: "app", session: "x"), true), (ProgramOrigin(group: "b", session: "s"), true),
        (ProgramOrigin(group: "b", session: "x", process: "7 1"), true), (ProgramOrigin(), true),
        (ProgramOrigin(session: "x", process: "9 1", ancestors: ["9 1", "7 1"]), true),
        (ProgramOrigin(session: "x", process: "9 1", ancestors: ["9 1", "7 2"]), false),
        (ProgramOrigin(group: "b", session: "x", process: "8 1"), false), (ProgramOrigin(session: "x"), false),
    ])
    func `is refused from the program that asked, its group and its session`(origin: ProgramOrigin, isRefused: Bool)
        async throws
    {
        let office = try Office()
        var request = office.request()
        request.origin = Self.here
        let (id, waiting) = try await office.ask(request)
        if isRefused {
            #expect(throws: ConsentDesk.Refusal.asker) { try office.answer(id, at: origin) }
            #expect(office.desk.questions.count == 1)
            try office.answer(id, at: nil)
        } else {
            try office.answer(id, at: origin)
        }
        #expect(await waiting.value == .allowed)
    }

    @Test func `comes from another terminal of an emulator, and holds in the terminal that asked`() async throws {
        let office = try Office()
        var request = office.request()
        request.origin = ProgramOrigin(group: "emulator", session: "one", isOneTerminal: true)
        let (id, waiting) = try await office.ask(request)
        let without = ProgramOrigin(group: "emulator", session: "two")
        #expect(throws: ConsentDesk.Refusal.asker) { try office.answer(id, at: request.origin) }
        #expect(throws: ConsentDesk.Refusal.asker) { try office.answer(id, at: without) }
        let other = ProgramOrigin(group: "emulator", session: "two", isOneTerminal: true)
        try office.answer(id, .allow, .session, at: other)
        #expect(await waiting.value == .allowed)
        #expect(office.desk.allowsAtOnce(request))
        for origin in [without, other] {
            request.origin = origin
            #expect(!office.desk.allowsAtOnce(request))
        }
    }

    @Test func `for the session holds in it alone, for its program`() async throws {
        let office = try Office()
        let (id, waiting) = try await office.ask(office.request())
        try office.answer(id, .allow, .session)
        #expect(await waiting.value == .allowed)
        #expect(await office.ruling(office.request(use: .lookup)) == .allowed)
        for other in [office.request("/bin/x"), office.request(session: "two"), office.request(use: .exposedSocket)] {
            #expect(await office.ruling(other) == .required(isFlooded: false))
        }
        let kept = try #require(office.desk.remembered.first)
        #expect(kept.scope == "one" && kept.expiry == nil)
        #expect(try office.desk.forget(kept.id, at: office.request().origin) == kept)
        #expect(try office.desk.forget(kept.id, at: Office.other) == nil)
        #expect(await office.ruling(office.request()) == .required(isFlooded: false))
    }

    @Test func `that denies is not forgotten for the program that was denied`() async throws {
        let office = try Office()
        let (id, waiting) = try await office.ask(office.request())
        try office.answer(id, .deny, .session)
        #expect(await waiting.value == .denied)
        let kept = try #require(office.desk.remembered.first)
        #expect(throws: ConsentDesk.Refusal.asker) {
            try office.desk.forget(kept.id, by: ["/usr/bin/git"], at: Office.other)
        }
        for origin in [office.request().origin, ProgramOrigin(group: "one")] {
            #expect(throws: ConsentDesk.Refusal.asker) { try office.desk.forget(kept.id, at: origin) }
        }
        #expect(try office.desk.forget(kept.id, by: ["/bin/x"], at: Office.other) == kept)
    }

    @Test func `for a span ends with it`() async throws {
        let office = try Office()
        let (id, waiting) = try await office.ask(office.request())
        try office.answer(id, .allow, try #require(ConsentDesk.Remembering("8h")))
        #expect(await waiting.value == .allowed)
        office.clock.advance(by: 8 * 3_600 - 1)
        #expect(await office.ruling(office.request()) == .allowed)
        office.clock.advance(by: 1)
        #expect(await office.ruling(office.request()) == .required(isFlooded: false))
        #expect(office.desk.remembered.isEmpty)
    }

    @Test func `for always holds for the file while root owns it`() async throws {
        let office = try Office()
        let (own, first) = try await office.ask(office.request("/home/u/x", isRootOwned: false))
        #expect(throws: ConsentDesk.Refusal.notRootOwned) { try office.answer(own, .allow, .always) }
        try office.answer(own)
        #expect(await first.value == .allowed)
        let (id, second) = try await office.ask(office.request())
        try office.answer(id, .allow, .always)
        #expect(await second.value == .allowed)
        #expect(await office.ruling(office.request(session: "two")) == .allowed)
        #expect(await office.ruling(office.request(isRootOwned: false)) == .required(isFlooded: false))
    }

    @Test func `that denies holds for five minutes`() async throws {
        let office = try Office()
        let (id, waiting) = try await office.ask(office.request())
        try office.answer(id, .deny)
        #expect(await waiting.value == .denied)
        office.clock.advance(by: 299)
        #expect(await office.desk.admit(office.request(), within: .seconds(60)) == .denied)
        office.clock.advance(by: 1)
        #expect(await office.ruling(office.request()) == .required(isFlooded: false))
    }

    @Test(arguments: ["", "Once", "8", "8x", "0s", "31d", "999999999999999w", "-1s"])
    func `is not remembered for what is no span`(text: String) { #expect(ConsentDesk.Remembering(text) == nil) }

    @Test func `is kept across a restart if it is for always`() throws {
        let office = try Office()
        let question = ConsentQuestion(
            id: "x", office.work, .token, scope: nil, program: office.request().program,
            origin: ProgramOrigin(session: "one"), requestedAt: WallInstant(seconds: 1),
            expiresAt: WallInstant(seconds: 2))
        let always = try #require(try ConsentDesk.Remembering.always.consent(question, .allow, by: office.clock.clock))
        let session = try #require(try ConsentDesk.Remembering.session.consent(question, .deny, by: office.clock.clock))
        #expect(RememberedConsent.decode(RememberedConsent.encode([always, session])) == [always])
        #expect(try ConsentDesk.Remembering.once.consent(question, .allow, by: office.clock.clock) == nil)
        for text in ["", "{}", "[]", #"{"version":2,"consents":[]}"#, #"{"version":1,"consents":[{}, 1, null]}"#] {
            #expect(RememberedConsent.decode(Array(text.utf8)) == [])
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A flood of questions of consent` {
    @Test func `is three that are open, then refusals with one notice`() async throws {
        let office = try Office()
        var open: [(id: String, answer: Task<ConsentDesk.Ruling, Never>)] = []
        for number in 1...3 { open.append(try await office.ask(office.request("/bin/\(number)"))) }
        for number in 4...9 {
            #expect(
                await office.desk.admit(office.request("/bin/\(number)"), within: .seconds(60))
                    == .required(isFlooded: true))
        }
        #expect(office.told.count { $0 == "flooded" } == 1)
        for question in open { try office.answer(question.id) }
        for question in open { #expect(await question.answer.value == .allowed) }
        let (id, next) = try await office.ask(office.request("/bin/4"))
        try office.answer(id)
        #expect(await next.value == .allowed)
    }

    @Test func `is twenty in an hour`() async throws {
        let office = try Office()
        for _ in 0..<20 {
            let (id, waiting) = try await office.ask(office.request())
            try office.answer(id)
            #expect(await waiting.value == .allowed)
        }
        #expect(await office.desk.admit(office.request(), within: .seconds(60)) == .required(isFlooded: true))
        office.clock.advance(by: 3_599)
        #expect(await office.desk.admit(office.request(), within: .seconds(60)) == .required(isFlooded: true))
        office.clock.advance(by: 1)
        let (id, waiting) = try await office.ask(office.request())
        try office.answer(id)
        #expect(await waiting.value == .allowed)
        #expect(office.told.count { $0 == "flooded" } == 1)
    }
}
