internal import Glibc

/// A program of ours that runs beside the daemon, with one end of a socket pair as its descriptor
/// ``Helper/descriptor``. It ends when the other end is closed.
public struct Companion: Sendable {
    public let process: Int32
    /// The daemon's end: blocking, and close-on-exec.
    public let socket: Int32

    /// Starts the program with empty input and a clean environment. A name without `/` is looked up in PATH.
    public static func start(_ program: String, _ arguments: [String]) throws(HelperError) -> Companion {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw .notStarted(reason: reason(errno)) }
        defer { close(ends[1]) }
        let spawn = Spawn(
            program: program, arguments: [program] + arguments, environment: CleanEnvironment.current(),
            descriptor: ends[1], target: Helper.descriptor, hasEmptyInput: true)
        do throws(Spawn.Failure) {
            return Companion(process: try spawn.start(), socket: ends[0])
        } catch {
            close(ends[0])
            throw .notStarted(reason: reason(error.code))
        }
    }

    /// Closes the socket and waits for the end of the process, which is killed if it has not ended by itself.
    public func end() {
        close(socket)
        kill(process, SIGKILL)
        HelperProcess.reap(process)
    }
}
