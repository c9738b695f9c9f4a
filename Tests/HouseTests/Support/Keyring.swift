import Glibc
import Synchronization
import Testing

enum KeyringKind: String, Sendable, CustomTestStringConvertible {
    case fake, gnome

    var testDescription: String { self == .fake ? "a fake" : "gnome-keyring" }

    /// `make test-keyring` requires the real one: then it is a failure that it is missing.
    static let all: [KeyringKind] = {
        let programs = ["/usr/bin/gnome-keyring-daemon", "/usr/bin/secret-tool"]
        let isThere = programs.allSatisfy { unsafe access($0, X_OK) == 0 }
        return isThere || Programs.variable("RINGBACK_TEST_KEYRING") == "1" ? [.fake, .gnome] : [.fake]
    }()
}

final class Keyring: Sendable {
    let bus: PrivateBus
    private let stage: Stage
    private let kind: KeyringKind
    /// What runs now, or ran last.
    private let current = Mutex<(program: Program?, fake: FakeService?)>((nil, nil))

    private static let password = "correct horse"
    private static let service = "org.freedesktop.secrets"

    init(_ kind: KeyringKind, _ stage: Stage) async throws {
        self.kind = kind
        self.stage = stage
        bus = try await PrivateBus(stage)
        FileTree.makeDirectory("\(stage.directory)/desktop")
    }

    private var fake: FakeService? { current.withLock { $0.fake } }

    /// Only the keyring's own things are below it.
    private var environment: [String: String] {
        bus.session.merging(["XDG_DATA_HOME": "\(stage.directory)/desktop"]) { first, _ in first }
    }

    /// Starts it, as signing in to the desktop does it, or as it is before that.
    func start(isUnlocked: Bool = true) async throws {
        switch kind {
        case .fake:
            let file = "file=\(stage.directory)/desktop/items"
            let fake =
                isUnlocked ? try await bus.fake("secrets", file) : try await bus.fake("secrets", file, "locked")
            current.withLock { $0 = (fake.program, fake) }
        case .gnome:
            let arguments = ["--foreground", "--components=secrets"] + (isUnlocked ? ["--unlock"] : [])
            let daemon = try stage.start(
                "/usr/bin/gnome-keyring-daemon", arguments, stdin: isUnlocked ? "\(Keyring.password)\n" : nil,
                environment: environment)
            current.withLock { $0 = (daemon, nil) }
        }
        try await settle(isLocked: !isUnlocked)
    }

    func kill() async throws {
        let program = current.withLock { $0.program }
        program?.send(SIGKILL)
        _ = try await program?.end()
        try await stage.eventually("a bus without a keyring") {
            try await bus.ask(
                "org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner", "string:\(Keyring.service)")?
                .contains("false") == true
        }
    }

    func lock() async throws {
        if let fake { return try await fake.order("lock") }
        _ = try await stage.run("/usr/bin/secret-tool", ["lock"], environment: environment)
        try await settle(isLocked: true)
    }

    /// As the window does it that asks the person.
    func unlock() async throws {
        if let fake { return try await fake.order("unlock") }
        try await unlock("bus", bus.address)
    }

    /// As signing in to the desktop does it, by PAM: gnome-keyring says nothing of that on the bus.
    func unlockUnheard() async throws {
        try await unlock("control", "\(stage.directory)/run/keyring/control")
    }

    private func unlock(_ way: String, _ place: String) async throws {
        let script = "\(Document.root)/Tests/Programs/unlock_keyring.py"
        let words = ["python3", "-B", script, way, place, "\(Keyring.password)\n"]
        let unlocker = try await stage.run("/usr/bin/env", words)
        #expect(unlocker.status == 0, "\(unlocker)")
    }

    /// The key that it keeps for the vault, as text; nil if there is none.
    func key() async throws -> String? {
        guard kind == .fake else {
            let words = ["lookup", "application", "ringback"]
            let found = try await stage.run("/usr/bin/secret-tool", words, environment: environment)
            return found.out.isEmpty ? nil : found.out.split(separator: "\n").first.map(String.init)
        }
        let items = FileTree.text(of: "\(stage.directory)/desktop/items") ?? ""
        guard let value = items.split(separator: ", \"").dropFirst().last?.prefix(while: { $0 != "\"" }) else {
            return nil
        }
        let digits = Array(value.utf8)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap { index in
            UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func settle(isLocked: Bool) async throws {
        try await stage.eventually("a keyring that is \(isLocked ? "locked" : "unlocked")") {
            try await bus.ask(
                Keyring.service, "/org/freedesktop/secrets/collection/\(kind == .fake ? "home" : "login")",
                "org.freedesktop.DBus.Properties.Get", "string:org.freedesktop.Secret.Collection", "string:Locked")?
                .contains(isLocked ? "true" : "false") == true
        }
    }
}
