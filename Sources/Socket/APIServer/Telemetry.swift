internal import BrokerCore
internal import LocalHTTP
internal import RingbackBase
internal import Synchronization

/// How users sign in to an app, as short lines without names. Nothing is stored or sent; only listeners get them.
final class Telemetry: Sendable {
    private struct State {
        var ways: [String: String] = [:]
        var listeners: [ObjectIdentifier: TelemetryListener] = [:]
    }
    private let state = Mutex(State())
    private let now: @Sendable () -> Int
    init(now: @escaping @Sendable () -> Int) { self.now = now }

    func note(_ fact: BrokerFact) {
        let told = state.withLock { state in (lines(fact, &state.ways), Array(state.listeners.values)) }
        for line in told.0 { for listener in told.1 { listener.append(line) } }
    }

    func listen(to account: String?) -> EventFeed {
        let listener = TelemetryListener(account: account)
        state.withLock { $0.listeners[ObjectIdentifier(listener)] = listener }
        return EventFeed(
            first: Array(": telemetry\n\n".utf8),
            leave: { [weak self] in
                self?.state.withLock { _ = $0.listeners.removeValue(forKey: ObjectIdentifier(listener)) }
            }, source: { bound in await listener.next(within: bound) })
    }

    private func lines(_ fact: BrokerFact, _ ways: inout [String: String]) -> [TelemetryLine] {
        switch fact {
        case .signInChosen(let account, let way):
            ways[account.rawValue] = way
            return [line(.authMethodSelected, account, way)]
        case .signInStarted(let account, let method):
            return [line(.authStarted, account, ways[account.rawValue] ?? method.rawValue)]
        case .signInEnded(let account, let method, let outcome, let duration, let error, _):
            let event: TelemetryEvent =
                switch outcome {
                case .completed: .authCompleted
                case .cancelled: .authCancelled
                case .failed, .expired: .authFailed
                }
            let (seconds, attoseconds) = duration.components
            let milliseconds = Int(seconds) * 1_000 + Int(attoseconds / 1_000_000_000_000_000)
            return [
                line(
                    event, account, ways[account.rawValue] ?? method.rawValue,
                    ["duration_ms": milliseconds, "error_type": error.map(RecordKeeper.code)])
            ]
        case .refreshStarted(let account, let reason):
            return [line(.tokenRefreshAttempted, account, nil, ["reason": reason.rawValue])]
        case .refreshFailed(let account, let error), .downscopingFailed(let account, let error):
            return [line(.tokenRefreshFailed, account, nil, ["error_type": RecordKeeper.code(of: error)])]
        case .sessionEnded(let account, _, _, _):
            return [line(.tokenRefreshFailed, account, nil, ["error_type": "session_expired"])]
        case .identityLinked(let account, let provider, let sight):
            // An identity that was linked before the user first signed in here is not a step of this sign-in.
            if case .former = sight { return [] }
            return [line(.accountLinked, account, provider)]
        default: return []
        }
    }

    private func line(
        _ event: TelemetryEvent, _ account: AccountName, _ method: String?, _ more: JSONObject = [:]
    ) -> TelemetryLine {
        var data: JSONObject = [
            "event": event.rawValue, "account": account.rawValue, "method": method.map(RecordKeeper.bounded),
            "at": now(),
        ]
        data.members += more.members
        return TelemetryLine(event: event, data: data)
    }
}

struct TelemetryLine: Sendable {
    let event: TelemetryEvent
    let data: JSONObject
}

/// One listener's lines. If it does not read, the oldest are dropped.
final class TelemetryListener: Sendable {
    private let account: String?
    private let state = Mutex((lines: [TelemetryLine](), signal: Promise<Void>()))
    private static let capacity = 1_024
    init(account: String?) { self.account = account }

    func append(_ line: TelemetryLine) {
        if let account, line.data["account"]?.string != account { return }
        let signal = state.withLock { state in
            state.lines.append(line)
            if state.lines.count > TelemetryListener.capacity { state.lines.removeFirst() }
            defer { state.signal = Promise() }
            return state.signal
        }
        signal.fulfil(())
    }

    func next(within bound: Duration) async -> EventFeed.Next {
        let (ready, signal) = take()
        if !ready.isEmpty { return .bytes(ready) }
        _ = await signal.wait(atMost: bound)
        if Task.isCancelled { return .end(nil) }
        let later = take().ready
        return later.isEmpty ? .quiet : .bytes(later)
    }

    private func take() -> (ready: [UInt8], signal: Promise<Void>) {
        state.withLock { state in
            defer { state.lines = [] }
            return (state.lines.flatMap { $0.event.bytes(.object($0.data)) }, state.signal)
        }
    }
}
