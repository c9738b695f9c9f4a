import Foundation
import Synchronization
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `The desk of notices` {
    private let bus: PrivateBus
    private let heard = Heard<NoticeEvent>()

    init() throws {
        bus = try PrivateBus()
    }

    private static let question = Notice(
        summary: "Sign in to work", body: "A program <waits> & waits.", bodyWithoutActions: "Run: ringback login work",
        actions: [.init(key: "default", label: "Sign in"), .init(key: "sign_in", label: "Sign in")],
        staysUntilAnswered: true)

    private func desk(at address: String? = nil) -> NotificationPresenter {
        NotificationPresenter(place: .session(address: address ?? bus.address)) { [heard] in heard.add($0) }
    }

    private func show(
        _ notice: Notice = question, on desk: NotificationPresenter, replacing former: UInt32? = nil
    ) throws -> NotificationPresenter.Showing {
        let answer = Heard<NotificationPresenter.Showing>()
        desk.show(notice, replacing: former) { answer.add($0) }
        return try answer.next()
    }

    private func shown(_ fake: Program) throws -> [String: Any] {
        let line = try fake.waitFor("shown ")
        let object = try JSONSerialization.jsonObject(with: Data(line.dropFirst(6).utf8))
        return try #require(object as? [String: Any])
    }

    @Test func `SC-11: shows a notice with its actions, and says what became of it`() throws {
        let fake = try bus.fake("notifications", "markup")
        let desk = desk()
        guard case .shown(let notice) = try show(on: desk) else { throw Missing() }
        let seen = try shown(fake)
        #expect(seen["id"] as? Int == Int(notice.id) && seen["app"] as? String == "Ringback")
        #expect(seen["summary"] as? String == "Sign in to work")
        #expect(seen["body"] as? String == "A program &lt;waits&gt; &amp; waits.")
        #expect(seen["actions"] as? [String] == ["default", "Sign in", "sign_in", "Sign in"])
        #expect(seen["timeout"] as? Int == 0 && seen["replaces"] as? Int == 0)
        let hints = try #require(seen["hints"] as? [String: Any])
        #expect(hints["urgency"] as? Int == 1 && hints["desktop-entry"] as? String == "ringback-callback")
        try fake.order("answer \(notice.id) sign_in token-of-the-compositor")
        #expect(
            try heard.next()
                == .answered(notice: notice.id, action: "sign_in", activationToken: "token-of-the-compositor"))
        #expect(try heard.next() == .closed(notice: notice.id, .dismissed))
    }

    @Test func `hears a server that tells nobody but whoever showed the notice`() throws {
        let fake = try bus.fake("notifications", "unicast")
        let desk = desk()
        guard case .shown(let notice) = try show(on: desk) else { throw Missing() }
        try fake.order("answer \(notice.id) default")
        #expect(try heard.next() == .answered(notice: notice.id, action: "default", activationToken: nil))
    }

    @Test func `says in words what a server without actions cannot ask`() throws {
        let fake = try bus.fake("notifications", "bare")
        let desk = desk()
        _ = try show(on: desk)
        let seen = try shown(fake)
        #expect(seen["body"] as? String == "Run: ringback login work")
        #expect(seen["actions"] as? [String] == [])
    }

    @Test func `replaces a notice that is shown, and none that has gone`() throws {
        let fake = try bus.fake("notifications")
        let desk = desk()
        guard case .shown(let first) = try show(on: desk) else { throw Missing() }
        guard case .shown(let second) = try show(on: desk, replacing: first.id) else { throw Missing() }
        #expect(second.id == first.id)
        try fake.order("close \(first.id) 1")
        #expect(try heard.next() == .closed(notice: first.id, .expired))
        guard case .shown(let third) = try show(on: desk, replacing: first.id) else { throw Missing() }
        #expect(third.id != first.id)
        desk.close(third.id)
        try fake.waitFor("closed \(third.id)")
        #expect(try heard.next() == .closed(notice: third.id, .closed))
    }

    @Test func `does not hear of other programs' notices`() throws {
        let fake = try bus.fake("notifications")
        let (desk, other) = (desk(), NotificationPresenter(place: .session(address: bus.address)) { _ in })
        guard case .shown(let own) = try show(on: desk) else { throw Missing() }
        guard case .shown(let foreign) = try show(on: other) else { throw Missing() }
        try fake.order("answer \(foreign.id) sign_in")
        try fake.order("answer \(own.id) sign_in")
        #expect(try heard.next() == .answered(notice: own.id, action: "sign_in", activationToken: nil))
    }

    @Test func `says that nobody is there, and finds a server that comes later`() throws {
        let desk = desk()
        #expect(try show(on: desk) == .notShown(reason: "there is no notification server"))
        let fake = try bus.fake("notifications")
        #expect(try heard.next() == .serverCame)
        guard case .shown(let notice) = try show(on: desk) else { throw Missing() }
        fake.end()
        #expect(try heard.next() == .serverGone(server: notice.server))
        #expect(try show(on: desk) == .notShown(reason: "there is no notification server"))
    }

    @Test func `finds a bus that comes later, and says when it is lost`() throws {
        let later = try PrivateBus()
        let path = later.directory + "/bus"
        let fake = try later.fake("notifications")
        // Under another name, as if it were not there yet.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".hidden")
        let desk = desk(at: later.address)
        #expect(try show(on: desk) == .notShown(reason: "there is no session bus"))
        try FileManager.default.moveItem(atPath: path + ".hidden", toPath: path)
        #expect(try heard.next() == .serverCame)
        guard case .shown = try show(on: desk) else { throw Missing() }
        later.end()
        // The server's going may be told first, or the bus's alone.
        guard case .serverGone = try heard.next() else { throw Missing() }
        withExtendedLifetime(fake) {}
    }

    @Test func `gives up on a server that does not answer`() throws {
        let fake = try bus.fake("notifications")
        try fake.order("silent")
        let desk = desk()
        #expect(try show(on: desk) == .notShown(reason: "the notification server does not respond"))
    }
}

private struct Missing: Error {}

private final class Heard<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    private let semaphore = DispatchSemaphore(value: 0)

    func add(_ value: Value) {
        values.withLock { $0.append(value) }
        semaphore.signal()
    }

    func next() throws -> Value {
        guard semaphore.wait(timeout: .now() + .seconds(20)) == .success else { throw Missing() }
        return values.withLock { $0.removeFirst() }
    }
}
