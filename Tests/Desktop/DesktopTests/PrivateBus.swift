import Foundation
import Testing

@testable import Desktop

final class PrivateBus: Sendable {
    let directory: String
    let address: String
    private let daemon: Program

    /// With `services`, the bus starts what the programs of that directory say.
    init(services: String? = nil, environment: [String: String] = [:]) throws {
        directory = "/tmp/ringback-bus-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        address = "unix:path=\(directory)/bus"
        let folder = services.map { "<servicedir>\($0)</servicedir>" } ?? ""
        let configuration = """
            <busconfig><type>session</type><listen>\(address)</listen><auth>EXTERNAL</auth>\(folder)
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
            <allow own="*"/></policy></busconfig>
            """
        try Data(configuration.utf8).write(to: URL(filePath: directory + "/bus.conf"))
        daemon = try Program(
            "dbus-daemon", "--config-file=\(directory)/bus.conf", "--nofork", "--print-address",
            environment: environment)
        try daemon.waitFor("unix:path")
    }

    deinit {
        daemon.end()
        try? FileManager.default.removeItem(atPath: directory)
    }

    func fake(_ role: String, _ modes: String...) throws -> Program {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appending(path: "Programs/fake_bus.py").path()
        let fake = try Program("python3", arguments: [script, address, role] + modes)
        try fake.waitFor("ready")
        return fake
    }

    func end() { daemon.end() }
}

/// A program that takes lines and writes lines.
final class Program: @unchecked Sendable {
    struct Ended: Error, CustomStringConvertible {
        let description: String
    }

    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()
    private var unread: [UInt8] = []

    convenience init(_ words: String..., environment: [String: String] = [:]) throws {
        try self.init(words[0], arguments: Array(words[1...]), environment: environment)
    }

    init(_ name: String, arguments: [String], environment: [String: String] = [:]) throws {
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.environment = ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""].merging(environment) { $1 }
        process.standardInput = input
        process.standardOutput = output
        // The bus complains of limits that it may not raise.
        if name == "dbus-daemon" { process.standardError = FileHandle.nullDevice }
        try process.run()
    }

    deinit { end() }

    var id: pid_t { process.processIdentifier }

    func end() {
        if process.isRunning { kill(id, SIGKILL) }
        process.waitUntilExit()
    }

    func order(_ line: String) throws {
        write(line)
        try waitFor("done " + line)
    }

    func write(_ line: String) {
        input.fileHandleForWriting.write(Data((line + "\n").utf8))
    }

    func closeInput() { try? input.fileHandleForWriting.close() }

    /// Waits for a line that begins so, for 20 s at most.
    @discardableResult func waitFor(_ start: String) throws -> String {
        let deadline = SuspendingClock.now + .seconds(20)
        while true {
            while let end = unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread.removeSubrange(...end)
                if line.hasPrefix(start) { return line }
            }
            try readMore(until: deadline, for: start)
        }
    }

    private func readMore(until deadline: SuspendingClock.Instant, for text: String) throws {
        let descriptor = output.fileHandleForReading.fileDescriptor
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let left = SuspendingClock.now.duration(to: deadline) / .milliseconds(1)
        guard left > 0, unsafe poll(&waiting, 1, Int32(left)) > 0 else { throw Ended(description: "no \(text)") }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        guard count > 0 else { throw Ended(description: "ended before \(text)") }
        unread += buffer[..<count]
    }

    /// Waits until it has written this, for 20 s at most. What it wrote is still in ``rest()``.
    func waitForOutput(with text: String) throws {
        let deadline = SuspendingClock.now + .seconds(20)
        while Data(unread).range(of: Data(text.utf8)) == nil { try readMore(until: deadline, for: text) }
    }

    func rest() -> [UInt8] {
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return unread + data
    }
}

final class Reports: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func add() { semaphore.signal() }

    func next(within: DispatchTimeInterval = .seconds(20)) -> Bool {
        semaphore.wait(timeout: .now() + within) == .success
    }
}
