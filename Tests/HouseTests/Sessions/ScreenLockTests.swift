import RingbackBase
import Testing

@Suite struct `The lock of the screen` {
    private static let session = "/org/freedesktop/login1/session/_31"

    private static func configuration(_ vault: String) -> String {
        "[vault]\n\(vault)\n[accounts.work]\nissuer = \"{sandbox}\"\nclient_id = \"ringback-demo\"\n"
    }

    private func expectLocked(_ stage: Stage) async throws {
        try await stage.eventually("a locked vault") {
            try await stage.api("GET", "/v1/accounts/work/session").code == "vault_locked"
        }
        #expect(try await stage.api("GET", "/v1/accounts/work/session").status == 423)
        #expect(try await stage.account()["state"]?.string == "loading")
    }

    @Test(arguments: ["signal", "hint"])
    func `the screen lock locks the vault`(order: String) async throws {
        try await Stage.play(Self.configuration("lock_with_screen = true"), startsDaemon: false) { stage in
            let bus = try await PrivateBus(stage)
            let login = try await bus.fake("login1")
            try await stage.startDaemon(environment: bus.system)
            try await stage.signIn()
            let token = try await stage.token()
            // It listens when it has looked whether the screen is locked already.
            try await login.wait(for: "hint asked")
            // Somebody else's screen is none of ours.
            try await login.order("\(order) /org/freedesktop/login1/session/_33")
            try await login.order("\(order) \(Self.session)")
            try await expectLocked(stage)
            try await stage.ringback("unlock", status: 0)
            #expect(try await stage.token() == token)
            try await login.order("\(order) \(Self.session)")
            try await expectLocked(stage)
        }
    }

    @Test func `a daemon that starts behind a locked screen keeps the vault locked`() async throws {
        try await Stage.play(Self.configuration("lock_with_screen = true"), startsDaemon: false) { stage in
            let bus = try await PrivateBus(stage)
            let login = try await bus.fake("login1")
            try await login.order("locked")
            try await stage.startDaemon(environment: bus.system)
            try await expectLocked(stage)
        }
    }

    @Test func `lock_with_screen without a system bus is warned of`() async throws {
        try await Stage.play(Self.configuration("lock_with_screen = true"), startsDaemon: false) { stage in
            let place = "\(stage.directory)/no-bus"
            try await stage.startDaemon(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(place)"])
            let line = try await stage.daemon?.errorLine("a warning") { $0.contains("lock_with_screen") }
            #expect(line?.contains(place) == true)
        }
    }

    @Test func `without lock_with_screen the screen lock does nothing`() async throws {
        try await Stage.play(Self.configuration(""), startsDaemon: false) { stage in
            let bus = try await PrivateBus(stage)
            let login = try await bus.fake("login1")
            let monitor = try await bus.monitor()
            try await stage.startDaemon(environment: bus.system)
            try await stage.signIn()
            try await login.order("signal \(Self.session)")
            #expect(try await stage.token() != nil)
            // Nobody has even listened.
            #expect(!monitor.seen.contains("org.freedesktop.login1.Manager"))
        }
    }
}
