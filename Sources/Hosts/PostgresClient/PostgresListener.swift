internal import CLinux
public import RingbackBase
internal import Synchronization

/// A connection that waits for notifications, and asks a question now and then. It is made again after it was lost.
public final class PostgresListener: Sendable {
    public enum Event: Sendable, Equatable {
        /// Everything may have changed before. `listens` is false behind a pooler: then there are no notifications.
        case connected(listens: Bool)
        /// The payload of a notification. Any role of the database can send one.
        case notified(String)
        case asked(PostgresRows)
        case lost(DatabaseReason)
    }

    /// What the connection does. Statements have no results but those named.
    public struct Plan: Sendable {
        /// Returns the name of the channel: letters, digits and `_`.
        public var channel: String
        /// Asked when the connection is made, and at intervals.
        public var question: String
        public var values: [PostgresValue]
        public var intervalWhileListening: Duration = .seconds(30)
        public var intervalWithoutNotifications: Duration = .seconds(5)
        /// A notification after which the channel is asked for at once. It is asked for before each question, too.
        public var renewal = "*"

        public init(channel: String, question: String, values: [PostgresValue]) {
            self.channel = channel
            self.question = question
            self.values = values
        }
    }

    private static let limit: Duration = .seconds(5)
    private let client: PostgresClient
    private let plan: Plan
    private let report: @Sendable (Event) -> Void
    private let wake: Wake?
    private let isStopped = Mutex(false)

    /// Starts a thread that calls `report`, never twice at once, until ``stop()``.
    public init(_ client: PostgresClient, _ plan: Plan, report: @escaping @Sendable (Event) -> Void) {
        self.client = client
        self.plan = plan
        self.report = report
        wake = Wake()
        guard let wake, BlockingThread.start({ self.run(wake) }) == 0 else {
            report(.lost(.busy))
            return
        }
    }

    public func stop() {
        isStopped.withLock { $0 = true }
        wake?.call()
    }

    /// Connects at once if it waits to do so: the network may be back.
    public func tryAgain() { wake?.call() }

    private func run(_ wake: Wake) {
        unsafe clinux_name_thread("rb-listen")
        var backoff = Backoff()
        while !isStopped.withLock({ $0 }) {
            do throws(DatabaseReason) {
                let session = try client.connector.connect(until: .now + Self.limit)
                try serve(session, wake) { backoff.reset() }
            } catch {
                report(.lost(error))
                _ = wake.wait(for: backoff.wait())
            }
        }
    }

    /// Reports until it is stopped, or the connection is to be made anew. Throws when the connection ends.
    private func serve(_ session: Session, _ wake: Wake, _ noteSuccess: () -> Void) throws(DatabaseReason) {
        var channel: String?
        let listens = try listen(session, from: &channel)
        noteSuccess()
        client.noteSuccess()
        report(.connected(listens: listens))
        let interval = listens ? plan.intervalWhileListening : plan.intervalWithoutNotifications
        try ask(session)
        var next = ContinuousClock.now + interval
        while true {
            // Before each wait: a statement reads notifications too, and the connection is not readable again for them.
            let payloads = try session.notifications()
            if payloads.contains(plan.renewal) { _ = try listen(session, from: &channel) }
            for payload in payloads { report(.notified(payload)) }
            let event = wake.wait(
                for: payloads.isEmpty ? ContinuousClock.now.duration(to: next) : .zero, other: session.descriptor)
            if isStopped.withLock({ $0 }) || !session.isUsable { return }
            // Also when it is called: the network may be another one, and the connection dead.
            if event != .called, ContinuousClock.now < next { continue }
            let former = channel
            if listens { _ = try listen(session, from: &channel) }
            // Notifications at the new channel were missed until now.
            if channel != former { report(.notified(plan.renewal)) }
            try ask(session)
            next = .now + interval
        }
    }

    private func ask(_ session: Session) throws(DatabaseReason) {
        report(.asked(try session.run(plan.question, plan.values, until: .now + Self.limit)))
    }

    /// Listens at the channel as it is named now. False behind a pooler: each statement may have another process.
    private func listen(_ session: Session, from former: inout String?) throws(DatabaseReason) -> Bool {
        let deadline = ContinuousClock.now + Self.limit
        let answer = try session.run("SELECT pg_catalog.pg_backend_pid()", [], until: deadline)
        guard answer.count == 1 else { throw .malformed }
        guard try answer[0].integer(0) == session.backend else { return false }
        while true {
            let named = try session.run(plan.channel, plan.values, until: deadline)
            guard named.count == 1 else { throw .malformed }
            let channel = try named[0].text(0)
            let isName = channel.utf8.allSatisfy { $0.isDigit || (0x61...0x7A).contains($0) || $0 == UInt8(ascii: "_") }
            guard isName, (1...63).contains(channel.utf8.count) else { throw .malformed }
            // The name may have changed again before LISTEN took effect: it is asked for until it is the one listened at.
            guard channel != former else { return true }
            try session.run(script: "UNLISTEN *; LISTEN \"\(channel)\"", until: deadline)
            former = channel
        }
    }
}
