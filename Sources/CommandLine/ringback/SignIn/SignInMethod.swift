import ArgumentParser

/// The methods of signing in. All but the first two are Supabase's.
enum SignInMethod: String, ExpressibleByArgument, CaseIterable {
    case browser
    /// With a code that is entered elsewhere (RFC 8628).
    case device
    case password
    case signUp = "sign_up"
    case otp
    case magicLink = "magic_link"
    case idToken = "id_token"
    case passkey
    /// On a page that Ringback serves.
    case page
    case anonymous
    case sso
    case session

    /// The options that belong to it. An option of another method is refused, since it would be ignored without notice.
    var options: Set<String> {
        let all: Set = ["no-persist"]
        switch self {
        case .device: return ["scopes", "param"]
        case .browser: return all.union(["with", "provider-token", "scopes", "param"])
        case .password: return all.union(["email", "phone", "password-fd", "captcha-token-fd"])
        case .signUp:
            return all.union([
                "email", "phone", "password-fd", "data", "channel", "captcha-token-fd", "code-fd", "wait",
            ])
        case .otp:
            return all.union([
                "email", "phone", "data", "channel", "captcha-token-fd", "no-create-user", "code-fd", "wait",
            ])
        case .magicLink: return all.union(["email", "data", "captcha-token-fd", "no-create-user", "code-fd", "wait"])
        case .idToken:
            return all.union([
                "with", "from", "data", "id-token-fd", "nonce-fd", "access-token-fd", "captcha-token-fd",
            ])
        case .page: return all
        case .passkey: return all.union(["captcha-token-fd", "credential-fd"])
        case .anonymous: return all.union(["data", "captcha-token-fd"])
        case .sso: return all.union(["domain", "provider-id", "captcha-token-fd", "provider-token"])
        case .session: return all.union(["access-token-fd", "refresh-token-fd"])
        }
    }
}
