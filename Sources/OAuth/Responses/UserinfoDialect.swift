internal import StrictJSON

/// In which words a provider speaks of a person: OpenID Connect's, or its own, which are put into those.
public enum UserinfoDialect: Sendable, Equatable {
    case openID
    /// `GET /user` of GitHub's API. A person there is a number: names are changed, and given to others.
    case gitHub

    /// The claims in OpenID Connect's words (Core section 5.1). What has no word there is left out.
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
