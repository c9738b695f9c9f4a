import Glibc
import RingbackClient

/// Ringback's other programs: beside this one, as they are installed and built, or else in PATH.
enum Programs {
    static func path(_ name: String) -> String {
        if let directory = ownDirectory {
            let sibling = "\(directory)/\(name)"
            if unsafe access(sibling, X_OK) == 0 { return sibling }
        }
        return name
    }

    /// The directory of this program's file.
    static var ownDirectory: String? {
        own.map { String($0[..<($0.lastIndex(of: "/") ?? $0.startIndex)]) }
    }

    /// True for a path that leads to this program's file.
    static func isSelf(_ path: String) -> Bool {
        guard let own, let found = unsafe realpath(path, nil) else { return false }
        defer { unsafe free(found) }
        return unsafe String(cString: found) == own
    }

    /// This program's file, as the kernel reports it.
    static var own: String? { HomeFile.target(of: "/proc/self/exe") }

    /// The most bytes that ``run(_:)`` reads. The report of the largest configuration that is allowed has 2 MB.
    private static let maxOutput = 16 << 20

    /// Runs a program. Returns its exit status and its standard output, which may have 16 MiB. Its standard error is this
    /// one's.
    ///
    /// - Parameters:
    ///   - bound: how long it may take.
    ///   - asksUser: it may ask the user, at this one's terminal.
    ///   - input: its standard input: 4,096 bytes at most, which a pipe holds. Nil: nothing.
    /// - Throws: `program_missing`; `timed_out` if it does not end in time; `bad_response` for more output.
    static func run(
        _ arguments: [String], within bound: Duration = .seconds(30), asksUser: Bool = false, input: [UInt8]? = nil
    ) throws(RingbackError) -> (status: Int32, output: [UInt8]) {
        let pipe = try Pipe()
        let given = try input.map { bytes throws(RingbackError) in try Pipe(holding: bytes) }
        guard
            let pid = Subprocess.start(
                arguments, output: .descriptor(pipe.writeEnd), asksUser: asksUser, input: given?.readEnd)
        else {
            throw RingbackError(
                "program_missing", "\(arguments.first ?? "") cannot be started: install it beside ringback, or in PATH."
            )
        }
        pipe.closeWriteEnd()
        let end = ContinuousClock.now + bound
        var output: [UInt8] = []
        while output.count <= maxOutput, let piece = pipe.read(until: end) {
            guard !piece.isEmpty else { return (Subprocess.wait(pid), output) }
            output += piece
        }
        kill(pid, SIGKILL)
        Subprocess.wait(pid)
        let name = arguments.first ?? ""
        guard output.count <= maxOutput else {
            throw RingbackError(.badResponse, "\(name) wrote more than \(maxOutput >> 20) MiB and was ended.")
        }
        throw RingbackError(.timedOut, "\(name) did not end within \(bound.components.seconds) s and was ended.")
    }
}

/// A pipe from a child, read with a time limit.
final class Pipe {
    let readEnd: Int32
    private(set) var writeEnd: Int32

    init() throws(RingbackError) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { throw RingbackError(.systemError, "No pipe can be made.") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    /// A pipe with this in it, and its end after that.
    convenience init(holding bytes: [UInt8]) throws(RingbackError) {
        try self.init()
        guard bytes.count <= 4_096, unsafe write(writeEnd, bytes, bytes.count) == bytes.count else {
            throw RingbackError(.systemError, "A pipe cannot be written.")
        }
        closeWriteEnd()
    }

    deinit {
        closeWriteEnd()
        close(readEnd)
    }

    func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }

    /// What has arrived. Empty at the end; nil if nothing arrived in time or a signal asks for an end.
    func read(until end: ContinuousClock.Instant, _ interruption: Interruption? = nil) -> [UInt8]? {
        while true {
            let left = end - ContinuousClock.now
            let milliseconds = Int32(max(0, min(left / .milliseconds(1), 60_000)))
            var entries = [pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)]
            if let interruption {
                entries.append(pollfd(fd: interruption.descriptor, events: Int16(POLLIN), revents: 0))
            }
            let ready = unsafe poll(&entries, nfds_t(entries.count), milliseconds)
            if entries.count > 1, entries[1].revents != 0 { return nil }
            if ready > 0 { break }
            if ready == 0, milliseconds == 0 { return nil }
        }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe Glibc.read(readEnd, &buffer, 4_096)
        return Array(buffer[..<max(0, count)])
    }
}
