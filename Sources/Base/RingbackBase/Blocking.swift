internal import Glibc
internal import Synchronization

/// A thread for work that blocks. Tasks share one thread for each core, so a long wait there would stop other tasks.
package enum BlockingThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Returns 0 or an errno. `stackSize` is in bytes; nil for the system's usual size. With `blocksSignals` the thread
    /// blocks every signal: a broken connection must not end the process by SIGPIPE, and other signals are handled by
    /// the thread that waits for them.
    package static func start(
        stackSize: Int? = nil, blocksSignals: Bool = true, _ body: @escaping @Sendable () -> Void
    ) -> Int32 {
        var (all, previous) = (sigset_t(), sigset_t())
        if blocksSignals {
            unsafe sigfillset(&all)
            unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
        }
        defer { if blocksSignals { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) } }
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        if let stackSize { unsafe pthread_attr_setstacksize(&attributes, stackSize) }
        let retained = unsafe Unmanaged.passRetained(Body(body))
        var thread = pthread_t()
        let entry: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
            if let context = unsafe context { unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
            return nil
        }
        let failure = unsafe pthread_create(&thread, &attributes, entry, retained.toOpaque())
        if failure != 0 { unsafe retained.release() }
        return failure
    }
}

/// Passes an outcome to the one caller that waits for it. The first one counts, of the work, a timer or a cancellation.
package final class OneOutcome<Outcome: Sendable>: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Outcome, Never>)
        case given(Outcome)
    }

    private let state = Mutex(State.open)
    package init() {}
    package var isGiven: Bool {
        state.withLock { state in if case .given = state { true } else { false } }
    }

    /// Without effect if an outcome is set already.
    package func give(_ outcome: Outcome) {
        let waiter: CheckedContinuation<Outcome, Never>? = state.withLock { state in
            if case .given = state { return nil }
            defer { state = .given(outcome) }
            if case .awaited(let waiter) = state { return waiter }
            return nil
        }
        waiter?.resume(returning: outcome)
    }

    /// Must be called only once.
    package func outcome() async -> Outcome {
        await withCheckedContinuation { continuation in
            let early: Outcome? = state.withLock { state in
                if case .given(let outcome) = state { return outcome }
                state = .awaited(continuation)
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }
}

/// Bytes that are taken in pieces from the front. What has been taken does not stay in memory.
package struct ByteQueue: Sendable {
    private var bytes: [UInt8] = []
    private var taken = 0
    /// Bytes of memory that an empty queue keeps.
    private static let kept = 512 << 10

    package init() {}
    package var count: Int { bytes.count - taken }
    package var isEmpty: Bool { count == 0 }
    /// Bytes in memory: those that wait, and some that have been taken.
    package var held: Int { bytes.count }
    package var waiting: ArraySlice<UInt8> { bytes[taken...] }

    package mutating func append(_ more: [UInt8]) {
        makeRoom()
        bytes += more
    }

    package mutating func append(_ more: UnsafeRawBufferPointer) {
        makeRoom()
        unsafe bytes.append(contentsOf: more)
    }

    /// At least as many bytes have been taken as are moved, so the moves take linear time in total.
    private mutating func makeRoom() {
        guard taken > 65_536, taken >= count else { return }
        bytes.removeFirst(taken)
        taken = 0
    }

    /// Lends at most so many bytes.
    package func withFirst<Result>(_ limit: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        unsafe waiting.prefix(limit).withUnsafeBytes { unsafe body($0) }
    }

    package mutating func take(atMost limit: Int) -> [UInt8] {
        let first = Array(waiting.prefix(limit))
        drop(first.count)
        return first
    }

    /// Copies as many bytes as there is room for. Returns their number.
    package mutating func take(into room: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(room.count, count)
        unsafe room.copyBytes(from: bytes[taken..<(taken + count)])
        drop(count)
        return count
    }

    package mutating func drop(_ count: Int) {
        taken += min(count, self.count)
        guard isEmpty else { return }
        bytes.removeAll(keepingCapacity: bytes.capacity <= ByteQueue.kept)
        taken = 0
    }
}
