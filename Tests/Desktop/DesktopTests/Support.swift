import Dispatch
import Glibc
import RingbackBase

@testable import Desktop

/// A helper at work on a queue of this process, and the daemon's end of its socket.
///
/// What stands for the helper's process is a `sleep` that is killed in the end: giving a helper up kills a process, and
/// that must not be the tests'.
final class InnerHelper: Sendable {
    let connection: HelperConnection
    private let standIn: pid_t
    /// A second name of the connection's socket, to end the helper before the test does.
    private let hook: Int32
    private let work = DispatchGroup()

    init(
        bounds: RunningCommand.Bounds = .init(), environment: [String] = CleanEnvironment.current(),
        places: BusRequests.Places = .init(), applications: [String: [String]] = [:],
        browsers: [String: [String]] = [:], relay: String = "/bin/false", commands: [String: [String]] = [:]
    ) throws {
        let process = try HelperProcess.start("/bin/sleep", ["600"])
        close(process.socket)
        standIn = process.id
        let (near, far) = try socketPair()
        hook = dup(near)
        closeOnExec(hook)
        DispatchQueue(label: "helper").async(group: work) {
            var loop = HelperLoop(
                socket: far, environment: environment, bounds: bounds, places: places,
                application: { applications[$0] }, browser: { browsers[$0] }, relay: relay, command: { commands[$0] })
            loop.run()
        }
        connection = HelperConnection(process: HelperProcess(id: standIn, socket: near))
    }

    deinit {
        // No command may outlive the tests: whoever reads their output would wait for it.
        shutdown(hook, Int32(SHUT_RDWR))
        close(hook)
        _ = work.wait(timeout: .now() + 60)
        kill(standIn, SIGKILL)
        HelperProcess.reap(standIn)
    }
}

struct SystemError: Error {
    let code: Int32
}

/// A named pipe that processes hold open for writing: its end tells that the last of them is dead.
final class LifeLine {
    let path: String
    private let descriptor: Int32

    init() throws {
        path = "/tmp/ringback-lifeline-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        guard unsafe mkfifo(path, 0o600) == 0 else { throw SystemError(code: errno) }
        descriptor = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(code: errno) }
    }

    deinit {
        close(descriptor)
        unsafe unlink(path)
    }

    /// Waits for something to be written. False after 60 s.
    func hasBegun() async -> Bool {
        await blocking { [descriptor] in
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&waiting, 1, 60_000) == 1 && waiting.revents & Int16(POLLIN) != 0
        }
    }

    func text() -> String {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
    }

    /// Waits until nobody holds it open. False after 60 s.
    func hasEnded() async -> Bool {
        await blocking { [descriptor] in
            while true {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard unsafe poll(&waiting, 1, 60_000) == 1 else { return false }
                var buffer = [UInt8](repeating: 0, count: 64)
                if unsafe read(descriptor, &buffer, 64) == 0 { return true }
            }
        }
    }
}

/// Waits on a thread of its own: those of the pool are needed by what is waited for.
func blocking<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { waiter in
        DispatchQueue(label: "waiting").async { waiter.resume(returning: work()) }
    }
}

/// Waits until the process has ended, and leaves it to be reaped by its owner.
func waitForEnd(of process: pid_t) async {
    await blocking {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }
}

func end(_ connection: HelperConnection) {
    if let process = connection.processID { kill(process, SIGKILL) }
}
