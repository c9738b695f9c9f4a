extension Component {
    static let session = Component(
        "Session",
        [
            .required("account", .string), .optional("subject", .string), .optional("access_token", .string),
            .optional("id_token", .string), .required("token_type", .string), .optional("expires_at", .integer),
            .optional("expires_in", .integer), .optional("scope", .string), .required("issuer", .string),
            .optional("user", .anyObject), .optional("aal", .string), .optional("next_aal", .string),
            .optional("provider_token", .string), .optional("profile", .anyObject), .optional("migration", .migration),
            .optional("lost_scope", .string),
            .optional("profile_status", .words(["active", "inactive", "missing", "unavailable"])),
        ])

    /// An account; where it was asked for, with the page that ends the user's session in their browser.
    static let signedOut = Component("SignedOut", accountMembers + endSessionMembers)

    private static let endSessionMembers: [Member] = [
        .optional("had_session", .boolean, "False if there was nothing to sign out of; not with scope=others"),
        .optional(
            "revocation_pending", .boolean, "true if the provider has not been told of this sign-out or an earlier one"),
        .optional("revocation_error", .component(.problem)),
        .optional(
            "still_valid",
            .object([
                .required("access_token", .boolean), .optional("access_token_expires_at", .integer),
                .required("refresh_token", .boolean), .optional("refresh_token_expires_at", .integer),
            ]), "What the provider has not revoked"),
        .optional("end_session_url", .string, "To be shown to the user"),
        .optional("end_session_open_url", .string, "For a program to open, once and within a minute"),
        .optional("end_session_open_url_error", .component(.problem)),
        .optional("end_session_error", .component(.problem)),
    ]
}
