internal import HTTPMessages

/// A port that the caller fixes for one sign-in, so that it can be forwarded from another machine before there is a
/// flow. It can replace only a port that Ringback would choose itself. A port in the configuration was registered at
/// the provider and cannot be replaced.
extension SignInRequest {
    /// The account with the redirect URI that this request asks for: at the request's port.
    func atCallbackPort(_ account: Account) throws(BrokerError) -> Account {
        guard let port = callbackPort else { return account }
        let template = account.redirectURI ?? "http://127.0.0.1:{port}/callback/\(account.name)"
        // `{port}` is not valid in a URL, so it is parsed with port 0.
        let standIn = template.firstRange(of: ":{port}").map { range in
            template[..<range.lowerBound] + ":0" + template[range.upperBound...]
        }
        let text = standIn.map { String($0) } ?? template
        guard let url = try? WebURL(parsing: text), url.scheme == "http", url.isLoopback else {
            throw .invalid(field: "callback_port", reason: .request(.callbackElsewhere(account.name)))
        }
        let stated = url.port ?? 80
        guard stated == 0 || stated == port else {
            throw .invalid(field: "callback_port", reason: .request(.portFixed(account.name, port: stated)))
        }
        guard stated == 0, let range = text.firstRange(of: ":0") else { return account }
        var account = account
        account.redirectURI = "\(text[..<range.lowerBound]):\(port)\(text[range.upperBound...])"
        return account
    }
}
