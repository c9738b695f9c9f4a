import Foundation
import RingbackBase
import Testing

@testable import Desktop

private func isThere(_ program: String) -> Bool {
    FileManager.default.isExecutableFile(atPath: "/usr/bin/\(program)")
}

/// `make test-keyring` sets this: then a keyring that is missing is a failure.
private let isRequired = ProcessInfo.processInfo.environment["RINGBACK_TEST_KEYRING"] == "1"
private let isPossible = isThere("gnome-keyring-daemon") && isThere("secret-tool")

/// gnome-keyring itself, as Debian packages it, on a bus and in a home of its own.
@Suite(.serialized, .timeLimit(.minutes(3)), .enabled(if: isPossible || isRequired, "no gnome-keyring"))
struct `A real gnome-keyring` {
    private static let password = "correct horse"
    private let home: String
    private let bus: PrivateBus
    private let environment: [String: String]
    private let key = Secret(bytes: (0..<32).map { _ in UInt8.random(in: 0...255) })

    init() throws {
        home = "/tmp/ringback-keyring-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(
            atPath: home + "/run", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        bus = try PrivateBus()
        environment = [
            "HOME": home, "XDG_RUNTIME_DIR": home + "/run", "XDG_DATA_HOME": home + "/share",
            "DBUS_SESSION_BUS_ADDRESS": bus.address, "XDG_CACHE_HOME": home + "/cache",
        ]
    }

    private var client: SecretServiceClient { SecretServiceClient(place: .session(address: bus.address)) }

    private func start(unlocked: Bool, _ reports: Reports) throws -> Program {
        let arguments = ["--foreground", "--components=secrets"] + (unlocked ? ["--unlock"] : [])
        let daemon = try Program("gnome-keyring-daemon", arguments: arguments, environment: environment)
        if unlocked { daemon.write(Self.password) }
        daemon.closeInput()
        try wait(reports) { (try? $0.get()) != nil }
        return daemon
    }

    private func wait(_ reports: Reports, until isRight: (Result<Bool, SecretServiceError>) -> Bool) throws {
        while true {
            let status = Result { () throws(SecretServiceError) in try client.isLocked() }
            if isRight(status) { return }
            try #require(reports.next(), "still \(status)")
        }
    }

    private func secretTool(_ arguments: String...) throws -> String {
        let tool = try Program("secret-tool", arguments: arguments, environment: environment)
        tool.closeInput()
        return String(decoding: tool.rest(), as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    /// What the PAM module of gnome-keyring tells the daemon: operation 1 with the password, over its control socket.
    private func unlockAsSignInDoes() throws {
        let script = """
            import socket, struct
            control = socket.socket(socket.AF_UNIX)
            control.connect("\(home)/run/keyring/control")
            password = b"\(Self.password)\\n"
            body = struct.pack(">II", 1, len(password)) + password
            control.sendall(b"\\0" + struct.pack(">I", len(body) + 4) + body)
            print("answer", struct.unpack(">II", control.recv(8))[1])
            """
        let unlocker = try Program("python3", "-c", script)
        #expect(try unlocker.waitFor("answer") == "answer 0")
    }

    private func watch(_ reports: Reports) -> BusWatch {
        BusWatch(for: .secretServiceChanged, place: .session(address: bus.address)) { reports.add() }
    }

    @Test func `keeps a key over lock, unlock, death and restart`() throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        let reports = Reports()
        let watch = watch(reports)
        #expect(throws: SecretServiceError.self, "there is a service before there is one") { try client.isLocked() }

        var daemon = try start(unlocked: true, reports)
        try wait(reports) { $0 == .success(false) }
        try client.create(id: "k1", secret: key)
        #expect(try client.read(id: "k1") == key)
        let text = try secretTool("lookup", "application", "ringback", "key-id", "k1")
        #expect(text.utf8.count == 43, "another program finds it by the same attributes, as text")

        // Locked.
        _ = try secretTool("lock")
        try wait(reports) { $0 == .success(true) }
        #expect(throws: SecretServiceError.locked) { try client.read(id: "k1") }
        #expect(throws: SecretServiceError.locked) { try client.create(id: "k2", secret: key) }
        // Nobody sits before a display here: the question can be asked, and not answered.
        #expect(throws: SecretServiceError.self) { try client.read(id: "k1", mayPrompt: true) }

        // Unlocked, as signing in to the desktop does it.
        try unlockAsSignInDoes()
        try wait(reports) { $0 == .success(false) }
        #expect(try client.read(id: "k1") == key)

        // Dead, absent, and back, locked.
        daemon.end()
        try wait(reports) { if case .failure(.unavailable) = $0 { true } else { false } }
        #expect(throws: SecretServiceError.unavailable(reason: "no Secret Service is on the session bus")) {
            try client.read(id: "k1")
        }
        daemon = try start(unlocked: false, reports)
        try wait(reports) { $0 == .success(true) }
        #expect(throws: SecretServiceError.locked) { try client.read(id: "k1") }
        daemon.end()

        // Back, unlocked.
        daemon = try start(unlocked: true, reports)
        try wait(reports) { $0 == .success(false) }
        #expect(try client.read(id: "k1") == key)
        try client.delete(id: "k1")
        #expect(throws: SecretServiceError.notFound) { try client.read(id: "k1") }
        daemon.end()
        withExtendedLifetime(watch) {}
    }

    @Test func `is not available before there is a keyring`() throws {
        defer { try? FileManager.default.removeItem(atPath: home) }
        let reports = Reports()
        let watch = watch(reports)
        let daemon = try Program(
            "gnome-keyring-daemon", "--foreground", "--components=secrets", environment: environment)
        defer { daemon.end() }
        daemon.closeInput()
        try wait(reports) { $0 == .failure(.unavailable(reason: "the Secret Service has no default keyring yet")) }
        withExtendedLifetime(watch) {}
    }
}
