import Glibc
import TestSupport

/// A named pipe that a script of the stage writes to: its lines are events.
final class Mailbox: Sendable {
    let path: String
    private let descriptor: Int32

    init(path: String) throws {
        self.path = path
        guard unsafe mkfifo(path, 0o600) == 0 else { throw SystemError(call: "mkfifo", code: errno) }
        // Open for writing too: there is no end of file between two writers.
        descriptor = unsafe open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(call: "open", code: errno) }
    }

    deinit { close(descriptor) }

    func line(within bound: Duration = Bound.usual) async throws -> String {
        let end = ContinuousClock.now + bound
        return try await onThread { [descriptor, path] in
            var line: [UInt8] = []
            while true {
                let left = end - ContinuousClock.now
                guard left > .zero else { throw Late(what: "a line in \(path)") }
                guard hasEvent(POLLIN, on: descriptor, within: Int32(max(1, left / .milliseconds(1)))) else { continue }
                var byte: UInt8 = 0
                guard unsafe read(descriptor, &byte, 1) == 1 else { continue }
                if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
                line.append(byte)
            }
        }
    }
}

extension Stage {
    /// A browser that writes the URLs it is to open into the mailbox; for `BROWSER`.
    func recordingBrowser() throws -> (command: String, opened: Mailbox) {
        let opened = try Mailbox(path: "\(directory)/opened")
        let script = "\(directory)/bin/recording-browser"
        try write("#!/bin/sh\nprintf '%s\\n' \"$1\" >'\(opened.path)'\n", to: script, mode: 0o700)
        return (script, opened)
    }
}
