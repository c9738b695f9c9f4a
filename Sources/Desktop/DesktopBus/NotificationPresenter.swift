internal import Dispatch
internal import Glibc
internal import Synchronization

/// Shows desktop notifications and reports their events, on a thread of its own. Without a bus or a notification server
/// it reports that, and keeps trying to find one.
public final class NotificationPresenter: Sendable {
    /// The result of a request to show a notification.
    public enum Showing: Sendable, Equatable {
        case shown(ShownNotice)
        /// There is no notification server, or it failed; the reason is our own text.
        case notShown(reason: String)
    }

    private enum Job: Sendable {
        case show(Notice, replacing: UInt32?, answer: @Sendable (Showing) -> Void)
        case close(UInt32, done: @Sendable () -> Void)
    }

    /// The shortest and the longest delay between attempts to connect.
    private static let patience: ClosedRange<Duration> = .seconds(1) ... .seconds(60)

    private let jobs = Mutex<[Job]>([])
    /// A byte in this socket wakes the thread for new jobs.
    private let wakeEnd: Mutex<Int32>

    /// Uses the session bus at `place`, by default that of the environment. `report` is called on the presenter's
    /// thread.
    public init(place: BusPlace = .session(), report: @escaping @Sendable (NoticeEvent) -> Void) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            wakeEnd = Mutex(-1)
            return
        }
        wakeEnd = Mutex(ends[1])
        let hearing = ends[0]
        DispatchQueue(label: "ringback.notices").async { [weak self] in
            NotificationPresenter.work(place, hearing, report) { self?.takeJobs() }
            Glibc.close(hearing)
        }
    }

    deinit {
        // The thread reads end of file and stops.
        wakeEnd.withLock { end in
            if end >= 0 { Glibc.close(end) }
        }
    }

    /// Shows a notification and replaces another one if that is still shown.
    public func show(_ notice: Notice, replacing former: UInt32?, answer: @escaping @Sendable (Showing) -> Void) {
        put(.show(notice, replacing: former, answer: answer))
    }

    /// Closes a notification if it is still shown. `done` is called after the attempt.
    public func close(_ notice: UInt32, done: @escaping @Sendable () -> Void = {}) { put(.close(notice, done: done)) }

    private func put(_ job: Job) {
        jobs.withLock { $0.append(job) }
        // If the socket is full, a byte is waiting in it already.
        _ = wakeEnd.withLock { end in unsafe send(end, [1], 1, Int32(MSG_NOSIGNAL)) }
    }

    private func takeJobs() -> [Job] {
        jobs.withLock { jobs in
            defer { jobs = [] }
            return jobs
        }
    }

    // MARK: The thread

    /// - Parameter take: returns and removes the jobs; nil when the presenter was released.
    private static func work(
        _ place: BusPlace, _ wakeEnd: Int32, _ report: @Sendable (NoticeEvent) -> Void, _ take: () -> [Job]?
    ) {
        var server: NotificationServer?
        var wait = patience.lowerBound
        // The first job makes the thread connect. From then on it keeps trying.
        var isWanted = false
        while true {
            guard let jobs = take() else { return }
            isWanted = isWanted || !jobs.isEmpty
            if isWanted, server == nil { server = find(place, &wait, isNew: jobs.isEmpty, report) }
            for job in jobs { perform(job, &server, report) }
            do throws(BusFailure) {
                try hear(server, report)
                try sleep(server, wakeEnd, isWanted && server == nil ? wait : nil)
            } catch {
                server = nil
                report(.serverGone(server: ""))
            }
            // The socket is emptied before the jobs are taken. A job that arrives in between writes another byte.
            var buffer = [UInt8](repeating: 0, count: 64)
            while unsafe recv(wakeEnd, &buffer, buffer.count, 0) > 0 {}
        }
    }

    private static func find(
        _ place: BusPlace, _ wait: inout Duration, isNew: Bool, _ report: @Sendable (NoticeEvent) -> Void
    ) -> NotificationServer? {
        guard let server = try? NotificationServer(place) else {
            wait = min(wait * 2, patience.upperBound)
            return nil
        }
        wait = patience.lowerBound
        // Requests that failed before there was a bus may be repeated now.
        if isNew, (try? server.isThere()) == true { report(.serverCame) }
        return server
    }

    private static func perform(
        _ job: Job, _ server: inout NotificationServer?, _ report: @Sendable (NoticeEvent) -> Void
    ) {
        switch job {
        case .show(let notice, let former, let answer):
            guard let there = server else { return answer(.notShown(reason: "there is no session bus")) }
            do throws(BusFailure) {
                answer(.shown(try there.show(notice, replacing: former)))
            } catch {
                answer(.notShown(reason: error.reasonOfNotices))
                guard error == .lost else { return }
                server = nil
                report(.serverGone(server: ""))
            }
        case .close(let notice, let done):
            try? server?.close(notice)
            done()
        }
    }

    /// Reads all messages and reports their events.
    private static func hear(_ server: NotificationServer?, _ report: @Sendable (NoticeEvent) -> Void)
        throws(BusFailure)
    {
        while let server, let step = try server.bus.step() {
            guard case .message(let message) = step else { continue }
            // A malformed message is ignored.
            for event in (try? server.read(message)) ?? [] { report(event) }
        }
    }

    /// Waits until a message or a job arrives, or the time has passed.
    private static func sleep(
        _ server: NotificationServer?, _ wakeEnd: Int32, _ bound: Duration?
    ) throws(BusFailure) {
        var waiting = [pollfd(fd: wakeEnd, events: Int16(POLLIN), revents: 0)]
        var milliseconds = bound.map { Int32($0 / .milliseconds(1)) } ?? -1
        if let server {
            let interest = try server.bus.interest()
            waiting.append(interest.waiting)
            milliseconds = interest.milliseconds
        }
        _ = unsafe poll(&waiting, nfds_t(waiting.count), milliseconds)
    }
}

extension BusFailure {
    /// Why a notification could not be shown.
    fileprivate var reasonOfNotices: String {
        switch self {
        case .noLibrary, .noBus, .lost: "there is no session bus"
        case .timedOut: "the notification server does not respond"
        case .refused(let name):
            name.hasPrefix("org.freedesktop.DBus.Error.Spawn") || name.hasSuffix(".ServiceUnknown")
                || name.hasSuffix(".NameHasNoOwner")
                ? "there is no notification server" : "the notification server returned the error \(name)"
        default: "the notification server violates its interface"
        }
    }
}
