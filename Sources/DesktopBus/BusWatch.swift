internal import Dispatch
internal import Glibc
internal import Synchronization

/// What may be watched for on the person's buses.
public enum BusEvent: String, Sendable, CaseIterable {
    /// The Secret Service came or went, or one of its collections was locked, unlocked, made or deleted: whoever waits
    /// for a key looks again. Also said when watching begins, since it may have changed before.
    case secretServiceChanged = "secret_service_changed"
    /// The screen was locked, or is when watching begins.
    case screenLocked = "screen_locked"
}

/// Watches for one event until it is released: a thread that sleeps in `poll`, on a connection that is made again, with
/// patience, whenever it is lost.
public final class BusWatch: Sendable {
    /// Until the first and the last of the attempts to find a bus.
    private static let patience: ClosedRange<Duration> = .seconds(1) ... .seconds(60)

    /// Its end tells the thread to stop.
    private let stopper: Mutex<Int32>

    /// Watches for the event on the bus at `place`, by default where the environment says the event's bus is. `report`
    /// is called on a thread of the watch's own; events of the same moment are one call.
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
                // Nobody is told: there is no event without a bus. The next attempt says that things may have changed.
            }
            var waiting = [pollfd(fd: stop, events: Int16(POLLIN), revents: 0)]
            guard unsafe poll(&waiting, 1, Int32(wait / .milliseconds(1))) == 0 else { return }
            wait = min(wait * 2, patience.upperBound)
        }
    }

    /// Reports until the connection ends. False when it is to stop.
    private static func serve(
        _ bus: BusConnection, _ subject: any BusSubject, _ stop: Int32, _ report: @Sendable () -> Void
    ) throws(BusFailure) -> Bool {
        while true {
            var isDue = false
            while let step = try bus.step() {
                // A message of another form than it should have is none of ours.
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

/// What a watch watches: it asks for its signals when it is made.
protocol BusSubject {
    /// True if what is watched for is, or may be, so already.
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
