internal import HTTPMessages
internal import Secrets
public import StrictJSON
internal import SupabaseAuth

/// The app's own row about the person (`profile = { table = …, key = … }`).
public enum SupabaseProfile: Sendable, Equatable {
    /// The row; not active if it says so itself (`is_active`).
    case row(JSONObject, isActive: Bool)
    /// There is none that the person may see.
    case missing
}

extension Broker {
    /// The person's row: the one that was fetched after the sign-in, or fetched now. Nil where the account has none.
    public func profile(_ name: AccountName) async throws(BrokerError) -> SupabaseProfile? {
        try await sessionManager.profile(name)
    }
}

/// Fetched after a sign-in, after a start and after a change of the user; held in memory alone, since it is the app's.
extension SessionManager {
    func profile(_ name: AccountName) async throws(BrokerError) -> SupabaseProfile? {
        guard let rules = try account(name).project, rules.profile != nil else { return nil }
        if let held = profiles[name] { return held }
        let look = profileLooks[name] ?? lookForProfile(name)
        guard let found = await look.wait() else { throw .cancelled }
        return try found.get()
    }

    /// What was fetched is another person's, or of before a change.
    func renewProfile(_ name: AccountName) {
        profiles[name] = nil
        profileLooks[name] = nil
        guard lanes[name]?.state.session != nil, lanes[name]?.account.project?.profile != nil else { return }
        lookForProfile(name)
    }

    /// One look for all who ask. A later one counts more: what an earlier one finds then is not kept.
    @discardableResult
    private func lookForProfile(_ name: AccountName) -> Promise<Result<SupabaseProfile, BrokerError>> {
        let look = Promise<Result<SupabaseProfile, BrokerError>>()
        profileLooks[name] = look
        work.start { await self.deliverProfile(name, to: look) }
        return look
    }

    private func deliverProfile(_ name: AccountName, to look: Promise<Result<SupabaseProfile, BrokerError>>) async {
        let subject = lanes[name]?.state.session?.subject
        let found: Result<SupabaseProfile, BrokerError>
        do throws(BrokerError) {
            found = .success(try await fetchProfile(name))
        } catch {
            found = .failure(error)
        }
        if profileLooks[name] === look {
            profileLooks[name] = nil
            if case .success(let profile) = found, lanes[name]?.state.session?.subject == subject {
                profiles[name] = profile
            }
        }
        look.fulfil(found)
    }

    private func fetchProfile(_ name: AccountName) async throws(BrokerError) -> SupabaseProfile {
        let found = try await row(name)
        guard found == .missing, let function = lanes[name]?.account.project?.profileFunction else { return found }
        // A function that returns nothing may have made it all the same.
        if let made = try await makeRow(name, by: function) { return made }
        return try await row(name)
    }

    private func row(_ name: AccountName) async throws(BrokerError) -> SupabaseProfile {
        guard let profile = lanes[name]?.account.project?.profile, let subject = lanes[name]?.state.session?.subject
        else {
            throw .signInRequired(name)
        }
        let response = try await change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.row(in: profile.table, where: profile.key, is: subject, bearer: token)
                }, apply: { response, _ throws(SupabaseError) in _ = try ProfileResponse(reading: response) }))
        let answer = try Broker.reading(response) { response throws(SupabaseError) in
            try ProfileResponse(reading: response)
        }
        switch answer {
        case .row(let row): return .row(row, isActive: answer.isActive)
        case .missing: return .missing
        }
    }

    /// Nil if the function's result is no row.
    private func makeRow(_ name: AccountName, by function: String) async throws(BrokerError) -> SupabaseProfile? {
        let response = try await change(
            name,
            SupabaseOperation(
                request: { project, token throws(FieldError) in
                    try project.call(function, arguments: JSONObject(), bearer: token)
                }, apply: { response, _ throws(SupabaseError) in _ = try FunctionResponse(reading: response) }))
        let value = try Broker.reading(response) { response throws(SupabaseError) in
            try FunctionResponse(reading: response).value
        }
        guard let row = value.object ?? value.array?.first?.object else { return nil }
        return .row(row, isActive: row["is_active"]?.bool ?? true)
    }
}
