internal import Dispatch
internal import Glibc
internal import Synchronization

/// Events on the user's buses that can be watched.
public enum BusEvent: String, Sendable, CaseIterable {
    /// The Secret Service started or stopped, or one of its collections was locked, unlocked, created or deleted. A
    /// program that waits for a key should try again. Also reported when watching begins, because a change may have
    /// happened before.
    case secretServiceChanged = "secret_service_changed"
    /// The screen was locked, or is locked when watching begins.
    case screenLocked = "screen_locked"
}

/// Watches for one event until it is released. A thread of its own waits in `poll`. A lost connection is opened again,
/// with increasing delays between the attempts.
public final class BusWatch: Sendable {
    /// The shortest and the longest delay between attempts to connect.
    private static let patience: ClosedRange<Duration> = .seconds(1) ... .seconds(60)

    /// Closing this end makes the thread stop.
    private let stopper: Mutex<Int32>

    /// Watches for the event on the bus at `place`, by default the event's bus in the environment. `report` is called
    /// on the watch's thread; events that arrive together cause one call.
    public init(for event: BusEvent, place: BusPlace? = nil, report: @escaping @Sendable () -> Void) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            stopper = Mutex(-1)
            return
        }
        stopper = Mutex(ends[1])
        let stop = ends[0]
        DispatchQueue(label: "ringback.\(event.rawValue)").async {
            BusWatch.watch(event, place, stop, report)
            close(stop)
        }
    }

    deinit {
        stopper.withLock { end in
            if end >= 0 { close(end) }
        }
    }

    private static func watch(
        _ event: BusEvent, _ place: BusPlace?, _ stop: Int32, _ report: @Sendable () -> Void
    ) {
        var wait = patience.lowerBound
        while true {
            do throws(BusFailure) {
                let bus = try BusConnection(place ?? event.place)
                let subject: any BusSubject
                switch event {
                case .secretServiceChanged: subject = try SecretServiceSubject(bus)
                case .screenLocked: subject = try ScreenLockSubject(bus)
                }
                wait = patience.lowerBound
                if subject.isDueAtOnce { report() }
                guard try serve(bus, subject, stop, report) else { return }
            } catch {
                // Nothing is reported while there is no bus. After the next successful attempt the event is reported as
                // possible.
            }
            var waiting = [pollfd(fd: stop, events: Int16(POLLIN), revents: 0)]
            guard unsafe poll(&waiting, 1, Int32(wait / .milliseconds(1))) == 0 else { return }
            wait = min(wait * 2, patience.upperBound)
        }
    }

    /// Reports events until the connection ends. Returns false if the watch is to stop.
    private static func serve(
        _ bus: BusConnection, _ subject: any BusSubject, _ stop: Int32, _ report: @Sendable () -> Void
    ) throws(BusFailure) -> Bool {
        while true {
            var isDue = false
            while let step = try bus.step() {
                // A malformed message is ignored.
                if case .message(let message) = step { isDue = ((try? subject.concerns(message)) ?? false) || isDue }
            }
            if isDue { report() }
            let interest = try bus.interest()
            var waiting = [interest.waiting, pollfd(fd: stop, events: Int16(POLLIN), revents: 0)]
            _ = unsafe poll(&waiting, 2, interest.milliseconds)
            if waiting[1].revents != 0 { return false }
        }
    }
}

/// The event that a watch waits for. Its initializer subscribes to the signals.
protocol BusSubject {
    /// True if the event must be reported at once, because it may have happened before.
    var isDueAtOnce: Bool { get }
    func concerns(_ message: BusMessage) throws(BusFailure) -> Bool
}

extension BusEvent {
    fileprivate var place: BusPlace {
        switch self {
        case .secretServiceChanged: .session()
        case .screenLocked: .system()
        }
    }
}
