internal import OAuthSignIn
internal import SupabaseSignIn

// Their sentences stand beside their cases.
extension OAuthReason: Sentence {}
extension SupabaseReason: Sentence {}
