import ArgumentParser

/// The verbs that are only for Supabase projects.
struct SupabaseVerbs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "supabase", abstract: "Manage your user and your sign-in methods at a Supabase project.",
        subcommands: [
            SupabaseUser.self, SupabaseUpdateUser.self, SupabaseResetPassword.self, SupabaseReauthenticate.self,
            SupabaseIdentities.self, SupabaseLink.self, SupabaseUnlink.self, SupabaseConsents.self,
            SupabaseRevokeConsent.self, SupabaseFactors.self, SupabaseEnroll.self, SupabaseVerifyFactor.self,
            SupabaseRemoveFactor.self, SupabasePasskeys.self,
            SupabaseRegisterPasskey.self, SupabaseRenamePasskey.self, SupabaseRemovePasskey.self, SupabaseRPC.self,
            SupabaseSQL.self,
        ])
}
