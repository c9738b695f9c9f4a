import Glibc
import Synchronization
import TestSupport
import Testing

/// `ringback` as a person runs it: all three streams are a terminal.
final class TerminalProgram: Sendable {
    private let screen = Watched(Screen())
    private let status = Watched<Int32?>(nil)
    private let seen = Mutex(0)
    private let master: Int32
    private let pid: pid_t

    private struct Screen: Sendable {
        var bytes: [UInt8] = []
        var isOver = false
        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    /// `TIOCSPTLCK` and `TIOCGPTN` of ioctl_tty(2), which Swift does not see.
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    /// - Parameters:
    ///   - program: `ringback`, or the path of another one.
    ///   - columns: places on a line.
    ///   - rows: lines that are visible at once.
    init(
        _ arguments: [String], of program: String = "ringback", environment: [String: String], columns: UInt16 = 120,
        rows: UInt16 = 50
    ) throws {
        let master = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (isLocked, number): (Int32, UInt32) = (0, 0)
        guard master >= 0, unsafe ioctl(master, TerminalProgram.unlock, &isLocked) == 0,
            unsafe ioctl(master, TerminalProgram.getNumber, &number) == 0
        else { throw SystemError(call: "open /dev/ptmx", code: errno) }
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(master, UInt(TIOCSWINSZ), &size)
        let slave = unsafe open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard slave >= 0 else { throw SystemError(call: "open a terminal", code: errno) }
        defer { close(slave) }
        let variables = environment.merging(["TERM": "xterm-256color"]) { own, _ in own }.map { "\($0)=\($1)" }
        let vector = [Programs.path(program)] + arguments
        let pid = try Program.spawn(vector, variables, [slave, slave, slave])
        (self.master, self.pid) = (master, pid)
        startThread { [screen] in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = unsafe read(master, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                // At the end of the last of the terminal's programs there is EIO.
                guard count > 0 else { break }
                let piece = buffer[..<count]
                screen.change { $0.bytes += piece }
            }
            screen.change { $0.isOver = true }
        }
        Program.collect(pid, into: status)
    }

    deinit {
        if status.value == nil { kill(pid, SIGKILL) }
        close(master)
    }

    var text: String { screen.value.text }

    /// Waits until a text appears after what was waited for before.
    func shows(_ words: String) async throws {
        let start = seen.withLock { $0 }
        let end = try await screen.first("“\(words)” on the terminal: \(self.text)") { screen -> Int? in
            guard let place = screen.text.dropFirst(start).firstRange(of: words) else { return nil }
            return screen.text.distance(from: screen.text.startIndex, to: place.upperBound)
        }
        seen.withLock { $0 = end }
    }

    func type(_ line: String) { press(Array(line.utf8) + [0x0A]) }

    func answer(_ steps: [(question: String, answer: String)]) async throws {
        for step in steps {
            try await shows(step.question)
            type(step.answer)
        }
    }

    func press(_ keys: [UInt8]) { _ = unsafe write(master, keys, keys.count) }
    func send(_ signal: Int32) { if status.value == nil { kill(pid, signal) } }

    func end() async throws -> (status: Int32, text: String) {
        let ended = try await status.first("the end of ringback on a terminal: \(self.text)") { $0 }
        // The reader may stand in a read that nobody ends but the terminal's last descriptor.
        _ = try await screen.first("the end of the terminal") { $0.isOver ? true : nil }
        return (ended, text)
    }
}

extension Stage {
    func terminal(_ arguments: String..., columns: UInt16 = 120) throws -> TerminalProgram {
        try TerminalProgram(arguments, environment: environment, columns: columns)
    }
}
