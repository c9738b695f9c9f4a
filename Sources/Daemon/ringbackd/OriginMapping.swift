import BrokerCore
import Configuration
import HTTPMessages
import Secrets
import SupabaseAuth

extension Origin {
    /// A table of origins as the broker takes it. Nil for a name that the configuration would have refused.
    init?(_ origin: OriginConfiguration, in configuration: DaemonConfiguration) {
        guard let name = AccountName(origin.account) else { return nil }
        var headers = origin.headers
        // The key of an app is publishable: it is filled in at once.
        if case .supabase(let supabase)? = configuration[origin.account]?.provider, let key = supabase.project.apiKey {
            headers = headers.map { $0.setting("api_key", to: key.revealed()) }
        }
        self.init(
            origin.rule, account: name, kind: origin.kind == .idToken ? .idToken : .accessToken,
            key: TokenKey(scopes: origin.scopes, audience: origin.audience, resource: origin.resource),
            username: origin.username, headers: headers, allowed: origin.allowed)
    }
}
