import CLinux
import Glibc
import RingbackClient

/// What `ringback run` starts behind the wall: this program, by words that no person types. It passes its network out,
/// waits until that is made, and becomes the command.
enum RunInside {
    static let name = "run-inside"

    /// The words: the socket to the outside, the signals that stay ignored, the ports of the relay, the command's file, and
    /// the command. Returns only if the command does not start, with the exit status; nil for other words.
    static func run(_ arguments: [String]) -> Int32? {
        let words = arguments.dropFirst()
        guard words.count > 5, words.first == name, let socket = Int32(words[words.startIndex + 1]) else { return nil }
        let (ignored, place) = (words[words.startIndex + 2], words[words.startIndex + 4])
        // From here on Ctrl-C waits until the command may start, and ends it then.
        let kept = Set(ignored.split(separator: ",").compactMap { Int32($0) })
        let keys = [SIGINT, SIGQUIT].filter { !kept.contains($0) }
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for number in keys { unsafe sigaddset(&set, number) }
        unsafe sigprocmask(SIG_BLOCK, &set, nil)
        for number in keys { signal(number, SIG_DFL) }
        let listeners = words[words.startIndex + 3].split(separator: ",").map { text in
            var port = UInt16(text) ?? 0
            return unsafe clinux_listen_at_loopback(&port)
        }
        let namespace = unsafe open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)
        let own = clinux_open_process(getpid())
        let passed = [namespace, own] + listeners
        guard passed.allSatisfy({ $0 >= 0 }), unsafe clinux_send_descriptors(socket, passed, passed.count) == 0 else {
            return Run.Failed.wall
        }
        var none = [Int32](repeating: -1, count: 8)
        // Without the byte the network could not be made, or nobody waits for the command any more.
        guard unsafe clinux_receive_descriptors(socket, &none) == 0 else { return Run.Failed.wall }
        unsafe sigemptyset(&set)
        unsafe sigprocmask(SIG_SETMASK, &set, nil)
        _ = clinux_close_on_exec_from(3)
        let failure = Replacement.run(Array(words.dropFirst(5)), at: place)
        failure.show()
        return failure.status
    }
}
