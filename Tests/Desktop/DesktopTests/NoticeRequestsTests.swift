import Glibc
import RingbackBase
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `Notices through the helper` {
    private let bus: PrivateBus
    private let helper: InnerHelper
    private static let question = Notice(
        summary: "Sign in to work", body: "A program is waiting.", actions: [.init(key: "sign_in", label: "Sign in")],
        urgency: .critical, staysUntilAnswered: true)

    init() throws {
        bus = try PrivateBus()
        helper = try InnerHelper(places: .init(session: bus.address))
    }

    @Test func `are shown, answered and taken away`() async throws {
        let fake = try bus.fake("notifications")
        var events = helper.connection.noticeEvents().makeAsyncIterator()
        guard case .shown(let notice) = try await helper.connection.notify(Self.question) else {
            Issue.record("not shown")
            return
        }
        #expect(notice.server.hasPrefix(":"))
        let seen = try JSON(parsing: fake.waitFor("shown ").dropFirst(6).utf8.map { $0 })
        #expect(seen["summary"]?.string == "Sign in to work" && seen["hints"]?["urgency"]?.integer == 2)
        try fake.order("answer \(notice.id) sign_in from-the-compositor")
        #expect(
            await events.next()
                == .answered(notice: notice.id, action: "sign_in", activationToken: "from-the-compositor"))
        #expect(await events.next() == .closed(notice: notice.id, .dismissed))
        guard case .shown(let second) = try await helper.connection.notify(Self.question, replacing: notice) else {
            Issue.record("not shown")
            return
        }
        #expect(second.id != notice.id)
        try await helper.connection.closeNotice(second)
        try fake.waitFor("closed \(second.id)")
        #expect(await events.next() == .closed(notice: second.id, .closed))
        fake.end()
        #expect(await events.next() == .serverGone(server: second.server))
    }

    @Test func `are no error where nobody shows them`() async throws {
        #expect(
            try await helper.connection.notify(Self.question)
                == .notShown(reason: "there is no notification server"))
        let none = try InnerHelper(places: .init(session: "unix:path=/nonexistent/bus"))
        #expect(try await none.connection.notify(Self.question) == .notShown(reason: "there is no session bus"))
    }

    @Test(arguments: [
        NoticeEvent.answered(notice: 7, action: "a", activationToken: nil),
        .answered(notice: .max, action: "b", activationToken: "t"), .closed(notice: 1, .unknown), .serverCame,
        .serverGone(server: ""),
    ])
    func `are told of in words that come back as they went`(event: NoticeEvent) {
        #expect(NoticeEvent(members: event.members) == event)
    }

    @Test func `are described in words that come back as they went`() {
        #expect(Notice(members: .object(Self.question.members)) == Self.question)
        var notice = Self.question
        notice.bodyWithoutActions = "Run: x"
        #expect(Notice(members: .object(notice.members)) == notice)
    }
}
