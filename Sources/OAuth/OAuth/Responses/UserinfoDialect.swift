internal import StrictJSON

/// The member names of a userinfo response: OpenID Connect's, or a provider's own, which are converted to those.
public enum UserinfoDialect: Sendable, Equatable {
    case openID
    /// `GET /user` of GitHub's API. The subject is the numeric id, because login names can be changed and reused.
    case gitHub

    /// The claims under OpenID Connect's names (Core section 5.1). Others are left out.
    func claims(in object: JSONObject) -> JSONObject {
        switch self {
        case .openID: return object
        case .gitHub:
            var claims = JSONObject()
            if let number = object["id"]?.integer { claims["sub"] = .string(String(number)) }
            for (word, name) in [
                ("login", "preferred_username"), ("name", "name"), ("email", "email"), ("avatar_url", "picture"),
                ("html_url", "profile"),
            ] {
                guard let text = object[word]?.string, !text.isEmpty else { continue }
                claims[name] = .string(text)
            }
            return claims
        }
    }
}
