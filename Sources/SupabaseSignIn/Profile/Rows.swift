internal import BrokerCore
internal import HTTPMessages
internal import Secrets
public import StrictJSON
internal import SupabaseAuth
internal import Synchronization

/// The app's own row about the user (`profile = { table = …, key = … }`).
public enum SupabaseProfile: Sendable, Equatable {
    /// The row; not active if its column `is_active` is false.
    case row(JSONObject, isActive: Bool)
    /// There is no row that the user may read.
    case missing
}

/// The rows of the signed-in users. They are fetched after a sign-in, after the start and after a change of the user.
/// They are kept only in memory.
final class SupabaseProfiles: ProviderMemory {
    private typealias Look = Promise<Result<SupabaseProfile, BrokerError>>
    private struct State {
        var rows: [AccountName: SupabaseProfile] = [:]
        /// The fetches in progress.
        var looks: [AccountName: Look] = [:]
        /// The fetches that were started last, also if they have ended.
        var latest: [AccountName: Look] = [:]
    }
    private let state = Mutex(State())
    private let work: Work

    init(http: any HTTPClient, work: Work, clock: BrokerClock) { self.work = work }

    func profile(
        of account: Account, in sessions: SessionAccess
    ) async throws(BrokerError) -> SupabaseProfile {
        let (row, look) = state.withLock { ($0.rows[account.name], $0.looks[account.name]) }
        if let row { return row }
        var awaited = look ?? start(account, sessions)
        while true {
            guard let found = await awaited.wait() else { throw .cancelled }
            // If a later fetch was started meanwhile, its result counts: this row may be outdated. It may have ended
            // already.
            guard let later = state.withLock({ $0.latest[account.name] }), later !== awaited else {
                return try found.get()
            }
            awaited = later
        }
    }

    /// Fetches the row again: the cached one may be another user's or outdated.
    func renew(_ account: Account, in sessions: SessionAccess) {
        if account.project?.profile == nil { forget(account.name) } else { _ = start(account, sessions) }
    }

    func forget(_ name: AccountName) {
        state.withLock { state in
            state.rows[name] = nil
            state.looks[name] = nil
            state.latest[name] = nil
        }
    }

    func isAwaited(_ name: AccountName) -> Bool { state.withLock { $0.looks[name] != nil } }

    /// Concurrent callers share one fetch. If a later one is started, the result of the earlier one is not cached.
    private func start(_ account: Account, _ sessions: SessionAccess) -> Look {
        let look = Look()
        state.withLock { state in
            state.rows[account.name] = nil
            state.looks[account.name] = look
            state.latest[account.name] = look
        }
        work.start {
            let (found, isStill) = await self.fetch(account, sessions)
            self.state.withLock { state in
                guard state.looks[account.name] === look else { return }
                state.looks[account.name] = nil
                if case .success(let row) = found, isStill { state.rows[account.name] = row }
            }
            look.fulfil(found)
        }
        return look
    }

    /// The row, and whether the same user is still signed in.
    private func fetch(
        _ account: Account, _ sessions: SessionAccess
    ) async -> (Result<SupabaseProfile, BrokerError>, isStill: Bool) {
        let subject = await sessions.held(account.name)?.subject
        do throws(BrokerError) {
            let row = try await fetch(account, subject, sessions)
            return (.success(row), await sessions.held(account.name)?.subject == subject)
        } catch {
            return (.failure(error), false)
        }
    }

    private func fetch(
        _ account: Account, _ subject: String?, _ sessions: SessionAccess
    ) async throws(BrokerError) -> SupabaseProfile {
        let found = try await row(account, subject, sessions)
        guard found == .missing, let function = account.project?.profileFunction else { return found }
        // A function that returns nothing may still have created the row.
        if let made = try await makeRow(account, by: function, sessions) { return made }
        return try await row(account, subject, sessions)
    }

    private func row(
        _ account: Account, _ subject: String?, _ sessions: SessionAccess
    ) async throws(BrokerError) -> SupabaseProfile {
        guard let profile = account.project?.profile, let subject else { throw .signInRequired(account.name) }
        let response = try await sessions.change(
            account.name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.row(in: profile.table, where: profile.key, is: subject, bearer: token)
                }, borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try ProfileResponse(reading: response) }))
        let answer = try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try ProfileResponse(reading: response)
        }
        switch answer {
        case .row(let row): return .row(row, isActive: answer.isActive)
        case .missing: return .missing
        }
    }

    /// Nil if the function's result is not a row.
    private func makeRow(
        _ account: Account, by function: String, _ sessions: SessionAccess
    ) async throws(BrokerError) -> SupabaseProfile? {
        let response = try await sessions.change(
            account.name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.call(function, arguments: JSONObject(), bearer: token)
                }, borrowsToken: true,
                apply: { response, _ throws(SupabaseError) in _ = try FunctionResponse(reading: response) }))
        let value = try SupabaseProvider.reading(response) { response throws(SupabaseError) in
            try FunctionResponse(reading: response).value
        }
        guard let row = value.object ?? value.array?.first?.object else { return nil }
        return .row(row, isActive: row["is_active"]?.bool ?? true)
    }
}
