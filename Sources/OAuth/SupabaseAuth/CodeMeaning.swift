/// The meaning of an error response in its context: the table's entry, except for a few codes with another meaning.
extension SupabaseCode {
    /// The meaning of an error response.
    static func meaning(of errorResponse: SupabaseError.ErrorResponse, on occasion: SupabaseProblem.Occasion) -> Meaning
    {
        exception(errorResponse, occasion) ?? table[errorResponse.code] ?? stranger(errorResponse)
    }

    /// The meaning of a 5xx response, independent of the table. If a trigger or an auth hook of the project has failed,
    /// or a credential was not accepted, the server itself is running and its message says what is wrong.
    static func trouble(_ errorResponse: SupabaseError.ErrorResponse, on occasion: SupabaseProblem.Occasion) -> Meaning
    {
        let isSaid = ["unexpected_failure", "unknown"].contains(errorResponse.code) && errorResponse.message != nil
        switch occasion {
        case .signIn where isSaid, .callback where isSaid: return Meaning(.providerError, .retry, .signInFailed)
        case .credential where isSaid, .account where isSaid, .identityPage where isSaid, .passwordReset where isSaid:
            return Meaning(.providerError, .retry)
        default: return Meaning(.providerUnreachable, .retry, .serviceDown)
        }
    }

    private static let ended = Meaning(.sessionExpired, .signIn, .sessionEnded)

    private static func exception(
        _ errorResponse: SupabaseError.ErrorResponse, _ occasion: SupabaseProblem.Occasion
    ) -> Meaning? {
        switch (occasion, errorResponse.code) {
        // The user of the access token no longer exists. For other requests this code means that the user was not found
        // for whom the request searched.
        case (.refresh, "user_not_found"), (.account, "user_not_found"): ended
        // The refresh token is not valid any more.
        case (.refresh, "validation_failed"), (.refresh, "invalid_grant"), (.refresh, "invalid_client"): ended
        // The project has not enabled this provider.
        case (.authorization, "validation_failed"), (.identityPage, "validation_failed"):
            Meaning(.methodUnsupported, .fixConfiguration, .notOffered)
        case (.identityPage, _), (.credential, _): exception(errorResponse, .account)
        // The link of a mail has expired; no code was typed.
        case (.callback, "otp_expired"): Meaning(.flowExpired, .signIn, .linkExpired)
        // A provider's error without an error code. Usually the user declined, so no message is shown.
        case (.callback, "access_denied"): Meaning(.accessDenied, .none)
        // The server could not redeem the provider's code. The server itself is running.
        case (.callback, "unexpected_failure"), (.callback, "server_error"), (.callback, "temporarily_unavailable"):
            Meaning(.providerError, .retry, .signInFailed)
        // An anonymous user is not allowed to do this.
        case (.account, "no_authorization") where errorResponse.status == 403: Meaning(.stateConflict, .none)
        // The object named in the path does not exist.
        case (.account, "validation_failed") where errorResponse.status == 404: Meaning(.notFound, .none)
        // Adding a passkey, which is not a sign-in.
        case (.account, "webauthn_challenge_not_found"), (.account, "webauthn_challenge_expired"):
            Meaning(.flowExpired, .retry)
        case (.account, "webauthn_verification_failed"): Meaning(.invalidCredentials, .none)
        case (.passwordReset, "same_password"): Meaning(.passwordResetFailed, .none, .samePassword)
        case (.passwordReset, "reauthentication_needed"), (.passwordReset, "user_sso_managed"),
            (.passwordReset, "current_password_required"):
            table[errorResponse.code].map { Meaning(.passwordResetFailed, $0.recovery, $0.message) }
        default: nil
        }
    }

    /// The meaning of a code that is not in the table: it comes from a newer server, an auth hook or the database.
    private static func stranger(_ errorResponse: SupabaseError.ErrorResponse) -> Meaning {
        switch errorResponse.code {
        case "access_denied": Meaning(.accessDenied, .none)
        // Codes of the ID token grant for a wrong ID token or nonce.
        case "invalid nonce", "invalid request", "invalid_grant":
            Meaning(.invalidCredentials, .signIn, .signInFailed)
        default:
            errorResponse.status == 429
                ? Meaning(.rateLimited, .retry, .tooManyAttempts) : Meaning(.providerError, .none)
        }
    }
}
