/// Checks that a project's `id_token_account` names an account that exists and has ID tokens. Otherwise the error would
/// appear only at a sign-in.
enum IDTokenAccountCheck {
    /// The errors, in the order of the accounts' names.
    static func mistakes(in accounts: [String: AccountConfiguration]) -> [ConfigurationError] {
        accounts.values.sorted { $0.name < $1.name }.compactMap { account in
            guard case .supabase(let project) = account.provider, let name = project.idTokenAccount,
                let message = mistake(name, accounts[name])
            else { return nil }
            return ConfigurationError(
                file: account.source.file, line: account.source.line, key: "accounts.\(account.name).id_token_account",
                message: message)
        }
    }

    private static func mistake(_ name: String, _ account: AccountConfiguration?) -> String? {
        guard let account else { return "there is no account of this name" }
        if case .supabase = account.provider { return "is at a Supabase project itself, which gives no ID tokens" }
        return account.scopes.contains("openid") ? nil : "has no ID tokens: the scope openid is not among its scopes"
    }
}
