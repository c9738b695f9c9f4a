public import StrictJSON

/// The name that Apple tells an app once, at the first sign-in, beside the ID token and never in it: it is written to
/// the user then or lost.
public struct AppleName: Sendable, Equatable {
    public let given: String?
    public let family: String?

    /// A name of parts; nil if neither has anything in it.
    public init?(given: String?, family: String?) {
        self.given = given.flatMap(AppleName.cleaned)
        self.family = family.flatMap(AppleName.cleaned)
        guard self.given != nil || self.family != nil else { return nil }
    }

    /// Reads what Apple posts beside a code: `{"name": {"firstName": …, "lastName": …}}`; nil without a name.
    public init?(reading user: JSONObject) {
        self.init(given: user["name"]?["firstName"]?.string, family: user["name"]?["lastName"]?.string)
    }

    /// What to write into the user's metadata, see ``UserChanges/data``: nil for a user who has a name already.
    public func data(for user: SupabaseUser) -> JSONObject? {
        let hasName = ["full_name", "name", "given_name", "family_name"].contains { user.userMetadata.word($0) != nil }
        guard !hasName else { return nil }
        let whole = [given, family].compactMap { $0 }.joined(separator: " ")
        return JSONObject([
            "full_name": .string(whole), "given_name": .optional(given), "family_name": .optional(family),
        ])
    }

    private static func cleaned(_ text: String) -> String? {
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        return words.isEmpty || words.utf8.count > 200 ? nil : words
    }
}
