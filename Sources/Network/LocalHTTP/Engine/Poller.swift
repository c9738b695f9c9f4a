internal import CLinux
internal import Glibc

/// An epoll instance and the memory that its events are written to. ``wait(milliseconds:)`` and the subscript belong to
/// one thread; the other functions may be called on any.
@safe struct Poller: ~Copyable {
    /// What a descriptor is watched for, or what happened to it.
    struct Events: OptionSet {
        let rawValue: UInt32

        static let input = Events(rawValue: EPOLLIN.rawValue)
        static let output = Events(rawValue: EPOLLOUT.rawValue)
        /// The peer has closed its sending side.
        static let inputEnd = Events(rawValue: EPOLLRDHUP.rawValue)
        /// The connection is closed in both directions, or has failed. The kernel always reports this.
        static let hangUp = Events(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
        /// Edge-triggered (EPOLLET): each change is reported once, not again in every wait.
        static let edges = Events(rawValue: 1 << 31)
    }

    /// The maximum number of events that one wait returns.
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

    /// Watches a descriptor. Its events are reported with the token. Throws ``ServerError``.
    func add(_ descriptor: Int32, _ wanted: Events, token: UInt64) throws(ServerError) {
        var event = unsafe epoll_event()
        unsafe event.events = wanted.rawValue
        unsafe event.data.u64 = token
        guard unsafe epoll_ctl(epoll.number, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
            throw .system(call: "epoll_ctl", errno: errno)
        }
    }

    /// Changes what a descriptor is watched for. Events that have already occurred are reported again.
    func change(_ descriptor: Int32, _ wanted: Events, token: UInt64) {
        var event = unsafe epoll_event()
        unsafe event.events = wanted.rawValue
        unsafe event.data.u64 = token
        unsafe epoll_ctl(epoll.number, EPOLL_CTL_MOD, descriptor, &event)
    }

    func remove(_ descriptor: Int32) {
        epoll_ctl(epoll.number, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// Waits for events or for a timeout (-1: no timeout). Returns the number of events.
    func wait(milliseconds: Int32) -> Int {
        // The only possible error is EINTR.
        max(0, Int(unsafe epoll_wait(epoll.number, events, Poller.most, milliseconds)))
    }

    /// An event of the last wait.
    subscript(index: Int) -> (token: UInt64, events: Events) {
        let event = unsafe events[index]
        return unsafe (event.data.u64, Events(rawValue: event.events))
    }
}
