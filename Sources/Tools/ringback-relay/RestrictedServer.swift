import CLinux
import Cryptography
import CurlTransport
import Glibc
import LocalHTTP
import MCPBridge
import RingbackBase

/// The relay of one exposed socket, with one thread for all its connections. It ends when the daemon closes descriptor 3.
final class RestrictedServer {
    /// As many as the exposed socket itself serves.
    private static let mostConversations = 64
    /// Bytes of requests that are held at a time, and of responses.
    private static let mostOfRequests = 16 << 20
    private static let mostOfResponses = 32 << 20
    /// Bytes of a response that may be held in any case: small ones need not wait for the large ones of others.
    private static let alwaysHeld = 128 << 10

    private let memory: SocketMemory
    private var orders: RestrictedOrders { memory.orders }
    private let listeners: [Int32]
    private let streams: CurlStreams
    private let lookup: AccessLookup
    private var conversations: [Int32: RestrictedConversation] = [:]
    private var nextNumber = 1
    /// Users who were turned away, each told once.
    private var strangers: Set<uid_t> = []

    /// Nil if it cannot serve. The daemon is told why.
    init?(_ options: Options) {
        guard let orders = RestrictedOrders.read() else { return nil }
        guard let streams = CurlStreams(version: Main.version) else {
            RestrictedServer.tell("failed", "libcurl cannot be loaded")
            return nil
        }
        var (listeners, files) = ([Int32](), [JSON]())
        for path in orders.sockets {
            do throws(ServerError) {
                let socket = try ListeningSocket.open(.unix(path: path, mode: orders.mode))
                if let file = socket.file {
                    files.append([
                        "path": .string(file.path), "device": .string("\(file.device)"),
                        "inode": .string("\(file.inode)"),
                    ])
                }
                listeners.append(socket.release())
            } catch {
                RestrictedServer.tell("failed", .string("cannot listen at \(path): \(error)"))
                return nil
            }
        }
        // Before the thread of the lookups, which it holds for too. The daemon removes the sockets when it closes them.
        Main.confineFiles(changeable: nil)
        RestrictedServer.tell("listening", .array(files))
        self.listeners = listeners
        self.streams = streams
        lookup = AccessLookup(
            daemon: options.daemon, waker: streams.waker, application: "exposed socket \(orders.name)")
        // New for each process: after a restart the bridges begin their sessions again.
        let key = RandomToken.bytes(32)
        memory = SocketMemory(
            orders, BoundIDs { text in Digest.hex(Digest.sha256(key + Digest.sha256(key + Array(text.utf8)))) })
    }

    func run() {
        var hasMoved = false
        while true {
            var watched = conversations.values.map {
                CurlStreams.Watched($0.descriptor, input: $0.wantsInput, output: $0.wantsOutput)
            }
            watched.append(CurlStreams.Watched(RestrictedOrders.descriptor))
            let takesMore = conversations.count < RestrictedServer.mostConversations
            watched += listeners.map { CurlStreams.Watched($0, input: takesMore) }
            streams.wait(&watched, atMost: hasMoved ? 0 : 10_000)
            for entry in watched where entry.hasInput {
                if entry.descriptor == RestrictedOrders.descriptor { return }
                if listeners.contains(entry.descriptor) {
                    accept(entry.descriptor)
                } else if let conversation = conversations[entry.descriptor] {
                    let held = conversations.values.reduce(0) { $0 + $1.heldOfRequest }
                    conversation.read(lookup, room: RestrictedServer.mostOfRequests - held)
                }
            }
            for answer in lookup.answers() {
                conversations.values.first { $0.number == answer.conversation }?.take(answer, streams)
            }
            streams.advance()
            hasMoved = false
            var held = conversations.values.reduce(0) { $0 + $1.heldOfResponse }
            for conversation in Array(conversations.values) {
                held -= conversation.heldOfResponse
                let room = max(RestrictedServer.alwaysHeld, RestrictedServer.mostOfResponses - held)
                if conversation.pump(streams, lookup, room: room) { hasMoved = true }
                held += conversation.heldOfResponse
                report(conversation)
                guard conversation.isOver || conversation.isLate else { continue }
                conversation.end(streams)
                conversations[conversation.descriptor] = nil
            }
        }
    }

    private func accept(_ listener: Int32) {
        while conversations.count < RestrictedServer.mostConversations {
            let descriptor = clinux_accept(listener)
            guard descriptor >= 0 else { return }
            var (pid, uid, gid): (pid_t, uid_t, gid_t) = (0, 0, 0)
            let isKnown = unsafe clinux_peer_credentials(descriptor, &pid, &uid, &gid) == 0
            guard isKnown, orders.admits(uid) else {
                close(descriptor)
                if isKnown, strangers.count < 64, strangers.insert(uid).inserted {
                    RestrictedServer.tell("refused_uid", .integer(Int(uid)))
                }
                continue
            }
            conversations[descriptor] = RestrictedConversation(
                descriptor, number: nextNumber, peer: (Int(uid), Int(pid)), memory)
            nextNumber += 1
        }
    }

    /// Tells the daemon what was not let through, for the audit log.
    private func report(_ conversation: RestrictedConversation) {
        for denial in conversation.denials {
            let members: JSONObject = [
                "method": RestrictedServer.bounded(denial.method ?? ""), "reason": denial.sentence,
                "uid": conversation.peer.uid, "pid": conversation.peer.pid,
                "tool": denial.tool.map(RestrictedServer.bounded),
            ]
            RestrictedServer.tell("denied", .object(members))
        }
        for reason in conversation.withheld { RestrictedServer.tell("withheld", .string(reason.rawValue)) }
        (conversation.denials, conversation.withheld) = ([], [])
    }

    private static func bounded(_ text: String) -> String { String(text.unicodeScalars.prefix(300)) }

    /// What the daemon does not take at once is lost: the log must not stop the messages.
    private static func tell(_ name: String, _ value: JSON) {
        let line = JSON.object(JSONObject([.init(name, value)])).serialized() + [10]
        _ = unsafe send(RestrictedOrders.descriptor, line, line.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
}

/// What all conversations of an exposed socket share. Used on the server's thread.
final class SocketMemory {
    let orders: RestrictedOrders
    let ids: BoundIDs
    /// What the server's lists of tools say of the fields that repeat parameters.
    private(set) var parameters = ToolParameters()
    /// The SHA-256 of tokens that the server refused here. A program can have only those refreshed.
    private(set) var refused: [String] = []
    private static let mostRefused = 16

    init(_ orders: RestrictedOrders, _ ids: BoundIDs) { (self.orders, self.ids) = (orders, ids) }

    func learn(from lists: [[UInt8]]) {
        for list in lists { parameters.learn(from: list) }
    }

    func noteRefused(_ digest: String) {
        guard !refused.contains(digest) else { return }
        refused.append(digest)
        if refused.count > SocketMemory.mostRefused { refused.removeFirst() }
    }
}

/// What the daemon says of an exposed socket when it starts its relay: a line of JSON at descriptor 3.
struct RestrictedOrders {
    static let descriptor: Int32 = 3
    /// 256 names of tools, and some paths.
    private static let maxLine = 1 << 18

    let name: String
    let account: String
    let sockets: [String]
    let mode: UInt32
    /// Users who may connect beside this one and root.
    let uids: [UInt32]
    let rule: MessageRule

    /// Waits for the line. Nil if none comes.
    static func read() -> RestrictedOrders? {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while line.count < maxLine {
            let count = unsafe recv(descriptor, &byte, 1, 0)
            if count < 0, errno == EINTR { continue }
            guard count == 1 else { return nil }
            if byte == 10 { return RestrictedOrders(line) }
            line.append(byte)
        }
        return nil
    }

    private init?(_ line: [UInt8]) {
        guard let json = try? JSON(parsing: line), let name = json["name"]?.string,
            let account = json["account"]?.string, let sockets = json["sockets"]?.array,
            let mode = json["mode"]?.integer.flatMap({ UInt32(exactly: $0) }), let uids = json["allow_uids"]?.array,
            let methods = json["methods"]?.array
        else { return nil }
        self.name = name
        self.account = account
        self.sockets = sockets.compactMap(\.string)
        self.mode = mode
        self.uids = uids.compactMap { $0.integer.flatMap { UInt32(exactly: $0) } }
        // A list that cannot be read allows nothing.
        let tools = json["tools"].map { ($0.array ?? []).compactMap(\.string) }
        rule = MessageRule(tools: tools, methods: methods.compactMap(\.string))
    }

    func admits(_ uid: UInt32) -> Bool { uid == getuid() || uid == 0 || uids.contains(uid) }
}
