import APIServer
import BrokerCore
import Desktop
import Glibc
import LocalHTTP
import Logging
import RingbackBase
import RingbackClient
import Synchronization

/// The `ringback-relay` of an exposed socket that serves an MCP server: a process of its own, so that programs of a
/// container share nothing with the user's bridges. The helper starts it. It runs as long as the socket is open, and is
/// started again if it ends before. It says what it did not let through, for the audit log.
final class ExposedRelay: Sendable {
    private let exposedSocket: ExposedSocket
    private let orders: [UInt8]
    private let daemon: String
    private let records: RecordKeeper
    private let logger: Logger
    private let helper: HelperConnection
    /// The process, nil when none runs, and the sockets that it made.
    private let state = Mutex<(relay: Companion?, isOver: Bool, files: [SocketFile])>((nil, false, []))
    private let keeper = Mutex<Task<Void, Never>?>(nil)

    private static let shortestPause = Duration.milliseconds(200)
    private static let longestPause = Duration.seconds(30)
    private static let maxLine = 65_536

    init(
        _ exposedSocket: ExposedSocket, _ access: ExposedSocket.MCPAccess, sockets: [String], mode: UInt32,
        daemon: String, helper: HelperConnection, _ records: RecordKeeper, _ logger: Logger
    ) {
        self.exposedSocket = exposedSocket
        self.daemon = daemon
        self.helper = helper
        self.records = records
        self.logger = logger
        let object: JSONObject = [
            "name": exposedSocket.name, "account": exposedSocket.accounts.first?.rawValue ?? "", "sockets": sockets,
            "mode": Int(mode), "allow_uids": exposedSocket.order.allowedUIDs.map { Int($0) },
            "methods": access.methods, "tools": access.tools,
        ]
        orders = JSON.object(object).serialized() + [10]
    }

    func begin() { keeper.withLock { $0 = Task { await keep() } } }

    /// Ends it, with its connections, and removes its sockets.
    func end() {
        state.withLock { state in
            state.isOver = true
            for file in state.files { file.remove() }
            guard let relay = state.relay else { return }
            // It must not listen any more when this returns. The thread that reads closes the socket.
            relay.kill()
            shutdown(relay.socket, Int32(SHUT_RDWR))
        }
        keeper.withLock { $0?.cancel() }
    }

    private func keep() async {
        var pause = ExposedRelay.shortestPause
        while !state.withLock({ $0.isOver }) {
            let begin = ContinuousClock.now
            do throws(HelperError) {
                let relay = try await helper.startRelay(daemon: daemon)
                let isWanted = state.withLock { state in
                    if !state.isOver { state.relay = relay }
                    return !state.isOver
                }
                if isWanted { await listen(to: relay.socket) }
                state.withLock { $0.relay = nil }
                relay.end()
            } catch {
                logger.error("ringback-relay of the exposed socket \(exposedSocket.name): \(error)")
            }
            guard !state.withLock({ $0.isOver }) else { return }
            logger.warning("ringback-relay of the exposed socket \(exposedSocket.name) has ended, and is started again")
            // One that ends at once is not started all the time.
            let hasServed = ContinuousClock.now - begin > .seconds(60)
            pause = hasServed ? ExposedRelay.shortestPause : min(pause * 2, ExposedRelay.longestPause)
            try? await Task.sleep(for: pause)
        }
    }

    /// Returns when the relay has ended.
    private func listen(to socket: Int32) async {
        await withCheckedContinuation { waiter in
            let failure = Blocking.start { [self] in
                read(socket)
                waiter.resume()
            }
            guard failure != 0 else { return }
            logger.error("\(exposedSocket.name): no thread for its relay")
            waiter.resume()
        }
    }

    private func read(_ socket: Int32) {
        guard unsafe send(socket, orders, orders.count, Int32(MSG_NOSIGNAL)) == orders.count else { return }
        var lines = [UInt8]()
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = unsafe recv(socket, &buffer, buffer.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            lines += buffer[..<count]
            while let end = lines.firstIndex(of: 10) {
                take(Array(lines[..<end]))
                lines.removeFirst(end + 1)
            }
            guard lines.count <= ExposedRelay.maxLine else { return }
        }
    }

    private func take(_ line: [UInt8]) {
        guard let json = try? JSON(parsing: line) else { return }
        if let denied = json["denied"], let method = denied["method"]?.string {
            records.noteDenied(
                method: method, tool: denied["tool"]?.string, reason: denied["reason"]?.string ?? "",
                uid: denied["uid"]?.integer, pid: denied["pid"]?.integer, at: exposedSocket)
        }
        if let reason = json["withheld"]?.string { records.noteWithheld(reason: reason, at: exposedSocket) }
        if let uid = json["refused_uid"]?.integer.flatMap({ UInt32(exactly: $0) }) {
            records.noteRefused(uid: uid, at: exposedSocket)
        }
        if let made = json["listening"]?.array {
            let files = made.compactMap { file -> SocketFile? in
                guard let path = file["path"]?.string, let device = file["device"]?.string.flatMap({ UInt($0) }),
                    let inode = file["inode"]?.string.flatMap({ UInt($0) })
                else { return nil }
                return SocketFile(path: path, device: device, inode: inode)
            }
            let isOver = state.withLock { state in
                state.files = files
                return state.isOver
            }
            // It has listened after the exposed socket was closed.
            if isOver { for file in files { file.remove() } }
        }
        if let reason = json["failed"]?.string {
            logger.error("The MCP server of \(exposedSocket.name) is not exposed: \(reason)")
        }
    }

    /// Beside this program's file, or in PATH.
    static var program: String {
        guard let own = executablePath() else { return "ringback-relay" }
        let sibling = "\(own[..<(own.lastIndex(of: "/") ?? own.startIndex)])/ringback-relay"
        return unsafe access(sibling, X_OK) == 0 ? sibling : "ringback-relay"
    }
}
