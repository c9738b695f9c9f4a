/// What a refusal means on its occasion: the table's row, but for the few codes that mean another thing elsewhere.
extension SupabaseCode {
    /// The meaning of a refusal.
    static func meaning(of refusal: SupabaseError.Refusal, on occasion: SupabaseProblem.Occasion) -> Meaning {
        exception(refusal, occasion) ?? table[refusal.code] ?? stranger(refusal)
    }

    /// The meaning of HTTP 5xx, whatever its code would be elsewhere. Where a trigger or a hook of the project fails, or
    /// a credential is not believed, the service itself is there and says what is wrong.
    static func trouble(_ refusal: SupabaseError.Refusal, on occasion: SupabaseProblem.Occasion) -> Meaning {
        let isSaid = ["unexpected_failure", "unknown"].contains(refusal.code) && refusal.message != nil
        switch occasion {
        case .signIn where isSaid, .callback where isSaid: return Meaning(.providerError, .retry, .signInFailed)
        case .credential where isSaid: return Meaning(.providerError, .retry)
        default: return Meaning(.providerUnreachable, .retry, .serviceDown)
        }
    }

    private static let ended = Meaning(.sessionExpired, .signIn, .sessionEnded)

    private static func exception(
        _ refusal: SupabaseError.Refusal, _ occasion: SupabaseProblem.Occasion
    ) -> Meaning? {
        switch (occasion, refusal.code) {
        // The user of a token is gone: not one that somebody looked for.
        case (.refresh, "user_not_found"), (.account, "user_not_found"): ended
        // A refresh token that is not one any more.
        case (.refresh, "validation_failed"), (.refresh, "invalid_grant"), (.refresh, "invalid_client"): ended
        // A provider that the project has not enabled.
        case (.authorization, "validation_failed"), (.identityPage, "validation_failed"):
            Meaning(.methodUnsupported, .fixConfiguration, .notOffered)
        case (.identityPage, _), (.credential, _): exception(refusal, .account)
        // The link of a mail, where nobody typed a code.
        case (.callback, "otp_expired"): Meaning(.flowExpired, .signIn, .linkExpired)
        // The provider's no, which has no code: the person's own, mostly, so that there is nothing to tell.
        case (.callback, "access_denied"): Meaning(.accessDenied, .none)
        // The exchange with the provider failed: the service itself is there.
        case (.callback, "unexpected_failure"), (.callback, "server_error"), (.callback, "temporarily_unavailable"):
            Meaning(.providerError, .retry, .signInFailed)
        // An anonymous user's: it has a token, and may not do this.
        case (.account, "no_authorization") where refusal.status == 403: Meaning(.stateConflict, .none)
        // What an identifier in the path names is not there.
        case (.account, "validation_failed") where refusal.status == 404: Meaning(.notFound, .none)
        // A passkey that was to be added: nobody is signing in.
        case (.account, "webauthn_challenge_not_found"), (.account, "webauthn_challenge_expired"):
            Meaning(.flowExpired, .retry)
        case (.account, "webauthn_verification_failed"): Meaning(.invalidCredentials, .none)
        case (.passwordReset, "same_password"): Meaning(.passwordResetFailed, .none, .samePassword)
        case (.passwordReset, "reauthentication_needed"), (.passwordReset, "user_sso_managed"),
            (.passwordReset, "current_password_required"):
            table[refusal.code].map { Meaning(.passwordResetFailed, $0.recovery, $0.message) }
        default: nil
        }
    }

    /// A word that the table does not have: a newer server's, a hook's, the database's.
    private static func stranger(_ refusal: SupabaseError.Refusal) -> Meaning {
        switch refusal.code {
        case "access_denied": Meaning(.accessDenied, .none)
        // The third shape: an ID token and its nonce.
        case "invalid nonce", "invalid request", "invalid_grant":
            Meaning(.invalidCredentials, .signIn, .signInFailed)
        default:
            refusal.status == 429 ? Meaning(.rateLimited, .retry, .tooManyAttempts) : Meaning(.providerError, .none)
        }
    }
}
