import Glibc
import RingbackBase
import TestSupport
import Testing

/// A message bus of the stage's own, and who is on it. Nobody's real bus or keyring is touched.
struct PrivateBus: Sendable {
    let address: String
    private let stage: Stage
    private let daemon: Program

    init(_ stage: Stage) async throws {
        self.stage = stage
        address = "unix:path=\(stage.directory)/bus"
        try stage.write(
            """
            <busconfig><type>session</type><listen>\(address)</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy></busconfig>
            """, to: "\(stage.directory)/bus.conf")
        daemon = try stage.start(
            "/usr/bin/dbus-daemon", ["--config-file=\(stage.directory)/bus.conf", "--nofork", "--print-address"])
        _ = try await daemon.line("the bus's address") { $0.hasPrefix("unix:path=") }
    }

    /// What a program needs to find it as the person's bus.
    var session: [String: String] { ["DBUS_SESSION_BUS_ADDRESS": address] }
    /// What a program needs to find it as the machine's bus.
    var system: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": address] }

    /// Starts one of the services of `Tests/Programs/fake_bus.py`, and waits until it has its name.
    func fake(_ role: String, _ modes: String...) async throws -> FakeService {
        try await FakeService(stage, ["\(Document.root)/Tests/Programs/fake_bus.py", address, role] + modes)
    }

    /// Asks the bus, or somebody on it. Nil if the answer is an error.
    func ask(_ destination: String, _ path: String, _ member: String, _ arguments: String...) async throws -> String? {
        let output = try await stage.run(
            "/usr/bin/dbus-send",
            ["--bus=\(address)", "--print-reply=literal", "--dest=\(destination)", path, member] + arguments)
        return output.status == 0 ? output.out : nil
    }

    /// Everything that goes over the bus from now on, until it is asked for.
    func monitor() async throws -> BusMonitor {
        let path = "\(stage.directory)/monitored"
        // Its own file: messages are not lines of text.
        let program = try stage.start(
            "/bin/sh", ["-c", "exec dbus-monitor --address \"$0\" --binary >\"$1\"", address, path])
        let monitor = BusMonitor(path: path, program: program)
        // It watches when it has seen something: a question to the bus that nobody else asks.
        try await stage.eventually("a monitor that watches") {
            _ = try await ask(
                "org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner", "string:org.example.witness")
            return monitor.seen.contains("org.example.witness")
        }
        return monitor
    }
}

struct BusMonitor: Sendable {
    fileprivate let path: String
    fileprivate let program: Program

    /// The raw messages so far. Text in them is as it was sent.
    var seen: String { FileTree.text(of: path) ?? "" }
}

/// A fake on the bus. It takes orders through a named pipe.
final class FakeService: Sendable {
    let program: Program
    private let orders: Int32

    fileprivate init(_ stage: Stage, _ words: [String]) async throws {
        let path = "\(stage.directory)/orders-\(UInt32.random(in: 0 ... .max))"
        guard unsafe mkfifo(path, 0o600) == 0 else { throw SystemError(call: "mkfifo", code: errno) }
        // Open for reading too: opening it waits for nobody.
        orders = unsafe open(path, O_RDWR | O_CLOEXEC)
        guard orders >= 0 else { throw SystemError(call: "open", code: errno) }
        program = try stage.start("/bin/sh", ["-c", "exec python3 -B \"$@\" <\"$0\"", path] + words)
        _ = try await program.line("readiness of a fake") { $0 == "ready" }
    }

    deinit { close(orders) }

    /// Gives an order, and waits until the fake has done as it says.
    func order(_ text: String) async throws {
        let count = program.output.value.lines.count
        let bytes = Array("\(text)\n".utf8)
        guard unsafe write(orders, bytes, bytes.count) == bytes.count else {
            throw SystemError(call: "write", code: errno)
        }
        _ = try await program.output.first("“\(text)” by a fake") { transcript in
            transcript.lines.dropFirst(count).contains("done \(text)") ? true : nil
        }
    }

    func wait(for line: String) async throws {
        _ = try await program.line(line) { $0 == line }
    }
}

/// What a notification server (`fake("notifications")`) has shown.
extension FakeService {
    var notices: [JSON] {
        program.output.value.lines.filter { $0.hasPrefix("shown ") }
            .compactMap { try? JSON(parsing: Array($0.utf8.dropFirst(6))) }
    }

    func notice(_ number: Int) async throws -> JSON {
        try await program.output.first("notice \(number)") { _ in self.notices.dropFirst(number - 1).first }
    }
}
