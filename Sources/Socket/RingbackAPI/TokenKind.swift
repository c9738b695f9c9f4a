package enum TokenKind: String, Sendable, CaseIterable {
    case accessToken = "access_token"
    case idToken = "id_token"
}
