import Glibc
import RingbackBase
import Synchronization

@testable import LocalHTTP

/// A listening socket with more clients than there are places or descriptors. Each byte of an input is a step: clients
/// connect, ask, read, leave and are answered, the process has fewer or more descriptors, accepting fails, time passes. A
/// model says after each step who is served, who waits, and who has given way.
enum AcceptLaw {
    static func check(_ bytes: [UInt8]) throws {
        let play = try AcceptPlay()
        for byte in bytes.prefix(300) { try play.step(byte) }
        try play.end()
    }
}

private final class AcceptPlay {
    private static let large = [UInt8](repeating: 0x6C, count: 100_000)

    private let loop: EventLoop
    private let rules: ConnectionRules
    private let shared = Shared()
    private var address = sockaddr_un()
    private var addressLength = socklen_t(MemoryLayout<sockaddr_un>.size)
    private let model = AcceptModel()
    private var guests: [Guest] = []

    private final class Shared: Sendable {
        let time = Atomic<Int64>(1_000_000_000)
        let exchanges = Mutex<[Exchange]>([])
        /// With so many open connections no descriptor is left.
        let limit = Mutex<Int?>(nil)
        /// What the next attempts to accept a client fail with.
        let errors = Mutex<[Int32]>([])
    }

    init() throws {
        let shared = shared
        let loop = try EventLoop { shared.time.load(ordering: .relaxed) }
        var limits = ServerLimits()
        limits.maxConnections = AcceptModel.places
        limits.requestTimeout = .seconds(100_000)
        limits.writeTimeout = .seconds(100_000)
        let rules = ConnectionRules(
            limits: limits, accepts: { _ in true }, ownerOf: nil, refusal: { ServerResponse(status: $0) },
            immediate: { request in
                switch request.path {
                case "/now": ServerResponse(status: 200, body: [0x6E])
                case "/large": ServerResponse(status: 200, body: AcceptPlay.large)
                default: nil
                }
            },
            handOver: { exchange in
                shared.exchanges.withLock { $0.append(exchange) }
                return true
            })
        (self.loop, self.rules) = (loop, rules)
        // The kernel chooses an address that is no file's.
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        address.sun_family = sa_family_t(AF_UNIX)
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(socket, $0, socklen_t(MemoryLayout<sa_family_t>.size)) == 0 && listen(socket, 64) == 0
                    && getsockname(socket, $0, &addressLength) == 0
            }
        }
        try hold("there are sockets", isListening)
        let listening = try ListeningSocket.open(.descriptor(socket))
        try loop.add(
            Listener(listening, server: rules) { [weak loop] socket in
                var question = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
                guard let loop, unsafe poll(&question, 1, 0) > 0 else { return -EAGAIN }
                while loop.processes.giveUp() {}
                if let error = shared.errors.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return -error }
                if let limit = shared.limit.withLock({ $0 }), rules.registry.count >= limit { return -EMFILE }
                return AcceptPlay.accept(socket)
            })
    }

    deinit { loop.forgetClosed() }

    /// With the smallest buffer that the kernel has, so that a large response does not fit.
    private static func accept(_ socket: Int32) -> Int32 {
        let accepted = Glibc.accept(socket, nil, nil)
        guard accepted >= 0, fcntl(accepted, F_SETFL, O_NONBLOCK) == 0 else { return -errno }
        var size: Int32 = 1
        unsafe setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        return accepted
    }

    func step(_ byte: UInt8) throws {
        let argument = Int(byte >> 3)
        switch byte & 7 {
        case 0: for _ in 0...(argument & 3) { try connect(argument >> 2) }
        case 1: ask(argument, "/now", .idle)
        case 2: ask(argument, "/later", .busy)
        case 3: ask(argument, "/large", .blocked)
        case 4: answer()
        case 5: read(argument)
        case 6: leave(argument)
        default: try disturb(argument)
        }
        try settle()
    }

    private func connect(_ kind: Int) throws {
        guard model.waiting.count < 12 else { return }
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK | O_CLOEXEC, 0)
        let guest = Guest(socket)
        let length = addressLength
        let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(socket, $0, length) == 0
            }
        }
        try hold("a client can connect", isConnected)
        guests.append(guest)
        model.waiting.append(guest)
        switch kind {
        case 1: send(guest, "/now", .idle)
        case 2: send(guest, "/later", .busy)
        case 3: send(guest, "/large", .blocked)
        default: break
        }
    }

    private func send(_ guest: Guest, _ path: String, _ state: Guest.State) {
        guest.send(path)
        guard guest.state != .waiting else { return guest.sent = state }
        guest.state = state
        if state == .busy { model.busy.append(guest) }
    }

    private func ask(_ number: Int, _ path: String, _ state: Guest.State) {
        guard let guest = guest(number), guest.sent == nil, guest.state == .waiting || guest.state == .idle else {
            return
        }
        send(guest, path, state)
    }

    private func guest(_ number: Int) -> Guest? { guests.isEmpty ? nil : guests[number % guests.count] }

    private func answer() {
        let exchange = shared.exchanges.withLock { exchanges in
            // The clients of the others have left.
            exchanges.removeFirst(exchanges.prefix { !isBeingHandled($0) }.count)
            return exchanges.isEmpty ? nil : exchanges.removeFirst()
        }
        guard let exchange, !model.busy.isEmpty else { return }
        model.busy.removeFirst().state = .idle
        exchange.connection.send(ServerResponse(status: 200, body: [0x6C]), of: exchange, isHead: false)
    }

    private func isBeingHandled(_ exchange: Exchange) -> Bool {
        if case .answering(let current) = exchange.connection.phase { current === exchange } else { false }
    }

    private func read(_ number: Int) {
        guard let guest = guest(number), guest.state == .blocked else { return }
        guest.state = .idle
    }

    private func leave(_ number: Int) {
        guard let guest = guest(number), guest.state != .waiting else { return }
        shutdown(guest.socket, Int32(SHUT_RDWR))
        model.remove(guest)
        guests.removeAll { $0 === guest }
    }

    private func disturb(_ argument: Int) throws {
        switch argument & 7 {
        case 0: model.limit = nil
        case 1...4: model.limit = argument & 7
        case 5: shared.time.wrappingAdd(Int64((argument >> 3) + 1) * 150_000_000, ordering: .relaxed)
        default:
            let error = [EINTR, ECONNABORTED, ENOMEM, EIO, EAGAIN, EPERM, ENFILE, EPROTO][
                argument >> 3 | (argument & 1) << 2]
            model.errors.append(error)
            shared.errors.withLock { $0.append(error) }
        }
    }

    private func settle() throws {
        shared.limit.withLock { $0 = model.limit }
        model.acceptAll(now: shared.time.load(ordering: .relaxed))
        var hasRead = true
        while hasRead {
            var isAtRest = false
            for _ in 0..<400 where !isAtRest { isAtRest = !loop.turn(waits: false) }
            try hold("the loop comes to rest", isAtRest)
            hasRead = false
            for guest in guests where guest.state != .waiting && guest.state != .blocked {
                if guest.reads() { hasRead = true }
            }
        }
        for guest in guests where guest.state != .blocked {
            try hold("who has given way is closed, and nobody else", guest.isClosed == (guest.state == .gone))
        }
        guests.removeAll { $0.state == .gone }
        let all = rules.registry.all
        try hold("as many are served as can be", all.count == model.open.count)
        for (connection, guest) in zip(all, model.open) {
            try hold("the oldest idle ones have given way", connection.isIdle == (guest.state != .busy))
            try hold("a response that is not read is kept", connection.isBlocked == (guest.state == .blocked))
        }
        try hold("each failure is met once", shared.errors.withLock { $0 } == model.errors)
    }

    func end() throws {
        model.limit = nil
        model.errors = []
        shared.errors.withLock { $0 = [] }
        shared.time.wrappingAdd(600_000_000, ordering: .relaxed)
        try settle()
        try hold("everybody who waited is served, or had to go", model.waiting.isEmpty)
        while !model.busy.isEmpty {
            answer()
            try settle()
        }
        while !guests.isEmpty {
            leave(0)
            try settle()
        }
        try hold("nothing is due when there is no connection", loop.isAtRest)
    }
}
