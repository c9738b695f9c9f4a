public import BrokerCore
internal import SupabaseAuth

/// For apps that had their own users before they used the project. The session shows the user's former identifier until
/// the app reports that it has moved the user's data.
extension SupabaseOperations {
    /// Stores the user's former identifier. Storing the same one again changes nothing. Another one is rejected until
    /// the first is acknowledged (`.conflict`).
    public func migrate(_ name: AccountName, from identifier: String) async throws(BrokerError) -> AccountView {
        guard (1...255).contains(identifier.utf8.count), identifier.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalid(field: "from", reason: .supabase(.identifierSize))
        }
        try await sessions.setMigration(name, identifier)
        return try await broker.account(name)
    }

    /// The app has moved the user's data. Idempotent.
    public func acknowledgeMigration(_ name: AccountName) async throws(BrokerError) -> AccountView {
        try await sessions.setMigration(name, nil)
        return try await broker.account(name)
    }
}

extension SessionAccess {
    fileprivate func setMigration(_ name: AccountName, _ identifier: String?) async throws(BrokerError) {
        guard try await account(name).project != nil else {
            throw .methodUnsupported(.supabase(.notSupabase(name)))
        }
        try await edit(name) { session throws(BrokerError) in
            // Another identifier must not overwrite one whose data the app has not moved yet.
            if let identifier, let former = session.project?.migratesFrom, former != identifier {
                throw .conflict(.supabase(.migrationPending(former)), cause: .migrationPending(name))
            }
            session.project?.migratesFrom = identifier
        }
    }
}
