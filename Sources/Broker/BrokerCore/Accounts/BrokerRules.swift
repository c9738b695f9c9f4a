/// The checks of sign-in requests that are the same for every kind of account.
extension SignInRequest {
    /// Reads the request's method as one of the methods of a kind of account.
    ///
    /// - Parameter offered: the methods that the error lists.
    /// - Throws: `methodUnsupported` for a method that the kind does not have.
    public func readMethod<Method: RawRepresentable<String>>(
        offering offered: [Method], of account: Account
    ) throws(BrokerError) -> Method {
        guard let known = Method(rawValue: method.rawValue) else {
            throw .methodUnsupported(
                .request(.unknownMethod(account.name, method: method, offered: offered.map(\.rawValue))))
        }
        return known
    }

    /// Checks the request's authorization parameters, before any request is sent to the provider.
    ///
    /// - Parameter reserved: the authorization parameters that only Ringback sets.
    public func checkParameters(reserved: Set<String>, of account: Account) throws(BrokerError) {
        var names = Set(account.authorizationParameters.map(\.0))
        for (name, _) in parameters {
            guard !reserved.contains(name) else {
                throw .invalid(field: "params.\(name)", reason: .request(.parameterReserved))
            }
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .invalid(field: "params.\(name)", reason: .request(.parameterTaken))
            }
        }
    }
}
