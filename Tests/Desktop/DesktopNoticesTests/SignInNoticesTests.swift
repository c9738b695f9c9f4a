import BrokerCore
import Desktop
import RingbackBase
import Synchronization
import Testing

@testable import DesktopNotices

@Suite(.timeLimit(.minutes(1))) struct `The snapshot of notices` {
    private let hall = Hall()
    private static let end = WallInstant(seconds: 1_800_003_600)

    private func ended(
        _ outcome: BrokerFact.Outcome, endsElsewhere: Bool = true, _ error: BrokerError? = nil
    ) -> BrokerFact {
        .signInEnded(
            Hall.work, method: .browser, outcome, duration: .seconds(1), error: error, endsElsewhere: endsElsewhere)
    }

    @Test func `shows one notice for a thousand callers, until it is answered`() async throws {
        for _ in 0..<1_000 { hall.note(.signInWanted(Hall.work)) }
        let (id, notice) = try await hall.nextNotice()
        #expect(notice.summary == "Sign in to work" && notice.staysUntilAnswered)
        #expect(notice.actions.map(\.key) == ["default", "sign_in"])
        #expect(notice.bodyWithoutActions?.hasSuffix("Run: ringback login work") == true)
        for _ in 0..<1_000 { hall.note(.signInWanted(Hall.work)) }
        try await hall.expectNothing()
        hall.tell(.answered(notice: id, action: "sign_in", activationToken: "token"))
        #expect(await hall.next() == .closed(id))
        #expect(await hall.next() == .askedForPage("work"))
        #expect(await hall.next() == .opened("https://id.example.org/authorize", "token"))
        #expect(hall.openedFor.withLock { $0 } == [Hall.work])
        // A program that comes late has nothing new to ask of somebody who looks at the page.
        hall.note(.signInWanted(Hall.work))
        try await hall.expectNothing()
        // Nobody finished it, and somebody waits again.
        hall.note(ended(.expired))
        hall.note(.signInWanted(Hall.work))
        _ = try await hall.nextNotice()
    }

    @Test func `calls an account by its label`() async throws {
        hall.snapshot.configure(isEnabled: true, accounts: [Hall.work], labels: ["work": "Swisscoin (id.example.org)"])
        hall.note(.signInWanted(Hall.work))
        let (_, notice) = try await hall.nextNotice()
        #expect(notice.summary == "Sign in to Swisscoin (id.example.org)")
        #expect(notice.bodyWithoutActions?.hasSuffix("Run: ringback login work") == true)
    }

    @Test func `opens nothing by itself`() async throws {
        hall.note(
            .signInWanted(Hall.work), .sessionEnding(Hall.home, at: Self.end), .sessionEnded(Hall.home, subject: nil))
        for _ in 0..<3 { _ = try await hall.nextNotice() }
        try await hall.expectNothing()
    }

    @Test func `has one place for each account, in which the newer replaces`() async throws {
        hall.note(.sessionEnding(Hall.work, at: Self.end))
        let (first, ending) = try await hall.nextNotice()
        #expect(ending.summary == "The session of work is ending")
        // Said once, however often it is warned of.
        hall.note(.sessionEnding(Hall.work, at: Self.end))
        try await hall.expectNothing()
        hall.note(.sessionEnded(Hall.work, subject: nil))
        guard case .showed(let ended, replacing: first) = await hall.next() else { throw Hall.Missing() }
        #expect(ended.summary == "The session of work has ended")
        // It offers the sign-in that a program asks for now.
        hall.note(.signInWanted(Hall.work))
        try await hall.expectNothing()
        hall.note(.signInWanted(Hall.home))
        guard case .showed(_, replacing: nil) = await hall.next() else { throw Hall.Missing() }
    }

    @Test func `says who is signed in where the question stood`() async throws {
        hall.note(.signInWanted(Hall.work))
        let (id, _) = try await hall.nextNotice()
        hall.note(.sessionOpened(Hall.work, subject: "s", replacing: nil), ended(.completed))
        #expect(await hall.next() == .closed(id))
        let (_, notice) = try await hall.nextNotice()
        #expect(notice.summary == "Signed in to work" && notice.body == "As alice@example.org.")
        #expect(notice.actions.isEmpty && !notice.staysUntilAnswered)
    }

    @Test func `says nothing of a sign-in that ends where it was asked for`() async throws {
        hall.note(.signInWanted(Hall.work))
        let (id, _) = try await hall.nextNotice()
        hall.note(.sessionOpened(Hall.work, subject: "s", replacing: nil), ended(.completed, endsElsewhere: false))
        #expect(await hall.next() == .closed(id))
        try await hall.expectNothing()
    }

    @Test func `goes with the session that the person ended, and with the account`() async throws {
        hall.note(.sessionEnding(Hall.work, at: Self.end))
        let (first, _) = try await hall.nextNotice()
        hall.note(.sessionClosed(Hall.work, subject: nil))
        #expect(await hall.next() == .closed(first))
        hall.note(.signInWanted(Hall.work))
        let (second, _) = try await hall.nextNotice()
        hall.snapshot.configure(isEnabled: true, accounts: [Hall.home, Hall.other])
        #expect(await hall.next() == .closed(second))
    }

    @Test func `says once that a server refuses tokens, and not in the place of a prompt`() async throws {
        for _ in 0..<2 { hall.snapshot.tellOfRefusal(by: "git.example.org", of: Hall.work) }
        let (first, notice) = try await hall.nextNotice()
        #expect(notice.summary == "A server refuses the tokens of work" && notice.body.hasPrefix("git.example.org has"))
        #expect(notice.actions.isEmpty && !notice.staysUntilAnswered)
        try await hall.expectNothing()
        hall.note(.sessionEnded(Hall.work, subject: nil))
        guard case .showed(_, replacing: first) = await hall.next() else { throw Hall.Missing() }
        hall.snapshot.tellOfRefusal(by: "git.example.org", of: Hall.work)
        try await hall.expectNothing()
    }

    @Test(arguments: [NoticeEvent.Closing.dismissed, .expired])
    func `is quiet for five minutes after it was dismissed`(closing: NoticeEvent.Closing) async throws {
        hall.note(.signInWanted(Hall.work))
        let (id, _) = try await hall.nextNotice()
        hall.tell(.closed(notice: id, closing))
        try await hall.expectNothing()
        hall.pass(seconds: 299)
        hall.note(
            .signInWanted(Hall.work), .sessionEnding(Hall.work, at: Self.end), .sessionEnded(Hall.work, subject: nil))
        try await hall.expectNothing()
        hall.pass(seconds: 1)
        hall.note(.signInWanted(Hall.work))
        _ = try await hall.nextNotice()
    }

    @Test func `is quiet for five minutes after a denial or a cancellation, and asks no more`() async throws {
        for fact in [ended(.cancelled), ended(.failed, .accessDenied(Hall.work))] {
            hall.note(.signInWanted(Hall.work))
            let (id, _) = try await hall.nextNotice()
            hall.note(fact)
            #expect(await hall.next() == .closed(id))
            hall.note(.signInWanted(Hall.work))
            try await hall.expectNothing()
            hall.pass(seconds: 300)
        }
    }

    @Test func `asks still when a sign-in failed or nobody came`() async throws {
        hall.note(.signInWanted(Hall.work))
        _ = try await hall.nextNotice()
        hall.note(
            ended(.expired, .flowExpired(.stated("It is over."))), ended(.failed, .timedOut), .signInWanted(Hall.work))
        try await hall.expectNothing()
    }

    @Test func `shows the two words of a page of our own before it is opened`() async throws {
        hall.state.withLock { $0.pageWords = "amber falcon" }
        hall.note(.sessionEnded(Hall.work, subject: nil))
        let (id, _) = try await hall.nextNotice()
        hall.tell(.answered(notice: id, action: "sign_in", activationToken: "token"))
        #expect(await hall.next() == .closed(id))
        #expect(await hall.next() == .askedForPage("work"))
        let (_, notice) = try await hall.nextNotice()
        #expect(notice.summary == "The sign-in page of work shows: amber falcon")
        #expect(notice.actions.isEmpty && !notice.staysUntilAnswered)
        #expect(await hall.next() == .opened("https://id.example.org/authorize", "token"))
    }

    @Test func `says so when there is no page to open, and how else to sign in`() async throws {
        hall.state.withLock { $0.opens = false }
        for page in [nil, "https://id.example.org/authorize"] {
            hall.state.withLock { $0.page = page }
            hall.note(.signInWanted(Hall.work))
            let (id, _) = try await hall.nextNotice()
            hall.tell(.answered(notice: id, action: "default", activationToken: nil))
            #expect(await hall.next() == .closed(id))
            #expect(await hall.next() == .askedForPage("work"))
            if let page { #expect(await hall.next() == .opened(page, nil)) }
            let (told, notice) = try await hall.nextNotice()
            #expect(notice.body == "Run: ringback login work" && notice.actions.isEmpty)
            hall.note(.sessionClosed(Hall.work, subject: nil))
            #expect(await hall.next() == .closed(told))
        }
    }

    @Test func `takes no answer but its own`() async throws {
        hall.note(.signInWanted(Hall.work))
        let (id, _) = try await hall.nextNotice()
        hall.tell(.answered(notice: id + 7, action: "sign_in", activationToken: nil))
        hall.tell(.closed(notice: id + 7, .dismissed))
        try await hall.expectNothing()
        hall.note(.signInWanted(Hall.work))
        try await hall.expectNothing()
    }

    @Test func `is shown by a server that comes later`() async throws {
        hall.state.withLock { $0.hasServer = false }
        hall.note(.signInWanted(Hall.work))
        guard case .showed = await hall.next() else { throw Hall.Missing() }
        hall.state.withLock { $0.hasServer = true }
        hall.tell(.serverCame)
        let (id, notice) = try await hall.nextNotice()
        #expect(notice.summary == "Sign in to work")
        hall.tell(.serverCame)
        try await hall.expectNothing()
        // Of another server than that which showed it, or of its helper: the question stands still.
        hall.tell(.serverGone(server: "1/:1.9"))
        try await hall.expectNothing()
        hall.tell(.serverGone(server: "1/"))
        guard case .showed(_, replacing: nil) = await hall.next() else { throw Hall.Missing() }
        hall.tell(.answered(notice: id + 2, action: "sign_in", activationToken: nil))
        _ = await hall.next()
    }

    @Test func `is not given again and again to a server that dies of it`() async throws {
        hall.note(.signInWanted(Hall.work))
        _ = try await hall.nextNotice()
        for _ in 0..<4 {
            hall.tell(.serverGone(server: "1/"))
            _ = try await hall.nextNotice()
        }
        hall.state.withLock { $0.server = "2/:1.5" }
        hall.tell(.serverGone(server: "1/"))
        try await hall.expectNothing()
    }

    @Test func `tells whoever brought a callback whether somebody saw the notice`() async throws {
        #expect(await hall.snapshot.tell(.completed(flow: "f"), of: Hall.work, message: nil))
        let (_, notice) = try await hall.nextNotice()
        #expect(notice.body == "As alice@example.org.")
        // The same news by another way.
        hall.note(ended(.completed))
        try await hall.expectNothing()
        let failure = CallbackVerdict.failed(flow: "f", .timedOut)
        #expect(await hall.snapshot.tell(failure, of: Hall.work, message: "Sign in failed. Please try again."))
        #expect(try await hall.nextNotice().1.body == "Sign in failed. Please try again.")
        hall.state.withLock { $0.hasServer = false }
        #expect(await !hall.snapshot.tell(.ended, of: nil, message: nil))
    }

    @Test func `says once that links are of no use, however many come`() async throws {
        #expect(await hall.snapshot.tell(.ignored(.stated("It is not a URL.")), of: nil, message: nil))
        #expect(try await hall.nextNotice().1.summary == "This link belongs to no sign-in")
        #expect(await hall.snapshot.tell(.ended, of: nil, message: nil))
        try await hall.expectNothing()
        hall.pass(seconds: 10)
        #expect(await hall.snapshot.tell(.ended, of: nil, message: nil))
        guard case .showed(_, replacing: 1) = await hall.next() else { throw Hall.Missing() }
    }

    @Test func `shows nothing where the configuration says so`() async throws {
        hall.note(.signInWanted(Hall.work))
        let (id, _) = try await hall.nextNotice()
        hall.snapshot.configure(isEnabled: false, accounts: [Hall.work, Hall.other])
        #expect(await hall.next() == .closed(id))
        hall.note(.signInWanted(Hall.work))
        #expect(await !hall.snapshot.tell(.completed(flow: "f"), of: Hall.work, message: nil))
        hall.snapshot.configure(isEnabled: true, accounts: [Hall.work, Hall.other])
        try await hall.expectNothing()
    }

    @Test func `takes its questions down with the daemon`() async throws {
        hall.note(.signInWanted(Hall.work))
        let (id, _) = try await hall.nextNotice()
        await hall.snapshot.leave(atMost: .seconds(20))
        #expect(await hall.next() == .closed(id))
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Notices about consent` {
    private let hall = Hall()

    private func question(_ id: String, _ account: AccountName = Hall.work) -> ConsentQuestion {
        ConsentQuestion(
            id: id, account, .token, scope: nil,
            program: ProgramIdentity(executable: "/usr/bin/git", isRootOwned: true), origin: ProgramOrigin(),
            requestedAt: WallInstant(seconds: 1), expiresAt: WallInstant(seconds: 31))
    }

    @Test(arguments: [
        ("allow_once", ["one allow once"]), ("allow_session", ["one allow session"]), ("deny", ["one deny once"]),
        ("default", []),
    ])
    func `answer the question by their buttons`(action: String, answers: [String]) async throws {
        hall.note(.consent(.requested(question("one"))))
        let (id, notice) = try await hall.nextNotice()
        #expect(notice.summary == "May a program use work?" && notice.staysUntilAnswered)
        #expect(notice.actions.map(\.key) == ["allow_once", "allow_session", "deny"])
        hall.tell(.answered(notice: id, action: action, activationToken: nil))
        if !answers.isEmpty { #expect(await hall.next() == .closed(id)) }
        try await hall.expectNothing()
        #expect(hall.answers.withLock { $0 } == answers)
    }

    @Test func `stand beside each other and the account's own, until they are decided or over`() async throws {
        var ids: [UInt32] = []
        for fact in [
            .signInWanted(Hall.work), .consent(.requested(question("one"))), .consent(.requested(question("two"))),
        ] as [BrokerFact] {
            hall.note(fact)
            ids.append(try await hall.nextNotice().id)
        }
        hall.note(.consent(.decided(question("one"), .allow, remember: "once", by: .notice)))
        #expect(await hall.next() == .closed(ids[1]))
        hall.note(.consent(.lapsed(question("two"))))
        #expect(await hall.next() == .closed(ids[2]))
        try await hall.expectNothing()
    }

    @Test func `tell of a first use and of too many questions`() async throws {
        let git = ProgramIdentity(executable: "/usr/bin/git", isRootOwned: true)
        hall.note(.consent(.used(Hall.work, .token, git)), .consent(.flooded(Hall.work, git)))
        #expect(try await hall.nextNotice().1.summary == "A program has used work")
        #expect(try await hall.nextNotice().1.summary == "Too many questions about accounts")
    }
}
