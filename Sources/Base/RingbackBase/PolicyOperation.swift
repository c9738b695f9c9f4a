/// What a program asks to do, for the policy. The raw values are used on the wire.
public enum PolicyOperation: String, Sendable, CaseIterable {
    case readState = "read_state"
    case token
    case idToken = "id_token"
    case providerToken = "provider_token"
    case proof
    case signIn = "sign_in"
    case signOut = "sign_out"
    case user
    case deliverCallback = "deliver_callback"
    case deepLink = "deep_link"
    case manage
}
