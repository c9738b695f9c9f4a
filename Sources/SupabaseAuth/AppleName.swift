public import StrictJSON

/// The name that Apple tells an app once, at the first sign-in, beside the ID token and never in it: it is written to
/// the user then or lost.
public struct AppleName: Sendable, Equatable {
    public let given: String?
    public let family: String?
    /// The whole name, where it was said as one.
    private let full: String?

    /// A name of parts, or as a whole; nil if there is nothing in any of them.
    public init?(given: String?, family: String?, full: String? = nil) {
        self.given = given.flatMap(AppleName.cleaned)
        self.family = family.flatMap(AppleName.cleaned)
        self.full = full.flatMap(AppleName.cleaned)
        guard self.given != nil || self.family != nil || self.full != nil else { return nil }
    }

    /// The members of a user's metadata that name a person.
    public static let members: Set<String> = ["full_name", "given_name", "family_name"]

    /// Reads a name as a user's metadata has it; nil without one. Throws for `data`: other members are not a name.
    public init?(parsing data: JSONObject) throws(FieldError) {
        for member in data.members {
            guard AppleName.members.contains(member.name), member.value.string != nil else {
                throw FieldError(
                    field: "data",
                    reason: "beside an ID token it is a name that the token does not have: full_name, given_name and "
                        + "family_name, each a string")
            }
        }
        self.init(
            given: data["given_name"]?.string, family: data["family_name"]?.string, full: data["full_name"]?.string)
    }

    /// Reads what Apple posts beside a code: `{"name": {"firstName": …, "lastName": …}}`; nil without a name.
    public init?(reading user: JSONObject) {
        self.init(given: user["name"]?["firstName"]?.string, family: user["name"]?["lastName"]?.string)
    }

    /// What to write into the user's metadata, see ``UserChanges/data``: nil for a user who has a name already.
    public func data(for user: SupabaseUser) -> JSONObject? {
        let hasName = ["full_name", "name", "given_name", "family_name"].contains { user.userMetadata.word($0) != nil }
        guard !hasName else { return nil }
        let whole = full ?? [given, family].compactMap { $0 }.joined(separator: " ")
        return JSONObject([
            "full_name": .string(whole), "given_name": .optional(given), "family_name": .optional(family),
        ])
    }

    private static func cleaned(_ text: String) -> String? {
        let words = text.split { $0.isWhitespace }.joined(separator: " ")
        return words.isEmpty || words.utf8.count > 200 ? nil : words
    }
}
