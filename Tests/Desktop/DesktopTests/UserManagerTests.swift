import Foundation
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(2))) struct `The person's service manager` {
    private let bus: PrivateBus
    private let client: UserManagerClient

    init() throws {
        bus = try PrivateBus()
        client = UserManagerClient(place: .session(address: bus.address))
    }

    private func start() throws(UserManagerError) {
        try client.start(
            id: "17", description: "Link of swisscoin",
            arguments: ["/usr/bin/app", "swisscoin://a?b=$HOME${PATH}$$%h"],
            environment: ["DISPLAY=:0", "HOME=/home/ada"])
    }

    private func unit(_ fake: Program) throws -> [String: Any] {
        let line = try fake.waitFor("unit ")
        return try #require(try JSONSerialization.jsonObject(with: Data(line.dropFirst(5).utf8)) as? [String: Any])
    }

    @Test func `starts a program as a service of its own, each word as it is`() throws {
        let fake = try bus.fake("systemd1")
        try start()
        let unit = try unit(fake)
        #expect(unit["name"] as? String == "app-ringback-17.service" && unit["mode"] as? String == "fail")
        #expect(unit["ExitType"] as? String == "cgroup" && unit["Type"] as? String == "exec")
        #expect(unit["CollectMode"] as? String == "inactive-or-failed" && unit["Slice"] as? String == "app.slice")
        // What the manager knows of the session is newer than what a daemon of it knows.
        #expect(unit["Environment"] as? [String] == ["HOME=/home/ada"])
        let command = try #require((unit["ExecStart"] as? [[Any]])?.first)
        #expect(command[0] as? String == "/usr/bin/app")
        // A dollar of the link must not become the value of a variable.
        #expect(command[1] as? [String] == ["/usr/bin/app", "swisscoin://a?b=$$HOME$${PATH}$$$$%h"])
    }

    @Test func `does without what an older one does not know`() throws {
        let fake = try bus.fake("systemd1", "old")
        try start()
        let unit = try unit(fake)
        #expect(unit["KillMode"] as? String == "process" && unit["ExitType"] == nil)
    }

    @Test func `says that a program could not be started`() throws {
        let fake = try bus.fake("systemd1", "failing")
        #expect(
            throws: UserManagerError.failed(
                reason: "the service manager could not start it; the user's journal has the reason")
        ) { try start() }
        withExtendedLifetime(fake) {}
    }

    @Test func `says that there is none, so that somebody else may start the program`() throws {
        #expect(throws: UserManagerError.unavailable) { try start() }
        bus.end()
        #expect(throws: UserManagerError.unavailable) { try start() }
    }
}
