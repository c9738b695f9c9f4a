public import StrictJSON

/// The user's name as Apple sends it: only once, at the first sign-in, and not in the ID token. If the name is not
/// stored at that time, it is lost.
public struct AppleName: Sendable, Equatable {
    public let given: String?
    public let family: String?
    /// The full name, if it was given as one text.
    private let full: String?

    /// A name from its parts or as a whole; nil if all are empty.
    public init?(given: String?, family: String?, full: String? = nil) {
        self.given = given.flatMap(AppleName.cleaned)
        self.family = family.flatMap(AppleName.cleaned)
        self.full = full.flatMap(AppleName.cleaned)
        guard self.given != nil || self.family != nil || self.full != nil else { return nil }
    }

    /// The members of a user's metadata that contain a name.
    public static let members: Set<String> = ["full_name", "given_name", "family_name"]

    /// Reads a name from the members of a user's metadata; nil if there is none. Throws for `data` if there are other
    /// members.
    public init?(parsing data: JSONObject) throws(FieldError) {
        for member in data.members {
            guard AppleName.members.contains(member.name), member.value.string != nil else {
                throw FieldError(
                    field: "data",
                    reason: "with an ID token only a name is allowed that the token does not contain: full_name, "
                        + "given_name and family_name, each a string")
            }
        }
        self.init(
            given: data["given_name"]?.string, family: data["family_name"]?.string, full: data["full_name"]?.string)
    }

    /// Reads what Apple posts together with the code: `{"name": {"firstName": …, "lastName": …}}`; nil without a name.
    public init?(reading user: JSONObject) {
        self.init(given: user["name"]?["firstName"]?.string, family: user["name"]?["lastName"]?.string)
    }

    /// The change of the user's metadata, see ``UserChanges/data``; nil if the user has a name already.
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
