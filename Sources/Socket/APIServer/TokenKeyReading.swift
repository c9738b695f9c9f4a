internal import BrokerCore
internal import RingbackAPI

extension Call {
    /// The token that the query requests. An empty parameter would not downscope anything, so it is rejected.
    func tokenKey() throws(Problem) -> TokenKey {
        let scopes = query("scope").map { $0.split(separator: " ").map(String.init) }
        for (name, isEmpty) in [
            ("scope", scopes?.isEmpty), ("audience", query("audience")?.isEmpty),
            ("resource", query("resource")?.isEmpty),
        ] where isEmpty == true { throw invalid(name, "must not be empty; leave it out for the session's own token") }
        let key = TokenKey(scopes: scopes, audience: query("audience"), resource: query("resource"))
        if let mistake = key.mistake { throw invalid(mistake.parameter, mistake.reason.sentence) }
        return key
    }
}
