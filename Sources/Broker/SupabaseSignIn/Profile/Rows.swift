internal import BrokerCore
public import RingbackBase
internal import SupabaseAuth
internal import Synchronization

/// The app's own row about the user (`profile = { table = …, key = … }`).
public enum SupabaseProfile: Sendable, Equatable {
    /// The row; not active if its column `is_active` is false.
    case row(JSONObject, isActive: Bool)
    case missing
}

/// The rows of the signed-in users, in memory only. They are fetched after a sign-in, a start and a change of the user.
final class SupabaseProfiles: ProviderMemory {
    private typealias Look = Promise<Result<SupabaseProfile, BrokerError>>

    private struct Known {
        /// The fetch that was started last. It may have ended already.
        let latest: Look
        var stage = Stage.fetching
    }

    private enum Stage {
        case fetching
        case row(SupabaseProfile)
        /// The fetch failed, or the user was no longer signed in when it ended.
        case unusable
    }

    private let accounts = Mutex<[AccountName: Known]>([:])
    private let work: Work

    init(http: any HTTPClient, work: Work, clock: BrokerClock) { self.work = work }

    func profile(of account: Account, in sessions: SessionManager) async throws(BrokerError) -> SupabaseProfile {
        let known = accounts.withLock { $0[account.name] }
        if case .row(let row) = known?.stage { return row }
        let running: Look? = if case .fetching = known?.stage { known?.latest } else { nil }
        var awaited = running ?? start(account, sessions)
        while true {
            guard let found = await awaited.wait() else { throw .cancelled }
            // This row may be outdated: if a later fetch was started meanwhile, use the result of that one.
            guard let later = accounts.withLock({ $0[account.name]?.latest }), later !== awaited else {
                return try found.get()
            }
            awaited = later
        }
    }

    func renew(_ account: Account, in sessions: SessionManager) {
        if account.project?.profile == nil { forget(account.name) } else { _ = start(account, sessions) }
    }

    func forget(_ name: AccountName) { accounts.withLock { $0[name] = nil } }

    func isAwaited(_ name: AccountName) -> Bool {
        if case .fetching = accounts.withLock({ $0[name]?.stage }) { true } else { false }
    }

    /// Concurrent callers share one fetch. If a later one is started, the result of the earlier one is not cached.
    private func start(_ account: Account, _ sessions: SessionManager) -> Look {
        let look = Look()
        accounts.withLock { $0[account.name] = Known(latest: look) }
        work.start {
            let (found, isStill) = await self.fetch(account, sessions)
            self.accounts.withLock { accounts in
                guard accounts[account.name]?.latest === look else { return }
                accounts[account.name]?.stage =
                    if isStill, case .success(let row) = found { .row(row) } else { .unusable }
            }
            look.fulfil(found)
        }
        return look
    }

    private func fetch(
        _ account: Account, _ sessions: SessionManager
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
        _ account: Account, _ subject: String?, _ sessions: SessionManager
    ) async throws(BrokerError) -> SupabaseProfile {
        let found = try await row(account, subject, sessions)
        guard found == .missing, let function = account.project?.profileFunction else { return found }
        // A function that returns nothing may still have created the row.
        if let made = try await makeRow(account, by: function, sessions) { return made }
        return try await row(account, subject, sessions)
    }

    private func row(
        _ account: Account, _ subject: String?, _ sessions: SessionManager
    ) async throws(BrokerError) -> SupabaseProfile {
        guard let profile = account.project?.profile, let subject else { throw .signInRequired(account.name) }
        let requests = UserRequests(account: account.name, sessions: sessions)
        let found = try await requests.ask(try .row(in: profile.table, where: profile.key, is: subject), .borrows)
        switch found {
        case .row(let row): return .row(row, isActive: found.isActive)
        case .missing: return .missing
        }
    }

    /// Nil if the function's result is not a row.
    private func makeRow(
        _ account: Account, by function: String, _ sessions: SessionManager
    ) async throws(BrokerError) -> SupabaseProfile? {
        let requests = UserRequests(account: account.name, sessions: sessions)
        let value = try await requests.ask(try .call(function, arguments: JSONObject()), .borrows).value
        guard let row = value.object ?? value.array?.first?.object else { return nil }
        return .row(row, isActive: row["is_active"]?.bool ?? true)
    }
}
