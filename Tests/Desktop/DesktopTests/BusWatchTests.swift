import Foundation
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `The watch on the buses` {
    private let bus: PrivateBus
    private let reports = Reports()
    private static let own = "/org/freedesktop/login1/session/_31"

    init() throws {
        bus = try PrivateBus()
    }

    private func watch(_ event: BusEvent) -> BusWatch {
        let place: BusPlace =
            event == .screenLocked ? .system(address: bus.address) : .session(address: bus.address)
        return BusWatch(for: event, place: place) { [reports] in reports.add() }
    }

    @Test func `tells that the Secret Service came, locked, unlocked and went`() throws {
        let watch = watch(.secretServiceChanged)
        #expect(reports.next(), "watching begins")
        let fake = try bus.fake("secrets")
        #expect(reports.next(), "it came")
        for order in ["lock", "unlock"] {
            try fake.order(order)
            #expect(reports.next(), "\(order)")
        }
        fake.end()
        #expect(reports.next(), "it went")
        withExtendedLifetime(watch) {}
    }

    @Test func `tells that the screen was locked`() throws {
        let fake = try bus.fake("login1")
        let watch = watch(.screenLocked)
        try fake.waitFor("hint asked")
        try fake.order("signal \(Self.own)")
        #expect(reports.next())
        try fake.order("hint \(Self.own)")
        #expect(reports.next())
        withExtendedLifetime(watch) {}
    }

    @Test func `does not tell of other sessions`() throws {
        let fake = try bus.fake("login1")
        let watch = watch(.screenLocked)
        try fake.waitFor("hint asked")
        try fake.order("signal /org/freedesktop/login1/session/_32")
        try fake.order("hint /org/freedesktop/login1/session/_32")
        try fake.order("signal \(Self.own)")
        #expect(reports.next())
        // Signals come in order: what the other session's had caused would be here by now.
        #expect(!reports.next(within: .milliseconds(50)))
        withExtendedLifetime(watch) {}
    }

    @Test func `tells that the screen is locked when watching begins`() throws {
        let fake = try bus.fake("login1")
        try fake.order("locked")
        let watch = watch(.screenLocked)
        #expect(reports.next())
        withExtendedLifetime(watch) {}
    }

    @Test func `finds a bus that comes later`() throws {
        let later = try PrivateBus()
        let path = later.directory + "/bus"
        // Under another name, as if it were not there yet.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".hidden")
        let watch = BusWatch(for: .secretServiceChanged, place: .session(address: later.address)) { [reports] in
            reports.add()
        }
        try FileManager.default.moveItem(atPath: path + ".hidden", toPath: path)
        #expect(reports.next())
        withExtendedLifetime(watch) {}
    }
}
