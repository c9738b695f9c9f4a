internal import HTTPMessages
internal import OAuth
internal import Secrets
internal import SupabaseAuth

/// The answer to a refresh, after the first look: its refresh token is known, the rest is not yet checked.
enum RenewalResponse: Sendable {
    /// A token endpoint's.
    case tokens(TokenResponse)
    /// A Supabase project's.
    case project(SessionResponse)

    /// The new refresh token; nil if the old one stays.
    var refreshToken: Secret? {
        switch self {
        case .tokens(let answer): answer.refreshToken
        case .project(let answer): answer.refreshToken
        }
    }
}

extension Provider {
    /// The provider in the protocol of a Supabase project, if it is one.
    var asProject: SupabaseProvider? {
        account.project.map {
            SupabaseProvider(account: account, rules: $0, http: http, directory: directory, clock: clock)
        }
    }

    /// What a project's address says: nothing is discovered.
    func metadata(of project: SupabaseProject) throws(BrokerError) -> ProviderMetadata {
        do throws(OAuthError) {
            return try ProviderMetadata(
                authorizationEndpoint: project.authURL + "/authorize", tokenEndpoint: project.authURL + "/token",
                jwksURI: project.authURL + "/.well-known/jwks.json")
        } catch {
            throw BrokerError(error, host: project.authURL)
        }
    }
}
