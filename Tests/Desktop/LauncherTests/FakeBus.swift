import FoundationEssentials
import Glibc

@testable import Launcher

/// A program that takes lines and writes lines, both over its standard input, which is a socket.
final class LineProgram {
    struct Silent: Error {
        let expected: String
    }

    private let process: pid_t
    private let socket: Int32
    private var unread: [UInt8] = []

    /// Runs a line of the shell, whose standard output is to be redirected to its input.
    init(_ line: String, _ words: [String]) throws {
        let (near, far) = try socketPair()
        defer { close(far) }
        socket = near
        process = try Spawn(
            program: "/bin/sh", arguments: ["sh", "-c", line, "sh"] + words, environment: CleanEnvironment.current(),
            descriptor: far, target: 0
        ).start()
    }

    deinit {
        end()
        close(socket)
    }

    func end() {
        kill(process, SIGKILL)
        HelperProcess.reap(process)
    }

    /// Writes a line, and waits until the program has done as it says.
    func order(_ line: String) throws {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        try waitFor("done " + line)
    }

    /// Waits for a line that begins so, for 20 s at most.
    @discardableResult func waitFor(_ start: String) throws -> String {
        while true {
            while let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread.removeSubrange(...end)
                if line.hasPrefix(start) { return line }
            }
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard unsafe poll(&waiting, 1, 20_000) > 0 else { throw Silent(expected: start) }
            var buffer = [UInt8](repeating: 0, count: 4_096)
            let count = unsafe recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { throw Silent(expected: start) }
            unread += buffer[..<count]
        }
    }
}

/// A bus of the tests' own, for a fake Secret Service and a fake logind.
final class FakeBus {
    let address: String
    private let directory: String
    private let daemon: LineProgram

    init() throws {
        directory = "/tmp/ringback-helper-bus-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        address = "unix:path=\(directory)/bus"
        let configuration = """
            <busconfig><type>session</type><listen>\(address)</listen><auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy></busconfig>
            """
        try Data(configuration.utf8).write(to: URL(filePath: directory + "/bus.conf"))
        // It complains of limits that it may not raise.
        daemon = try LineProgram(
            #"exec dbus-daemon --config-file="$1" --nofork --print-address >&0 2>/dev/null"#,
            [directory + "/bus.conf"])
        try daemon.waitFor("unix:path")
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Starts the fake, and waits until it has its name.
    func start(_ role: String, _ modes: String...) throws -> LineProgram {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Programs/fake_bus.py").path()
        let fake = try LineProgram(#"exec python3 "$@" >&0"#, [script, address, role] + modes)
        try fake.waitFor("ready")
        return fake
    }
}
