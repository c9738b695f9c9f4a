/// What the requests of every kind of account are checked for.
extension SignInRequest {
    /// Refuses a method that the account does not have.
    ///
    /// - Parameter others: those that begin by another route than sign-in.
    public func check(
        methods: [String], beside others: [String] = [], of account: Account
    ) throws(BrokerError) {
        guard methods.contains(method) || others.contains(method) else {
            throw .methodUnsupported(
                "\(account.name) has no sign-in method “\(method)”. It has: \(methods.joined(separator: ", ")).")
        }
    }

    /// A caller's mistake is told to the caller, before anything is asked of the provider.
    ///
    /// - Parameter reserved: the authorization parameters that only Ringback sets.
    public func checkParameters(reserved: Set<String>, of account: Account) throws(BrokerError) {
        var names = Set(account.authorizationParameters.map(\.0))
        for (name, _) in parameters {
            guard !reserved.contains(name) else {
                throw .invalid(field: "params.\(name)", reason: "Ringback sets this parameter itself.")
            }
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .invalid(
                    field: "params.\(name)", reason: "it has no name, or the account's configuration sets it.")
            }
        }
    }
}
