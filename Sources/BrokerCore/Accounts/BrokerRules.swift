internal import OAuth

extension Broker {
    /// The authorization parameters that only Ringback sets.
    public static var reservedParameters: Set<String> { AuthorizationRequest.reservedParameters }

    /// The ways in that every other provider may have: the second is not everywhere.
    static let providerMethods = ["browser", "device"]

    /// The ways in that a Supabase project has.
    public static let projectMethods = [
        "browser", "password", "sign_up", "otp", "magic_link", "id_token", "passkey", "anonymous", "sso", "session",
    ]

    static func check(method: String, of account: Account) throws(BrokerError) {
        let methods = account.project == nil ? providerMethods : projectMethods
        // Begun by another route than sign-in.
        let others = ["recovery", "link", SignInRequest.userUpdate]
        guard methods.contains(method) || (others.contains(method) && account.project != nil) else {
            throw .methodUnsupported(
                "\(account.name) has no sign-in method “\(method)”. It has: \(methods.joined(separator: ", ")).")
        }
    }

    /// A caller's mistake is told to the caller, before anything is asked of the provider.
    static func check(_ parameters: [(String, String)], of account: Account) throws(BrokerError) {
        var names = Set(account.authorizationParameters.map(\.0))
        for (name, _) in parameters {
            guard !reservedParameters.contains(name) else {
                throw .invalid(field: "params.\(name)", reason: "Ringback sets this parameter itself.")
            }
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .invalid(
                    field: "params.\(name)", reason: "it has no name, or the account's configuration sets it.")
            }
        }
    }
}

extension SignInRequest {
    /// The request as it counts: what is left out and what is said to be as usual are one sign-in, which others join.
    func checked(for account: Account) throws(BrokerError) -> SignInRequest {
        try Broker.check(method: method, of: account)
        try Broker.check(parameters, of: account)
        _ = try atCallbackPort(account)
        guard let rules = account.project else { return self }
        var request = self
        var fields = project ?? SupabaseSignInFields()
        if method == "browser" { fields.oauthProvider = fields.oauthProvider ?? rules.oauthProvider }
        request.project = fields
        return request
    }
}
