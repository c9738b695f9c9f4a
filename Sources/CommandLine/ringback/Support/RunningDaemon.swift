import Glibc
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

/// The daemon that now listens at the usual socket.
struct RunningDaemon {
    let pid: pid_t

    /// Nil if none responds, or if its response has no pid.
    static func find() -> RunningDaemon? {
        guard let calls = try? Daemon.calls(socket: nil),
            let status = try? calls.call(.getStatus, timeout: .seconds(5)),
            let number = status["pid"]?.integer,
            let pid = pid_t(exactly: number), pid > 1
        else { return nil }
        return RunningDaemon(pid: pid)
    }

    /// The file that it was started from. If that was replaced or removed, its former path.
    private var program: String? {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = unsafe readlink("/proc/\(pid)/exe", &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        let path = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let mark = " (deleted)"
        return path.hasSuffix(mark) ? String(path.dropLast(mark.count)) : path
    }

    /// Asks it to end, and waits for it, if it is the program at this path. Another one is left alone.
    func end(ifRunsFrom path: String) {
        guard program == path, kill(pid, SIGTERM) == 0 else { return }
        // The daemon revokes sessions and finishes what is running. Its own limit is shorter.
        let end = ContinuousClock.now + .seconds(15)
        while kill(pid, 0) == 0, program == path, ContinuousClock.now < end { poll(nil, 0, 20) }
        let isOver = program != path
        Output.note(
            isOver
                ? "ended the daemon (pid \(pid))"
                : "ringback: the daemon (pid \(pid)) does not end: \(shown: "kill \(pid)")")
    }
}
