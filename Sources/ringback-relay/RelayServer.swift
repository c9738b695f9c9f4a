import CLinux
import CurlTransport
import Glibc
import MCPBridge

/// The loop: one thread for all bridges and all transfers. Only the daemon is asked on threads of their own.
final class RelayServer {
    /// More than the bridges of one user need.
    private static let mostConversations = 1_024

    private var listener: Int32
    private let options: Options
    private let streams: CurlStreams
    private let desk: TokenDesk
    private var conversations: [Int32: Conversation] = [:]
    private var nextNumber = 1
    private var idleSince = ContinuousClock.now

    init?(_ listener: Int32, _ options: Options) {
        guard let streams = CurlStreams(version: Main.version) else { return nil }
        self.listener = listener
        self.options = options
        self.streams = streams
        desk = TokenDesk(daemon: options.daemon, waker: streams.waker)
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
            let left = options.idle - (ContinuousClock.now - idleSince)
            streams.wait(
                &watched,
                atMost: hasMoved ? 0 : conversations.isEmpty ? Int(max(0, left / .milliseconds(1))) + 1 : 60_000)
            for entry in watched where entry.hasInput {
                entry.descriptor == listener ? accept() : conversations[entry.descriptor]?.read(desk)
            }
            for answer in desk.answers() {
                conversations.values.first { $0.number == answer.conversation }?.take(answer, streams)
            }
            streams.advance()
            hasMoved = false
            for conversation in Array(conversations.values) {
                if conversation.pump() { hasMoved = true }
                guard conversation.isOver else { continue }
                conversation.end(streams)
                conversations[conversation.descriptor] = nil
                idleSince = .now
            }
            if conversations.isEmpty, ContinuousClock.now - idleSince >= options.idle, isDone() { return }
        }
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
            conversations[descriptor] = Conversation(descriptor, number: nextNumber)
            nextNumber += 1
        }
    }

    /// Takes the name away, so that nobody else connects, and serves those who had connected by then.
    private func isDone() -> Bool {
        if listener >= 0 {
            unsafe unlink(options.socket)
            accept()
            close(listener)
            listener = -1
        }
        return conversations.isEmpty
    }
}
