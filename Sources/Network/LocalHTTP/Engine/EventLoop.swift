internal import CLinux
internal import Glibc
internal import RingbackBase
internal import Synchronization

/// One thread that serves every local socket of the process: a request takes microseconds on it, and each further
/// thread costs memory. The variables are used on that thread only. ``execute(_:)``, ``add(_:)`` and ``remove(_:)`` may
/// be called on any thread.
final class EventLoop: @unchecked Sendable {
    typealias Job = @Sendable () -> Void
    private let poller: Poller
    /// Wakes the loop up for its jobs (eventfd(2)). Edge-triggered, so it need not be read.
    private let bell: Descriptor
    private let jobs = Mutex<[Job]>([])
    private let listeners = Mutex<[UInt64: Listener]>([:])
    private let clock: @Sendable () -> Int64
    let processOf: @Sendable (Int32) -> PeerProcess?
    private static let bellToken = UInt64.max

    struct Registration {
        /// Distinguishes this connection from earlier ones whose descriptor had the same number.
        var generation: UInt32 = 0
        var connection: HTTPConnection?
    }
    /// By descriptor.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var registrations: [Registration] = []
    /// See ``freeDescriptor(for:)``.
    var candidates: [Candidate] = []
    /// No search for candidates before this time.
    var nextSearch: Int64 = 0
    private var deadlines = DeadlineWheel()
    /// Connections with more input, which is read after other connections have had a turn.
    private var waiting: [HTTPConnection] = []
    /// Listeners of which a connection could not be accepted, and when each is tried again.
    private var paused: [UInt64: Int64] = [:]
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var processes = KnownProcesses()
    /// Objects of closed connections, for the next clients.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var free: [HTTPConnection] = []
    private var lastAge: UInt64 = 0
    /// See ``OutputBuffer`` and ``RequestReader/receive(spare:_:)``.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var output = OutputBuffer()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var spare: ReceiveBuffer?
    private static let mostFree = 64
    /// In nanoseconds, of a listener.
    private static let pause: Int64 = 500_000_000

    /// `clock` is monotonic, in nanoseconds. Throws ``ServerError``.
    init(
        clock: @escaping @Sendable () -> Int64 = EventLoop.monotonic,
        processOf: @escaping @Sendable (Int32) -> PeerProcess? = { PeerProcess(of: $0) }
    ) throws(ServerError) {
        self.processOf = processOf
        self.clock = clock
        poller = try Poller()
        let number = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard number >= 0 else { throw .system(call: "eventfd", errno: errno) }
        bell = Descriptor(number)
        try poller.add(number, [.input, .edges], token: EventLoop.bellToken)
    }

    private static func monotonic() -> Int64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    var now: Int64 { clock() }

    /// On the loop's thread, in the order in which the jobs were given.
    func execute(_ job: @escaping Job) {
        let isFirst = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        guard isFirst else { return }
        var one: UInt64 = 1
        unsafe write(bell.number, &one, MemoryLayout<UInt64>.size)
    }

    /// Throws ``ServerError``.
    func add(_ listener: Listener) throws(ServerError) {
        listeners.withLock { $0[listener.token] = listener }
        do throws(ServerError) {
            try poller.add(listener.number, .input, token: listener.token)
        } catch {
            listeners.withLock { $0[listener.token] = nil }
            throw error
        }
    }

    /// The socket is closed at once, or as soon as the loop has finished accepting.
    func remove(_ listener: Listener) {
        poller.remove(listener.number)
        listeners.withLock { $0[listener.token] = nil }
    }

    /// No connection and no listener is waiting for a time or a turn.
    var isAtRest: Bool { waiting.isEmpty && deadlines.isEmpty && paused.isEmpty }

    func run() -> Never {
        while true { turn() }
    }

    /// Waits for events and deadlines, and handles them. False if there were none.
    @discardableResult
    func turn(waits: Bool = true) -> Bool {
        let count = poller.wait(milliseconds: waits ? timeout() : 0)
        for index in 0..<count {
            let (token, events) = poller[index]
            if token == EventLoop.bellToken {
                runJobs()
            } else if token & Listener.mark != 0 {
                if events.isDisjoint(with: .hangUp) { accept(token) } else { removeBroken(token) }
            } else {
                let number = Int(token & 0xFFFF_FFFF)
                guard number < registrations.count, registrations[number].generation == UInt32(token >> 32),
                    let connection = registrations[number].connection
                else { continue }
                connection.handle(events)
            }
        }
        let others = waiting
        if !others.isEmpty {
            waiting = []
            for connection in others { connection.continueReading() }
        }
        let isIdle = count == 0 && others.isEmpty
        return checkDeadlines() || !isIdle
    }

    private func timeout() -> Int32 {
        guard waiting.isEmpty else { return 0 }
        if deadlines.isEmpty, paused.isEmpty { return -1 }
        let now = clock()
        let due = deadlines.timeout(now: now)
        guard !paused.isEmpty else { return due }
        let next = paused.values.min() ?? now
        let resumes = Int32(clamping: max(0, (next - now) / 1_000_000 + 1))
        return due < 0 ? resumes : min(due, resumes)
    }

    private func runJobs() {
        let due = jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
        for job in due { job() }
    }

    private func checkDeadlines() -> Bool {
        if deadlines.isEmpty, paused.isEmpty { return false }
        let now = clock()
        let resumed = paused.filter { $0.value <= now }.keys
        resume(resumed)
        let due = deadlines.takeDue(now: now)
        for connection in due { connection.check(at: now) }
        return !resumed.isEmpty || !due.isEmpty
    }

    /// Calls ``HTTPConnection/check(at:)`` at the given time.
    func schedule(_ connection: HTTPConnection, at due: Int64) {
        deadlines.enter(connection, due: due, now: clock())
    }

    /// Called when the connection closes.
    func unschedule(_ connection: HTTPConnection) { deadlines.remove(connection) }

    /// Lets the connection continue to read after the other connections have had a turn.
    func postpone(_ connection: HTTPConnection) {
        waiting.append(connection)
    }

    private func accept(_ token: UInt64) {
        guard let listener = listeners.withLock({ $0[token] }) else { return }
        var outcome = listener.accept(for: self)
        if case .exhausted = outcome, freeDescriptor() { outcome = listener.accept(for: self) }
        switch outcome {
        case .accepted: return
        case .broken: return removeBroken(token)
        case .exhausted, .refused: break
        }
        // The poller would report the listener as ready in every turn. So it is not watched until a connection closes
        // or the pause is over.
        poller.change(listener.number, [], token: token)
        paused[token] = clock() + EventLoop.pause
    }

    /// The process that opened the socket has shut it down. The poller would report it as ready in every turn.
    private func removeBroken(_ token: UInt64) {
        guard let listener = listeners.withLock({ $0[token] }) else { return }
        remove(listener)
        listener.server.isLost()
    }

    private func resume(_ tokens: some Collection<UInt64>) {
        for token in tokens {
            paused[token] = nil
            guard let listener = listeners.withLock({ $0[token] }) else { continue }
            poller.change(listener.number, .input, token: token)
        }
    }

    func freeConnection() -> HTTPConnection { free.popLast() ?? HTTPConnection(loop: self) }

    func nextAge() -> UInt64 {
        lastAge += 1
        return lastAge
    }

    /// Keeps the object for the next client, and resumes paused listeners.
    func retire(_ connection: HTTPConnection) {
        if free.count < EventLoop.mostFree { free.append(connection) }
        if !paused.isEmpty { resume(Array(paused.keys)) }
    }

    /// The objects hold references to the loop, which would therefore never be deallocated.
    func forgetClosed() {
        free = []
        deadlines.removeAll()
    }

    /// Returns the token of the descriptor's events; nil if the kernel has no memory for it.
    func register(_ connection: HTTPConnection, _ descriptor: Int32, _ wanted: Poller.Events) -> UInt64? {
        let index = Int(descriptor)
        while registrations.count <= index { registrations.append(Registration()) }
        // 31 bits, so that no token has the mark of a listener.
        registrations[index].generation = (registrations[index].generation &+ 1) & 0x7FFF_FFFF
        let token = UInt64(registrations[index].generation) << 32 | UInt64(index)
        do throws(ServerError) {
            try poller.add(descriptor, wanted, token: token)
        } catch {
            return nil
        }
        registrations[index].connection = connection
        return token
    }

    func change(_ descriptor: Int32, _ wanted: Poller.Events, token: UInt64) {
        poller.change(descriptor, wanted, token: token)
    }

    /// Called before the descriptor is closed, which also ends its watching.
    func forget(_ descriptor: Int32) {
        registrations[Int(descriptor)].connection = nil
    }
}

/// What gives way when the process has no free descriptor. Attack: a client opens connections and sends nothing.
extension EventLoop {
    /// A connection that was idle when ``candidates`` was made.
    struct Candidate {
        /// Its descriptor.
        let index: Int
        let generation: UInt32
        let age: UInt64
        let isBlocked: Bool
    }

    /// Closes the descriptors of the known processes, or else the oldest connection of any server that is not working
    /// on a complete request. False if there is none. One pass over all connections finds the candidates for many
    /// calls. A connection that was busy then is not among them, until all of them are closed or busy. `other` must not
    /// be closed.
    func freeDescriptor(for other: HTTPConnection? = nil) -> Bool {
        if processes.giveUp() { return true }
        if dropCandidate(besides: other) { return true }
        let now = now
        guard now >= nextSearch else { return false }
        candidates = findCandidates()
        // Attack: a client keeps thousands of connections busy, so that each new one leads to a search.
        if candidates.isEmpty { nextSearch = now + ConnectionRegistry.searchPause }
        return dropCandidate(besides: other)
    }

    private func dropCandidate(besides other: HTTPConnection?) -> Bool {
        while let candidate = candidates.popLast() {
            let registration = registrations[candidate.index]
            guard registration.generation == candidate.generation, let connection = registration.connection,
                connection.isIdle, connection.isBlocked == candidate.isBlocked, connection !== other
            else { continue }
            connection.drop()
            return true
        }
        return false
    }

    /// The last one is the first to be closed: the oldest whose response has been sent.
    private func findCandidates() -> [Candidate] {
        var found: [Candidate] = []
        for (index, registration) in registrations.enumerated() {
            guard let connection = registration.connection, connection.isIdle else { continue }
            found.append(
                Candidate(
                    index: index, generation: registration.generation, age: connection.age,
                    isBlocked: connection.isBlocked))
        }
        return found.sorted { $0.isBlocked == $1.isBlocked ? $0.age > $1.age : $0.isBlocked }
    }
}

extension EventLoop {
    /// Throws ``ServerError`` if the system has no thread or no descriptor left.
    static func started() throws(ServerError) -> EventLoop {
        let loop = try EventLoop()
        let code = BlockingThread.start {
            // For tools such as `top`.
            unsafe clinux_name_thread("sockets")
            loop.run()
        }
        guard code == 0 else { throw .system(call: "pthread_create", errno: code) }
        return loop
    }
}

/// An epoll instance and the memory of its events. ``wait(milliseconds:)`` and the subscript belong to one thread.
@safe struct Poller: ~Copyable {
    /// What a descriptor is watched for, or what happened to it.
    struct Events: OptionSet {
        let rawValue: UInt32
        static let input = Events(rawValue: EPOLLIN.rawValue)
        static let output = Events(rawValue: EPOLLOUT.rawValue)
        /// The peer has closed its sending side.
        static let inputEnd = Events(rawValue: EPOLLRDHUP.rawValue)
        /// Closed in both directions, or failed. The kernel always reports this.
        static let hangUp = Events(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
        /// EPOLLET: each change is reported once, not again in every wait.
        static let edges = Events(rawValue: 1 << 31)
    }

    /// Of one wait.
    private static let most: Int32 = 256
    private let epoll: Descriptor
    private let events: UnsafeMutablePointer<epoll_event>

    /// Throws ``ServerError``.
    init() throws(ServerError) {
        let number = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard number >= 0 else { throw .system(call: "epoll_create1", errno: errno) }
        epoll = Descriptor(number)
        unsafe events = .allocate(capacity: Int(Poller.most))
    }

    deinit { unsafe events.deallocate() }

    /// Events are reported with the token. Throws ``ServerError``.
    func add(_ descriptor: Int32, _ wanted: Events, token: UInt64) throws(ServerError) {
        var event = unsafe epoll_event()
        unsafe event.events = wanted.rawValue
        unsafe event.data.u64 = token
        guard unsafe epoll_ctl(epoll.number, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            throw .system(call: "epoll_ctl", errno: errno)
        }
    }

    /// Events that have already occurred are reported again.
    func change(_ descriptor: Int32, _ wanted: Events, token: UInt64) {
        var event = unsafe epoll_event()
        unsafe event.events = wanted.rawValue
        unsafe event.data.u64 = token
        unsafe epoll_ctl(epoll.number, EPOLL_CTL_MOD, descriptor, &event)
    }

    func remove(_ descriptor: Int32) {
        epoll_ctl(epoll.number, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// -1: no timeout. Returns the number of events.
    func wait(milliseconds: Int32) -> Int {
        // The only possible error is EINTR.
        max(0, Int(unsafe epoll_wait(epoll.number, events, Poller.most, milliseconds)))
    }

    /// Of the last wait.
    subscript(index: Int) -> (token: UInt64, events: Events) {
        let event = unsafe events[index]
        return unsafe (event.data.u64, Events(rawValue: event.events))
    }
}

/// A file descriptor with one owner.
struct Descriptor: ~Copyable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit { close(number) }

    /// Without closing it.
    consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}
