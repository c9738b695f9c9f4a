internal import OAuth

extension Broker {
    /// The authorization parameters that only Ringback sets (CONTRACT section 5).
    public static var reservedParameters: Set<String> { AuthorizationRequest.reservedParameters }

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
