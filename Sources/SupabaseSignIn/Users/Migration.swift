public import BrokerCore
internal import SupabaseAuth

/// An app that had users of its own before it had a project: what it called this person, shown with the session until
/// the app says that it has moved the person's data.
extension SupabaseOperations {
    /// Notes the person's former identifier. The same again changes nothing; another one has to wait until the first is
    /// acknowledged (`.conflict`).
    public func migrate(_ name: AccountName, from identifier: String) async throws(BrokerError) -> AccountView {
        guard (1...255).contains(identifier.utf8.count), identifier.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid(field: "from", reason: "an identifier of 1 to 255 bytes without control characters")
        }
        try await sessions.setMigration(name, identifier)
        return try await broker.account(name)
    }

    /// The app has moved the person's data. Idempotent.
    public func acknowledgeMigration(_ name: AccountName) async throws(BrokerError) -> AccountView {
        try await sessions.setMigration(name, nil)
        return try await broker.account(name)
    }
}

extension SessionAccess {
    fileprivate func setMigration(_ name: AccountName, _ identifier: String?) async throws(BrokerError) {
        guard try await account(name).project != nil else {
            throw .methodUnsupported("\(name) is not at a Supabase project.")
        }
        try await edit(name) { session throws(BrokerError) in
            // What waits for the app must not be lost by another identifier that it names.
            if let identifier, let former = session.project?.migratesFrom, former != identifier {
                throw .conflict(
                    "The data of \(former) waits to be moved already.", cause: .migrationPending(name))
            }
            session.project?.migratesFrom = identifier
        }
    }
}
