import ArgumentParser
import CLinux
import Glibc
import RingbackClient

/// What `ringback run` starts behind the wall. It passes its network out, waits until that is made, and becomes the
/// command.
struct RunInside: ParsableCommand {
    static let name = "run-inside"
    static let configuration = CommandConfiguration(
        commandName: RunInside.name, abstract: "Started by ringback run.", shouldDisplay: false)

    @Argument var socket: Int32
    @Argument var ignored: String
    @Argument var place: String
    @Argument(parsing: .captureForPassthrough) var words: [String] = []

    func run() throws {
        let namespace = unsafe open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)
        let own = clinux_open_process(getpid())
        guard namespace >= 0, own >= 0, unsafe clinux_send_descriptors(socket, [namespace, own], 2) == 0 else {
            throw ExitCode(Run.Failed.wall)
        }
        var none = [Int32](repeating: -1, count: 8)
        // Without the byte the network could not be made, or nobody waits for the command any more.
        guard unsafe clinux_receive_descriptors(socket, &none) == 0 else { throw ExitCode(Run.Failed.wall) }
        let kept = Set(ignored.split(separator: ",").compactMap { Int32($0) })
        for number in [SIGINT, SIGQUIT] where !kept.contains(number) { signal(number, SIG_DFL) }
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigprocmask(SIG_SETMASK, &set, nil)
        _ = clinux_close_on_exec_from(3)
        let failure = Replacement.run(words, at: place)
        failure.show()
        throw ExitCode(failure.status)
    }
}
