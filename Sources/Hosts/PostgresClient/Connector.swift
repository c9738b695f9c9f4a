internal import Secrets
internal import Synchronization

/// Makes connections: asks for the password each time, since it may have been changed.
struct Connector: Sendable {
    private let settings: [Settings]
    private let password: PostgresPassword

    init(_ url: PostgresURL, password: PostgresPassword, application: String) {
        settings = url.hosts.map { Settings(url, $0, password: password, application: application) }
        self.password = password
    }

    /// Connects to the first host that takes changes; blocks the thread. Each has its share of the time. Throws why there
    /// is no connection to the last one.
    func connect(until deadline: ContinuousClock.Instant) throws(PostgresFailure) -> Session {
        let secret = try secret(until: deadline)
        var failure = PostgresFailure.noConnection
        var left = settings.count
        for each in settings {
            let share = ContinuousClock.now.duration(to: deadline) / left
            left -= 1
            do throws(PostgresFailure) {
                return try Session(each, password: secret, until: .now + share)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private func secret(until deadline: ContinuousClock.Instant) throws(PostgresFailure) -> Secret? {
        switch password {
        case .none, .passwordFile: return nil
        case .given, .first: break
        }
        guard let wake = Wake() else { throw .noConnection }
        let answer = Answer(wake)
        Task { [password] in
            do throws(PostgresFailure) { answer.give(.success(try await password.value())) } catch {
                answer.give(.failure(error))
            }
        }
        guard let value = answer.wait(for: ContinuousClock.now.duration(to: deadline)) else { throw .timedOut }
        return try value.get()
    }

    /// Passes the password from a task to a thread that waits. Not by a semaphore of Dispatch, whose time limit goes by the
    /// wall clock: it may be set meanwhile.
    private final class Answer: Sendable {
        private let state = Mutex<Result<Secret?, PostgresFailure>?>(nil)
        private let wake: Wake

        init(_ wake: Wake) { self.wake = wake }

        func give(_ value: Result<Secret?, PostgresFailure>) {
            state.withLock { $0 = value }
            wake.call()
        }

        /// Nil if it does not come in time.
        func wait(for duration: Duration) -> Result<Secret?, PostgresFailure>? {
            _ = wake.wait(for: max(duration, .zero))
            return state.withLock { $0 }
        }
    }
}
