import CLinux
import CurlTransport
import Glibc
import LocalHTTP
import MCPBridge

/// The loop: one thread for all bridges, all transfers, and most questions to the daemon.
final class RelayServer {
    /// More than the bridges of one user need.
    private static let mostConversations = 1_024

    private var listener: Int32
    private let file: SocketFile?
    private let options: Options
    private let streams: CurlStreams
    private let lookup: AccessLookup
    private let lines: DaemonLines
    private var conversations: [Int32: BridgeConversation] = [:]
    private var nextNumber = 1
    private var idleSince = ContinuousClock.now

    init?(_ listener: Int32, _ file: SocketFile?, _ options: Options) {
        guard let streams = CurlStreams(version: Main.version) else { return nil }
        self.listener = listener
        self.file = file
        self.options = options
        self.streams = streams
        lookup = AccessLookup(daemon: options.daemon, waker: streams.waker)
        lines = DaemonLines(lookup)
    }

    /// Returns when nothing has used it for a while.
    func run() {
        // What was passed on lets a paused transfer go on, which nothing else would announce.
        var hasMoved = false
        while true {
            var watched = conversations.values.map {
                CurlStreams.Watched($0.descriptor, input: $0.wantsInput, output: $0.wantsOutput)
            }
            if listener >= 0 {
                watched.append(
                    CurlStreams.Watched(listener, input: conversations.count < RelayServer.mostConversations))
            }
            watched += lines.watched
            streams.wait(&watched, atMost: hasMoved ? 0 : longestWait)
            for entry in watched where entry.hasInput {
                if entry.descriptor == listener {
                    accept()
                } else if !lines.read(entry.descriptor) {
                    conversations[entry.descriptor]?.read(lines)
                }
            }
            for answer in lookup.answers() + lines.answers() {
                conversations.values.first { $0.number == answer.conversation }?.take(answer, streams)
            }
            streams.advance()
            hasMoved = false
            for conversation in Array(conversations.values) {
                if conversation.pump(streams, lines) { hasMoved = true }
                guard conversation.isOver else { continue }
                conversation.end(streams)
                conversations[conversation.descriptor] = nil
            }
            if isBusy { idleSince = .now }
            let isOver = lines.hasLostDaemon || ContinuousClock.now - idleSince >= options.idle
            if !isBusy, isOver, isDone() { return }
        }
    }

    /// False if every bridge only keeps its connection for its next request.
    private var isBusy: Bool { conversations.values.contains { !$0.isIdle } }

    /// Milliseconds.
    private var longestWait: Int {
        var end = ContinuousClock.now + .seconds(60)
        if !isBusy { end = min(end, idleSince + options.idle) }
        if let deadline = lines.deadline { end = min(end, deadline) }
        return Int(max(.zero, end - ContinuousClock.now) / .milliseconds(1)) + 1
    }

    private func accept() {
        while listener >= 0, conversations.count < RelayServer.mostConversations {
            let descriptor = clinux_accept(listener)
            guard descriptor >= 0 else { return }
            var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
            guard unsafe clinux_peer_credentials(descriptor, &pid, &uid, &gid) == 0, uid == getuid() else {
                close(descriptor)
                continue
            }
            conversations[descriptor] = BridgeConversation(descriptor, number: nextNumber, client: pid)
            nextNumber += 1
        }
    }

    /// Takes the name away, so that nobody else connects, and serves those who had connected by then. A bridge whose kept
    /// connection ends connects anew for its next request.
    private func isDone() -> Bool {
        if listener >= 0 {
            file?.remove()
            accept()
            close(listener)
            listener = -1
        }
        return !isBusy
    }
}
